// The texts of the list of rules alone.
import type { Texts } from './words.ts'

export const rulesListWords = {
  title: { en: 'Rules', vi: 'Quy tắc' },
  new_rule: { en: 'New rule', vi: 'Quy tắc mới' },
  create_defaults: { en: 'Create default rules', vi: 'Tạo quy tắc mặc định' },
  defaults_created: {
    en: '{count} default {count|rule|rules} created.',
    vi: 'Đã tạo {count} quy tắc mặc định.',
  },
  none_yet: {
    en: 'There are no rules yet: nothing would be told. The default rules watch CPU, memory, disks, load and lost agents.',
    vi: 'Chưa có quy tắc nào nên sẽ không có cảnh báo. Bộ mặc định theo dõi CPU, bộ nhớ, đĩa, tải và agent mất tín hiệu.',
  },
  fired: { en: '7 days', vi: '7 ngày' },
  edited: { en: 'Last edit', vi: 'Sửa lần cuối' },
  acts: { en: 'Actions', vi: 'Thao tác' },
  enable_named: { en: 'Enable {name}', vi: 'Bật {name}' },
  disable_named: { en: 'Disable {name}', vi: 'Tắt {name}' },
  now_on: { en: '{name} is enabled.', vi: 'Đã bật {name}.' },
  now_off: { en: '{name} is disabled; its alerts are resolved.', vi: 'Đã tắt {name}; các cảnh báo của nó đã đóng.' },
  duplicate_named: { en: 'Duplicate {name}', vi: 'Nhân bản {name}' },
  severity_of: { en: 'Severity…', vi: 'Mức độ…' },
  severity_title: {
    en: 'Severity of {count} {count|rule|rules}',
    vi: 'Mức độ của {count} quy tắc',
  },
  delete_many: { en: 'Delete {count} {count|rule|rules}?', vi: 'Xóa {count} quy tắc?' },
  delete_many_text: {
    en: 'Their open alerts are resolved. It cannot be taken back.',
    vi: 'Các cảnh báo đang mở của chúng sẽ được kết thúc. Không thể hoàn tác.',
  },
  delete_type: { en: 'Type {text} to delete', vi: 'Nhập {text} để xóa' },
  delete_these: { en: 'Delete', vi: 'Xóa' },
  refused: { en: '{count} refused: {message}', vi: '{count} bị từ chối: {message}' },
} as const satisfies Texts
