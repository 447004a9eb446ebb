// The texts of the pages about servers as a fleet: the list, cards, map and comparison.
import type { Texts } from './words.ts'

export const serversWords = {
  title: { en: 'Servers', vi: 'Máy chủ' },
  state: { en: 'State', vi: 'Trạng thái' },
  name: { en: 'Name', vi: 'Tên' },
  address: { en: 'Address', vi: 'Địa chỉ' },
  environment: { en: 'Environment', vi: 'Môi trường' },
  role: { en: 'Role', vi: 'Vai trò' },
  datacenter: { en: 'Data centre', vi: 'Trung tâm dữ liệu' },
  tags: { en: 'Tags', vi: 'Nhãn' },
  cpu: { en: 'CPU', vi: 'CPU' },
  memory: { en: 'Memory', vi: 'Bộ nhớ' },
  disk: { en: 'Fullest disk', vi: 'Đĩa đầy nhất' },
  load: { en: 'Load', vi: 'Tải' },
  alerts: { en: 'Alerts', vi: 'Cảnh báo' },
  seen: { en: 'Seen', vi: 'Báo cáo' },
  add: { en: 'Add servers', vi: 'Thêm máy chủ' },
  never: { en: 'never', vi: 'chưa bao giờ' },
} as const satisfies Texts
