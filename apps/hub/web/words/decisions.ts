// The texts of what a collector decides about a series now.
import type { Texts } from './words.ts'

export const decisionsWords = {
  now_ok: {
    en: 'Now the condition does not hold: the newest value is {value}.',
    vi: 'Hiện tại điều kiện không đúng: giá trị mới nhất là {value}.',
  },
  now_pending: {
    en: 'Now the condition holds, but not for long enough yet: the newest value is {value}.',
    vi: 'Hiện tại điều kiện đúng nhưng chưa đủ lâu: giá trị mới nhất là {value}.',
  },
  now_firing: {
    en: 'Now it is still open: the newest value is {value}.',
    vi: 'Hiện tại cảnh báo vẫn mở: giá trị mới nhất là {value}.',
  },
  now_silent: {
    en: 'Now it is open because the series sends nothing.',
    vi: 'Hiện tại cảnh báo mở vì chuỗi đo không gửi dữ liệu.',
  },
  now_unjudged: {
    en: 'No value of this series has been judged yet.',
    vi: 'Chưa xét giá trị nào của chuỗi đo này.',
  },
  now_none: {
    en: 'Now the rule judges no series of this server.',
    vi: 'Hiện tại quy tắc không xét chuỗi đo nào của máy chủ này.',
  },
  now_flapping: {
    en: 'It flaps: nobody is told until it is calm.',
    vi: 'Cảnh báo chập chờn: không báo cho ai đến khi ổn định.',
  },
  now_maintenance: {
    en: 'Nobody is told now: the server is in maintenance.',
    vi: 'Hiện không báo cho ai: máy chủ đang bảo trì.',
  },
  now_silence: { en: 'Nobody is told now: a silence covers it.', vi: 'Hiện không báo cho ai: đang tắt tiếng.' },
  now_decommissioned: {
    en: 'Nobody is told now: the server is decommissioned.',
    vi: 'Hiện không báo cho ai: máy chủ đã ngừng sử dụng.',
  },
  collector_says: { en: 'The collector says:', vi: 'Bộ thu thập cho biết (tiếng Anh):' },
} as const satisfies Texts
