// The texts of choosing whom something is about: all servers, named ones, or those that have something in common.
import type { Texts } from './words.ts'

export const scopesWords = {
  servers: { en: 'Which servers', vi: 'Máy chủ nào' },
  all: { en: 'all servers', vi: 'tất cả máy chủ' },
  named: { en: 'by name', vi: 'theo tên' },
  tag: { en: 'by tag', vi: 'theo nhãn' },
  env: { en: 'by environment', vi: 'theo môi trường' },
  role: { en: 'by role', vi: 'theo vai trò' },
  dc: { en: 'by data centre', vi: 'theo trung tâm dữ liệu' },
  given: { en: 'the chosen ones', vi: 'các máy đã chọn' },
  before: { en: 'those of before', vi: 'như lần trước' },
  value: { en: 'Value', vi: 'Giá trị' },
  value_hint: { en: 'Several are separated by commas.', vi: 'Nhiều giá trị cách nhau bằng dấu phẩy.' },
  add: { en: 'Add a server', vi: 'Thêm máy chủ' },
  remove: { en: 'Leave {name} out', vi: 'Bỏ {name}' },
} as const satisfies Texts
