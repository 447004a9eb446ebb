// The texts of the audit log. Actions and subjects are called as in the API.
import type { Texts } from './words.ts'

export const auditWords = {
  audit: { en: 'Audit log', vi: 'Nhật ký' },
  when: { en: 'When', vi: 'Lúc' },
  actor: { en: 'Who', vi: 'Ai' },
  action: { en: 'Action', vi: 'Hành động' },
  subject: { en: 'What', vi: 'Đối tượng' },
  address: { en: 'From', vi: 'Từ' },
  changes: { en: 'Changes', vi: 'Thay đổi' },
  changes_of: { en: '{count} {count|field|fields}', vi: '{count} trường' },
  show_changes: { en: 'Changes of {name}', vi: 'Thay đổi của {name}' },
  none: { en: 'Nothing was done yet.', vi: 'Chưa có gì.' },
  from: { en: 'From', vi: 'Từ' },
  to: { en: 'To', vi: 'Đến' },
  system: { en: 'the system', vi: 'hệ thống' },
} as const satisfies Texts
