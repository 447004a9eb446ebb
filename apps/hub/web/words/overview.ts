// The texts of the overview.
import type { Texts } from './words.ts'

export const overviewWords = {
  title: { en: 'Overview', vi: 'Tổng quan' },
  servers: { en: 'Servers', vi: 'Máy chủ' },
  alerts: { en: 'Open alerts', vi: 'Cảnh báo đang mở' },
  all: { en: 'All', vi: 'Tất cả' },
  unacknowledged: { en: 'Nobody is on it', vi: 'Chưa ai xử lý' },
  acknowledged: { en: 'Acknowledged', vi: 'Đã xác nhận' },
  suppressed: { en: 'Silenced', vi: 'Đã tắt tiếng' },
  worst: { en: 'Needs somebody', vi: 'Cần xử lý' },
  all_well: { en: 'Nothing is open.', vi: 'Không có gì đang mở.' },
} as const satisfies Texts
