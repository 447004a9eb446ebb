// The texts of the web interface in English and Vietnamese; one dictionary for the hub and the browser.

export type WebLanguage = 'en' | 'vi'

const texts = {
  product: { en: 'Server monitoring', vi: 'Giám sát máy chủ' },
  sign_in: { en: 'Sign in', vi: 'Đăng nhập' },
  sign_out: { en: 'Sign out', vi: 'Đăng xuất' },
  email: { en: 'E-mail', vi: 'E-mail' },
  password: { en: 'Password', vi: 'Mật khẩu' },
  sign_in_hint: {
    en: 'No password, or lost? An operator of the hub sets one with “hub user password”. The first one of a site was shown on the terminal at its first start.',
    vi: 'Chưa có hoặc quên mật khẩu? Người vận hành hub đặt lại bằng “hub user password”. Mật khẩu đầu tiên của hệ thống được hiển thị trên terminal khi khởi động lần đầu.',
  },
  login_failed: { en: 'E-mail or password is wrong.', vi: 'E-mail hoặc mật khẩu không đúng.' },
  login_limited: {
    en: 'Too many failed attempts. Try again in {seconds} seconds.',
    vi: 'Đăng nhập sai quá nhiều lần. Hãy thử lại sau {seconds} giây.',
  },
  login_foreign: {
    en: 'This login came from another site. Open this page again and sign in here.',
    vi: 'Yêu cầu đăng nhập đến từ trang khác. Hãy mở lại trang này và đăng nhập tại đây.',
  },
  unavailable: { en: 'Not available at the moment. Try again soon.', vi: 'Tạm thời không khả dụng. Hãy thử lại sau.' },
  failed: { en: 'Something went wrong here. Try again.', vi: 'Đã có lỗi xảy ra. Hãy thử lại.' },
  no_access_title: { en: 'No access to monitoring', vi: 'Không có quyền xem giám sát' },
  no_access: {
    en: 'This page needs the permissions monitoring.view and servers.view in a company. Ask an administrator of your company.',
    vi: 'Trang này cần quyền monitoring.view và servers.view trong một công ty. Hãy liên hệ quản trị viên của công ty.',
  },
  needs_script: {
    en: 'This page shows live values and needs JavaScript.',
    vi: 'Trang này hiển thị dữ liệu trực tiếp và cần JavaScript.',
  },
  skip: { en: 'Skip to the servers', vi: 'Chuyển tới danh sách máy chủ' },
  company: { en: 'Company', vi: 'Công ty' },
  api_documents: { en: 'API documentation', vi: 'Tài liệu API' },

  invitation_title: { en: 'Join {company}', vi: 'Tham gia {company}' },
  invitation_text: {
    en: 'Choose the name that others see and a password for {email}.',
    vi: 'Chọn tên hiển thị và mật khẩu cho {email}.',
  },
  invitation_gone_title: { en: 'This invitation is no longer good', vi: 'Lời mời này không còn hiệu lực' },
  invitation_gone: {
    en: 'It was used, withdrawn, or is older than seven days. Ask for a new one.',
    vi: 'Lời mời đã được dùng, bị thu hồi hoặc quá bảy ngày. Hãy yêu cầu lời mời mới.',
  },
  name: { en: 'Name', vi: 'Tên' },
  new_password: { en: 'Password, at least {min} characters', vi: 'Mật khẩu, ít nhất {min} ký tự' },
  new_password_again: { en: 'The password again', vi: 'Nhập lại mật khẩu' },
  passwords_differ: { en: 'The two passwords differ.', vi: 'Hai mật khẩu không giống nhau.' },
  password_short: { en: 'The password needs at least {min} characters.', vi: 'Mật khẩu cần ít nhất {min} ký tự.' },
  join: { en: 'Join', vi: 'Tham gia' },

  tokens: { en: 'API tokens', vi: 'API token' },
  tokens_no_access: {
    en: 'Issuing API tokens needs the permission api-tokens.manage.',
    vi: 'Cần quyền api-tokens.manage để cấp API token.',
  },
  token_new: { en: 'Issue a token', vi: 'Cấp token' },
  token_user: { en: 'For whom', vi: 'Cho người dùng' },
  token_name: { en: 'What it is for', vi: 'Mục đích' },
  token_days: { en: 'Expires after days (empty: never)', vi: 'Hết hạn sau số ngày (trống: không bao giờ)' },
  token_ranges: { en: 'Only from these addresses or ranges', vi: 'Chỉ từ các địa chỉ hoặc dải sau' },
  token_rate: { en: 'Requests a minute (empty: {default})', vi: 'Số yêu cầu mỗi phút (trống: {default})' },
  token_permissions: { en: 'Only these permissions (none chosen: all)', vi: 'Chỉ các quyền sau (không chọn: tất cả)' },
  token_issue: { en: 'Issue', vi: 'Cấp' },
  token_once: {
    en: 'The token, shown this once. Keep it where your program finds it:',
    vi: 'Token chỉ hiển thị một lần. Hãy lưu vào nơi chương trình của bạn đọc được:',
  },
  token_hint: { en: 'Token', vi: 'Token' },
  token_expires: { en: 'Expires', vi: 'Hết hạn' },
  token_used: { en: 'Last used', vi: 'Dùng lần cuối' },
  token_state: { en: 'State', vi: 'Trạng thái' },
  token_active: { en: 'active', vi: 'hoạt động' },
  token_expired: { en: 'expired', vi: 'hết hạn' },
  token_revoked: { en: 'revoked', vi: 'đã thu hồi' },
  token_revoke: { en: 'Revoke', vi: 'Thu hồi' },
  token_none: { en: 'No token was issued yet.', vi: 'Chưa có token nào.' },
  never: { en: 'never', vi: 'không' },
  all_permissions: { en: 'all', vi: 'tất cả' },
  permissions: { en: 'Permissions', vi: 'Quyền' },

  live: { en: 'Live', vi: 'Trực tiếp' },
  connecting: { en: 'Connecting', vi: 'Đang kết nối' },
  reconnecting: { en: 'Connection lost, trying again', vi: 'Mất kết nối, đang thử lại' },
  waiting: { en: 'Too many requests, waiting', vi: 'Quá nhiều yêu cầu, đang chờ' },
  collector_unavailable: {
    en: 'The collector does not answer: values and charts are missing. States and alerts are what the hub itself knows.',
    vi: 'Bộ thu thập không phản hồi: thiếu số liệu và biểu đồ. Trạng thái và cảnh báo là dữ liệu của hub.',
  },
  collector_not_configured: {
    en: 'No collector is registered: there are no values and charts. States and alerts are what the hub itself knows.',
    vi: 'Chưa đăng ký bộ thu thập: không có số liệu và biểu đồ. Trạng thái và cảnh báo là dữ liệu của hub.',
  },

  servers: { en: 'Servers', vi: 'Máy chủ' },
  all: { en: 'All', vi: 'Tất cả' },
  online: { en: 'Online', vi: 'Hoạt động' },
  down: { en: 'Down', vi: 'Ngừng' },
  unknown: { en: 'Unknown', vi: 'Chưa rõ' },
  with_alerts: { en: 'With alerts', vi: 'Có cảnh báo' },
  search: { en: 'Search servers', vi: 'Tìm máy chủ' },
  search_title: { en: 'By name, host name or address', vi: 'Theo tên, hostname hoặc địa chỉ' },
  maintenance: { en: 'Maintenance', vi: 'Bảo trì' },
  decommissioned: { en: 'Decommissioned', vi: 'Ngừng sử dụng' },
  draft: { en: 'Awaits approval', vi: 'Chờ duyệt' },
  cpu: { en: 'CPU', vi: 'CPU' },
  memory: { en: 'Memory', vi: 'Bộ nhớ' },
  disk: { en: 'Disk /', vi: 'Đĩa /' },
  load: { en: 'Load', vi: 'Tải' },
  load_title: { en: 'Load average of one minute', vi: 'Tải trung bình một phút' },
  seen: { en: 'seen {time}', vi: 'báo cáo {time}' },
  never_seen: { en: 'never seen', vi: 'chưa từng báo cáo' },
  chart_label: {
    en: 'CPU and memory of {name}, last {minutes} minutes',
    vi: 'CPU và bộ nhớ của {name}, {minutes} phút gần nhất',
  },
  chart_empty: { en: 'No values in the last {minutes} minutes', vi: 'Không có số liệu trong {minutes} phút gần nhất' },
  chart_missing: { en: 'No chart: the collector does not answer', vi: 'Không có biểu đồ: bộ thu thập không phản hồi' },
  open_alerts_one: { en: '1 alert', vi: '1 cảnh báo' },
  open_alerts_many: { en: '{count} alerts', vi: '{count} cảnh báo' },
  range: { en: '{from}–{to} of {total}', vi: '{from}–{to} trên {total}' },
  previous: { en: 'Previous', vi: 'Trước' },
  next: { en: 'Next', vi: 'Sau' },
  none_match: { en: 'No server matches.', vi: 'Không có máy chủ phù hợp.' },
  show_all: { en: 'Show all servers', vi: 'Hiện tất cả máy chủ' },

  alerts: { en: 'Open alerts', vi: 'Cảnh báo đang mở' },
  no_alerts: { en: 'No open alerts.', vi: 'Không có cảnh báo nào.' },
  critical: { en: 'Critical', vi: 'Nghiêm trọng' },
  warning: { en: 'Warning', vi: 'Cảnh báo' },
  info: { en: 'Info', vi: 'Thông tin' },
  agent_down: { en: 'The agent does not report', vi: 'Agent không báo cáo' },
  group_down: { en: '{count} servers down at once', vi: '{count} máy chủ ngừng cùng lúc' },
  no_data_of: { en: 'No data: {name}', vi: 'Không có dữ liệu: {name}' },
  value_and_threshold: { en: '{value}, threshold {threshold}', vi: '{value}, ngưỡng {threshold}' },
  silent_for: { en: 'after {seconds} s without a report', vi: 'sau {seconds} giây không có báo cáo' },
  since: { en: 'since {time}', vi: 'từ {time}' },
  acknowledged_by: { en: 'Acknowledged by {name}', vi: '{name} đã xác nhận' },
  acknowledged: { en: 'Acknowledged', vi: 'Đã xác nhận' },
  suppressed: { en: 'Silenced', vi: 'Đã tắt tiếng' },
  flapping: { en: 'Flapping', vi: 'Chập chờn' },
  acknowledge: { en: 'Acknowledge', vi: 'Xác nhận' },
  close: { en: 'Close', vi: 'Đóng' },
  close_confirm: { en: 'Really close', vi: 'Xác nhận đóng' },
  acknowledge_of: { en: 'Acknowledge: {what}, {server}', vi: 'Xác nhận: {what}, {server}' },
  close_of: { en: 'Close: {what}, {server}', vi: 'Đóng: {what}, {server}' },
  act_failed: { en: 'Not done: {message}', vi: 'Không thực hiện được: {message}' },

  empty_title: { en: 'No servers yet', vi: 'Chưa có máy chủ' },
  add_server: { en: 'Add a server', vi: 'Thêm máy chủ' },
  add_text: {
    en: 'Give the machine a name. You get a licence for it: a key with which its agent reports here.',
    vi: 'Đặt tên cho máy. Bạn sẽ nhận một giấy phép: khóa để agent trên máy đó gửi dữ liệu về đây.',
  },
  add_name: { en: 'Name of the server', vi: 'Tên máy chủ' },
  add_submit: { en: 'Add and create its licence', vi: 'Thêm và tạo giấy phép' },
  add_close: { en: 'Done', vi: 'Xong' },
  add_ask: {
    en: 'Ask somebody with the permissions servers.manage and monitoring.manage to add one.',
    vi: 'Hãy nhờ người có quyền servers.manage và monitoring.manage thêm máy chủ.',
  },
  add_command: {
    en: 'Now start the agent on {name}, with the address of your collector. The licence is shown this once:',
    vi: 'Bây giờ hãy chạy agent trên {name}, với địa chỉ bộ thu thập của bạn. Giấy phép chỉ hiển thị một lần:',
  },
  add_after: {
    en: 'The page needs no reload: the server turns online by itself.',
    vi: 'Không cần tải lại trang: máy chủ sẽ tự chuyển sang hoạt động.',
  },
} as const

export type WebText = keyof typeof texts
export type WebParams = Readonly<Record<string, string | number>>

/** The text in the language, its `{placeholders}` filled. Plain text: whoever shows it in HTML escapes it. */
export function say(language: WebLanguage, key: WebText, params: WebParams = {}): string {
  return texts[key][language].replace(/\{(\w+)\}/g, (_, name: string) => String(params[name] ?? ''))
}
