// The texts of the page of one alert, besides those that it shares with the list.
import type { Texts } from './words.ts'

export const alertWords = {
  sentence_threshold: {
    en: '{what} of {server} is {value}, threshold {threshold}.',
    vi: '{what} của {server} là {value}, ngưỡng {threshold}.',
  },
  sentence_down: { en: 'The agent of {server} does not report.', vi: 'Agent của {server} không báo cáo.' },
  sentence_other: { en: '{what} on {server}.', vi: '{what} trên {server}.' },
  lasted: { en: 'From {from} to {to}, {duration}.', vi: 'Từ {from} đến {to}, {duration}.' },
  fired: {
    en: 'It opened because this held: {condition}. The value was {value}.',
    vi: 'Cảnh báo mở vì điều kiện này đúng: {condition}. Giá trị lúc đó là {value}.',
  },
  fired_no_data: {
    en: 'It opened because {series} sent nothing any more while the server still reported.',
    vi: 'Cảnh báo mở vì {series} không còn gửi dữ liệu trong khi máy chủ vẫn báo cáo.',
  },
  fired_down: {
    en: 'It opened because nothing came from the agent for {seconds} s.',
    vi: 'Cảnh báo mở vì không nhận được gì từ agent trong {seconds} giây.',
  },
  fired_group: {
    en: 'It opened because servers of {group} were lost together.',
    vi: 'Cảnh báo mở vì các máy chủ của {group} mất cùng lúc.',
  },
  ended_recovered: { en: 'It ended because the value recovered.', vi: 'Kết thúc vì giá trị đã hồi phục.' },
  ended_no_data: { en: 'It ended because no data came any more.', vi: 'Kết thúc vì không còn dữ liệu.' },
  ended_data_returned: { en: 'It ended because data came again.', vi: 'Kết thúc vì dữ liệu đã có trở lại.' },
  ended_rule_changed: { en: 'It ended because the rule was changed.', vi: 'Kết thúc vì quy tắc đã thay đổi.' },
  ended_out_of_scope: {
    en: 'It ended because the rule does not cover the server any more.',
    vi: 'Kết thúc vì quy tắc không còn áp dụng cho máy chủ.',
  },
  ended_rule_removed: { en: 'It ended because the rule was removed.', vi: 'Kết thúc vì quy tắc đã bị xóa.' },
  quiet_maintenance: {
    en: 'Nobody was told: the server was in maintenance.',
    vi: 'Không báo cho ai: máy chủ đang bảo trì.',
  },
  quiet_silence: { en: 'Nobody was told: a silence covered it.', vi: 'Không báo cho ai: đang tắt tiếng.' },
  quiet_decommissioned: {
    en: 'Nobody was told: the server is decommissioned.',
    vi: 'Không báo cho ai: máy chủ đã ngừng sử dụng.',
  },
  pending_note: {
    en: 'Dashed strip: it held for {time} before the alert opened.',
    vi: 'Dải nét đứt: điều kiện đúng trong {time} trước khi cảnh báo mở.',
  },
  chart: { en: 'The value around the alert', vi: 'Giá trị quanh thời điểm cảnh báo' },
  open_server: { en: 'Open {server} at that time', vi: 'Mở {server} tại thời điểm đó' },
  edit_rule: { en: 'Edit the rule', vi: 'Sửa quy tắc' },
  whole: { en: 'Show all of it', vi: 'Xem toàn bộ' },
  told_result: {
    en: '{arrived} of {count} {count|message|messages} arrived.',
    vi: '{arrived} trên {count} tin đã tới.',
  },
  told_failed: { en: '{failed} failed.', vi: '{failed} thất bại.' },
  told_inboxes: {
    en: 'In the inbox of {people} {people|person|people}, read by {read}.',
    vi: 'Có trong hộp thông báo của {people} người, {read} người đã đọc.',
  },
  why_unknown: {
    en: 'The collector does not say why at the moment.',
    vi: 'Bộ thu thập hiện không cho biết lý do.',
  },
  told_nobody: { en: 'No message was sent by e-mail or webhook.', vi: 'Chưa gửi tin qua e-mail hay webhook.' },
  told_hidden: {
    en: 'You need the permission notifications.view to see who was told.',
    vi: 'Bạn cần quyền notifications.view để xem đã báo cho ai.',
  },
  delivery_waiting: { en: 'waiting, {tries} {tries|try|tries} so far', vi: 'đang chờ, đã thử {tries} lần' },
  delivery_delivered: { en: 'delivered', vi: 'đã gửi' },
  delivery_failed: { en: 'failed after {tries} {tries|try|tries}', vi: 'thất bại sau {tries} lần thử' },
  timeline: { en: 'What happened', vi: 'Diễn biến' },
  event_opened: { en: 'Opened', vi: 'Mở' },
  event_reminder: { en: 'Reminded', vi: 'Nhắc lại' },
  event_resolved: { en: 'Resolved', vi: 'Hết' },
  event_flapping: { en: 'Began to flap', vi: 'Bắt đầu chập chờn' },
  event_down: { en: 'The agent became silent', vi: 'Agent mất tín hiệu' },
  event_up: { en: 'The agent reports again', vi: 'Agent báo cáo trở lại' },
  event_group: { en: 'Many servers were lost together', vi: 'Nhiều máy chủ mất cùng lúc' },
  event_group_update: { en: 'The incident changed', vi: 'Sự cố thay đổi' },
  event_group_resolved: { en: 'The incident is over', vi: 'Sự cố đã kết thúc' },
  commented: { en: '{name} commented', vi: '{name} bình luận' },
  closed: { en: '{name} closed', vi: '{name} đóng' },
  somebody: { en: 'Somebody', vi: 'Ai đó' },
  around: { en: 'Same server, within 15 minutes', vi: 'Cùng máy chủ, trong 15 phút' },
  before: { en: 'The same alert before', vi: 'Cùng cảnh báo trước đây' },
  members: { en: 'Servers of the incident', vi: 'Máy chủ trong sự cố' },
  nothing: { en: 'Nothing.', vi: 'Không có.' },
  part_of: { en: 'Part of an incident', vi: 'Thuộc một sự cố' },
  peak: { en: 'Worst value {value}', vi: 'Giá trị xấu nhất {value}' },
} as const satisfies Texts
