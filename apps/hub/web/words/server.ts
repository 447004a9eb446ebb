// The texts of the page of a server: its head, and the charts. Tabs that are opened later have theirs in
// server-tabs.ts, its dialogs in server-dialogs.ts.
import type { Texts } from './words.ts'

export const serverWords = {
  tabs: { en: 'About this server', vi: 'Về máy chủ này' },
  tab_metrics: { en: 'Metrics', vi: 'Số đo' },
  tab_alerts: { en: 'Alerts', vi: 'Cảnh báo' },
  tab_checks: { en: 'Checks', vi: 'Kiểm tra' },
  tab_inventory: { en: 'Inventory', vi: 'Cấu hình máy' },
  tab_agents: { en: 'Agents', vi: 'Agent' },
  tab_security: { en: 'Security', vi: 'Bảo mật' },
  tab_packages: { en: 'Packages', vi: 'Các gói' },
  tab_history: { en: 'History', vi: 'Lịch sử' },

  seen: { en: 'Seen', vi: 'Thấy lần cuối' },
  uptime: { en: 'Up for', vi: 'Đã chạy' },
  open_alerts: { en: '{count} open {count|alert|alerts}', vi: '{count} cảnh báo đang mở' },
  no_open_alerts: { en: 'No open alerts', vi: 'Không có cảnh báo đang mở' },
  silenced_until: { en: 'Silenced until {time}', vi: 'Tắt tiếng đến {time}' },
  notes: { en: 'Notes', vi: 'Ghi chú' },
  deleted: { en: 'Deleted', vi: 'Đã xóa' },
  deleted_text: {
    en: 'This server was deleted. Its agent is revoked; its data is kept until it is deleted for good.',
    vi: 'Máy chủ này đã bị xóa. Agent đã bị thu hồi; dữ liệu còn giữ đến khi xóa vĩnh viễn.',
  },

  manifest: { en: 'A manifest says what this server is.', vi: 'Máy chủ này được khai báo bằng manifest.' },
  drifted: {
    en: 'It differs from its manifest: {fields}.',
    vi: 'Máy chủ này khác với manifest: {fields}.',
  },
  drifted_field: { en: '{field} is {actual} instead of {intended}', vi: '{field} là {actual} thay vì {intended}' },

  silence: { en: 'Silence…', vi: 'Tắt tiếng…' },
  end_silence: { en: 'End the silence', vi: 'Bật lại thông báo' },
  end_silence_all: {
    en: 'It covers all servers of the company: it ends for all of them.',
    vi: 'Lượt tắt tiếng này áp dụng cho mọi máy chủ của công ty và sẽ kết thúc cho tất cả.',
  },
  end_silence_servers: {
    en: 'It covers {count} {count|server|servers}: it ends for all of them.',
    vi: 'Lượt tắt tiếng này áp dụng cho {count} máy chủ và sẽ kết thúc cho tất cả.',
  },
  end_silence_repeated: { en: 'It does not come again either.', vi: 'Nó cũng sẽ không lặp lại nữa.' },
  maintenance_until: { en: 'Maintenance…', vi: 'Bảo trì…' },
  end_maintenance: { en: 'End maintenance', vi: 'Kết thúc bảo trì' },
  edit: { en: 'Edit…', vi: 'Sửa…' },
  approve: { en: 'Approve', vi: 'Duyệt' },
  delete: { en: 'Delete…', vi: 'Xóa…' },
  restore: { en: 'Restore', vi: 'Khôi phục' },

  find_metric: { en: 'Find a metric', vi: 'Tìm số đo' },
  no_metrics: {
    en: 'No agent has sent anything of this server yet.',
    vi: 'Chưa có agent nào gửi dữ liệu của máy chủ này.',
  },
  nothing_found: { en: 'No metric is called like that.', vi: 'Không có số đo nào như vậy.' },
  truncated: { en: 'Not all series of this server are listed.', vi: 'Danh sách chưa có đủ mọi chuỗi của máy chủ này.' },
  collector_silent: {
    en: 'The collector does not answer: charts cannot be loaded now.',
    vi: 'Bộ thu thập không phản hồi: chưa tải được biểu đồ.',
  },
  of_before: { en: 'What is shown is of before.', vi: 'Nội dung đang hiển thị là của trước đó.' },
  core: { en: 'Core {core}', vi: 'Nhân {core}' },
  recovers_at: { en: 'recovers at {value}', vi: 'phục hồi ở {value}' },
  alert_periods: { en: '{count} {count|alert|alerts} in this range', vi: '{count} cảnh báo trong khoảng này' },
  rule_from_chart: { en: 'Rule from this chart', vi: 'Tạo quy tắc từ biểu đồ này' },
  what_changed: { en: 'What changed here?', vi: 'Có gì thay đổi?' },
  what_changed_text: {
    en: 'Charts by how much they differ from {from} to {to} from the time before it, four times as long. Draw over a chart to choose another span.',
    vi: 'Biểu đồ xếp theo mức khác biệt từ {from} đến {to} so với khoảng trước đó dài gấp bốn. Kéo trên biểu đồ để chọn khoảng khác.',
  },
  changed_by: { en: 'Changed by {percent} %', vi: 'Thay đổi {percent} %' },
  changed_series: {
    en: 'Changed by {percent} %, most of all {series}',
    vi: 'Thay đổi {percent} %, nhiều nhất là {series}',
  },
  nothing_changed: { en: 'Nothing differs from before.', vi: 'Không có gì khác trước.' },
} as const satisfies Texts
