// The texts of the overview.
import type { Texts } from './words.ts'

export const overviewWords = {
  title: { en: 'Overview', vi: 'Tổng quan' },
  servers: { en: 'Servers', vi: 'Máy chủ' },
  alerts: { en: 'Alerts that nobody is on', vi: 'Cảnh báo chưa ai xử lý' },
  also: {
    en: '{acknowledged} acknowledged, {suppressed} silenced',
    vi: '{acknowledged} đã xác nhận, {suppressed} đã tắt tiếng',
  },
  incidents: { en: 'Incidents', vi: 'Sự cố' },
  worst: { en: 'Needs somebody', vi: 'Cần xử lý' },
  all_well: { en: 'Nothing is open.', vi: 'Không có gì đang mở.' },

  first: { en: '{name}, live', vi: '{name}, trực tiếp' },
  first_waiting: {
    en: 'Its agent is connected. The first values come within half a minute and appear here by themselves.',
    vi: 'Agent đã kết nối. Số liệu đầu tiên sẽ tự hiện ở đây trong khoảng nửa phút.',
  },
  first_all: { en: 'All charts of {name}', vi: 'Tất cả biểu đồ của {name}' },
  none: { en: 'No server yet', vi: 'Chưa có máy chủ nào' },
  next: { en: 'Add the next server', vi: 'Thêm máy chủ tiếp theo' },
  next_text: {
    en: 'You give its name and get one command to run on it. A minute later it stands here.',
    vi: 'Bạn nhập tên và nhận một lệnh để chạy trên máy đó. Một phút sau máy sẽ hiện ở đây.',
  },
  add: { en: 'Add a server', vi: 'Thêm máy chủ' },

  days: { en: 'Alerts a day, 30 days', vi: 'Cảnh báo mỗi ngày, 30 ngày' },
  days_summary: {
    en: '{opened} {opened|alert|alerts} opened in 30 days, most on {day}: {most}; today {today}.',
    vi: '{opened} cảnh báo trong 30 ngày, nhiều nhất ngày {day}: {most}; hôm nay {today}.',
  },
  days_none: { en: 'No alert in 30 days.', vi: 'Không có cảnh báo nào trong 30 ngày.' },
  day_text: { en: '{day}: {opened} opened, {resolved} resolved', vi: '{day}: mở {opened}, hết {resolved}' },
  as_table: { en: 'As a table', vi: 'Dạng bảng' },
  day: { en: 'Day (UTC)', vi: 'Ngày (UTC)' },
  opened: { en: 'Opened', vi: 'Mở' },
  resolved: { en: 'Resolved', vi: 'Hết' },

  soon: { en: 'Soon', vi: 'Sắp cần xử lý' },
  soon_nothing: { en: 'Nothing ends or fills up soon.', vi: 'Không có gì sắp hết hạn hay hết chỗ.' },
  soon_quota: {
    en: 'The plan has room for {left} more of {max} agents.',
    vi: 'Gói còn chỗ cho {left} trên {max} agent.',
  },
  soon_license: { en: 'Licence {name} ends {when}.', vi: 'Giấy phép {name} hết hạn {when}.' },
  soon_outdated: {
    en: '{count} {count|agent is|agents are} older than {version}.',
    vi: '{count} agent cũ hơn phiên bản {version}.',
  },
  collector_age: { en: 'The collector reported {when}.', vi: 'Bộ thu thập báo cáo {when}.' },
  collector_never: { en: 'No collector has reported yet.', vi: 'Chưa có bộ thu thập nào báo cáo.' },

  companies: { en: 'Companies below this one', vi: 'Công ty trực thuộc' },
  company: { en: 'Company', vi: 'Công ty' },
  down: { en: 'Down', vi: 'Ngừng' },
  critical: { en: 'Critical', vi: 'Nghiêm trọng' },
  warning: { en: 'Warning', vi: 'Cảnh báo' },
  agents: { en: 'Agents', vi: 'Agent' },
  used_of: { en: '{used} of {max}', vi: '{used} trên {max}' },
  more_companies: { en: 'and {count} more', vi: 'và {count} công ty khác' },
} as const satisfies Texts
