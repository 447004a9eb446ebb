// The texts of the map of an incident.
import type { Texts } from './words.ts'

export const incidentMapWords = {
  incident_map: { en: 'Map of the incident', vi: 'Bản đồ sự cố' },
  incident_map_label: {
    en: 'Map of the {count} {count|server|servers} of the incident. Arrows move from cell to cell, Enter opens the server.',
    vi: 'Bản đồ {count} máy chủ của sự cố. Phím mũi tên chuyển giữa các ô, Enter mở máy chủ.',
  },
  incident_down: {
    en: '{down} of {count} {count|server|servers} still down.',
    vi: 'Còn {down} trên {count} máy chủ chưa hoạt động.',
  },
  incident_left_out: {
    en: '{count} more servers have no place in the map.',
    vi: '{count} máy chủ khác không có chỗ trên bản đồ.',
  },
  incident_hint: {
    en: 'Point at a cell, or move to it with the arrows. Enter or a click opens the server.',
    vi: 'Trỏ vào một ô hoặc dùng phím mũi tên. Enter hoặc nhấp để mở máy chủ.',
  },
  incident_back: { en: 'Reports again', vi: 'Đã báo cáo trở lại' },
} as const satisfies Texts
