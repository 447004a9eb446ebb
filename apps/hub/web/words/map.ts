// The texts of the host map.
import type { Texts } from './words.ts'

export const mapWords = {
  role: { en: 'host map', vi: 'bản đồ máy chủ' },
  label: {
    en: 'Map of {count} {count|server|servers} by {metric}. Arrows move from cell to cell, Enter opens the server.',
    vi: 'Bản đồ {count} máy chủ theo {metric}. Phím mũi tên chuyển giữa các ô, Enter mở máy chủ.',
  },
  group: { en: 'Group by', vi: 'Nhóm theo' },
  then_by: { en: 'then by', vi: 'rồi theo' },
  group_none: { en: 'Nothing', vi: 'Không nhóm' },
  group_dc: { en: 'Data centre', vi: 'Trung tâm dữ liệu' },
  group_env: { en: 'Environment', vi: 'Môi trường' },
  group_role: { en: 'Role', vi: 'Vai trò' },
  group_version: { en: 'Agent version', vi: 'Phiên bản agent' },
  group_state: { en: 'State', vi: 'Trạng thái' },
  fill: { en: 'Fill by', vi: 'Tô theo' },
  without: { en: 'none', vi: 'không có' },
  others: { en: 'Others', vi: 'Khác' },
  caption: { en: '{name} ({count})', vi: '{name} ({count})' },
  no_value: { en: 'No value', vi: 'Không có số liệu' },
  more: { en: '{value} and more', vi: 'từ {value}' },
  hint: {
    en: 'Point at a cell, or move to it with the arrows. Enter or a click opens the server, a name above cells filters by it.',
    vi: 'Trỏ vào một ô hoặc dùng phím mũi tên. Enter hoặc nhấp để mở máy chủ, nhấp tên nhóm để lọc.',
  },
  as_table: { en: 'Show as table', vi: 'Xem dạng bảng' },
  as_map: { en: 'Show as map', vi: 'Xem dạng bản đồ' },
  value: { en: 'Value', vi: 'Giá trị' },
  keys: { en: 'Group', vi: 'Nhóm' },
  open_alerts: { en: '{count} open {count|alert|alerts}', vi: '{count} cảnh báo đang mở' },
} as const satisfies Texts
