// The texts of the dialogs about a server.
import type { Texts } from './words.ts'

export const serverDialogWords = {
  maintenance_title: { en: 'Maintenance of {name}', vi: 'Bảo trì {name}' },
  maintenance_text: {
    en: 'Meanwhile alerts of this server are kept and nobody is told.',
    vi: 'Trong lúc đó cảnh báo của máy chủ vẫn được lưu nhưng không báo cho ai.',
  },
  maintenance_reason: { en: 'Maintenance', vi: 'Bảo trì' },
  begin_maintenance: { en: 'until I end it', vi: 'đến khi tôi kết thúc' },
  maintenance_for: { en: 'For', vi: 'Trong' },
  for_hours: { en: '{n} {n|hour|hours}', vi: '{n} giờ' },
  for_days: { en: '{n} {n|day|days}', vi: '{n} ngày' },
  until_own: { en: 'until…', vi: 'đến lúc…' },
  ends: { en: 'Until', vi: 'Đến' },
  reason: { en: 'Reason', vi: 'Lý do' },
  edit_title: { en: 'Edit {name}', vi: 'Sửa {name}' },
  notes: { en: 'Notes', vi: 'Ghi chú' },
  tags_hint: { en: 'Separated by commas', vi: 'Cách nhau bằng dấu phẩy' },
  delete_title: { en: 'Delete {name}', vi: 'Xóa {name}' },
  delete_text: {
    en: 'Its alerts end and its agent is revoked. It can be restored; a new licence then brings its agent back. Type the name of the server to go on.',
    vi: 'Cảnh báo sẽ kết thúc và agent bị thu hồi. Có thể khôi phục; khi đó cần giấy phép mới cho agent. Gõ tên máy chủ để tiếp tục.',
  },
  delete_now: { en: 'Delete', vi: 'Xóa' },
} as const satisfies Texts
