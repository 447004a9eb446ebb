// The texts of the pages that are forms without script: login, invitation, confirmation of an address, tokens, second
// factor.
import { fill, type Texts, type WebLanguage, type WebParams } from './words.ts'

const texts = {
  product: { en: 'Server monitoring', vi: 'Giám sát máy chủ' },
  sign_in: { en: 'Sign in', vi: 'Đăng nhập' },
  sign_out: { en: 'Sign out', vi: 'Đăng xuất' },
  email: { en: 'E-mail', vi: 'E-mail' },
  password: { en: 'Password', vi: 'Mật khẩu' },
  sign_in_hint: {
    en: 'No password, or lost? An operator of the hub sets one with “hub user password”. The first one of a site was shown on the terminal at its first start, or is in the file first-password of its data directory.',
    vi: 'Chưa có hoặc quên mật khẩu? Người vận hành hub đặt lại bằng “hub user password”. Mật khẩu đầu tiên của hệ thống được hiển thị trên terminal khi khởi động lần đầu, hoặc nằm trong tệp first-password của thư mục dữ liệu.',
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
  no_page_title: { en: 'There is no such page', vi: 'Không có trang này' },
  no_page_home: { en: 'To the servers', vi: 'Về danh sách máy chủ' },
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
  invitation_login: {
    en: 'An address signs in to one company. Who signs in here with this address already asks for an invitation of another address.',
    vi: 'Mỗi địa chỉ chỉ đăng nhập vào một công ty. Nếu địa chỉ này đã dùng để đăng nhập ở đây, hãy yêu cầu lời mời cho địa chỉ khác.',
  },
  invitation_taken: {
    en: 'This address signs in here already. Ask for an invitation of another address.',
    vi: 'Địa chỉ này đã dùng để đăng nhập ở đây. Hãy yêu cầu lời mời cho địa chỉ khác.',
  },
  address_title: { en: 'Messages to this address', vi: 'Tin nhắn tới địa chỉ này' },
  address_text: {
    en: '{company} sends messages of its server monitoring to {address}. Should it go on?',
    vi: '{company} gửi tin giám sát máy chủ tới {address}. Có tiếp tục không?',
  },
  address_confirm: { en: 'Yes, go on', vi: 'Có, tiếp tục' },
  address_stop: { en: 'No, stop them', vi: 'Không, ngừng gửi' },
  address_confirmed: { en: 'The messages go on.', vi: 'Tin nhắn sẽ tiếp tục.' },
  address_stopped: { en: 'The messages have stopped.', vi: 'Đã ngừng gửi tin nhắn.' },
  address_gone: { en: 'Nothing belongs to this link.', vi: 'Liên kết này không còn hiệu lực.' },
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
  two_factor: { en: 'Two-factor authentication', vi: 'Xác thực hai yếu tố' },
  two_factor_code: { en: 'Code of your app, or a recovery code', vi: 'Mã từ ứng dụng hoặc mã khôi phục' },
  two_factor_app_code: { en: 'Code that the app shows', vi: 'Mã hiển thị trong ứng dụng' },
  two_factor_login_hint: {
    en: 'Lost your phone? Use a recovery code. Lost these too? An operator of the hub helps with “hub user reset-two-factor”.',
    vi: 'Mất điện thoại? Hãy dùng mã khôi phục. Mất cả mã khôi phục? Người vận hành hub hỗ trợ bằng “hub user reset-two-factor”.',
  },
  code_failed: {
    en: 'The code is wrong, or was used already. Wait for the next one.',
    vi: 'Mã không đúng hoặc đã được dùng. Hãy chờ mã tiếp theo.',
  },
  two_factor_failed: {
    en: 'The code or the password is wrong, or the code was used already.',
    vi: 'Mã hoặc mật khẩu không đúng, hoặc mã đã được dùng.',
  },
  two_factor_is_off: {
    en: 'Off: your password alone signs in. Turned on, signing in also asks for a code of an app on your phone. Your other sessions end then; API tokens go on.',
    vi: 'Đang tắt: chỉ cần mật khẩu để đăng nhập. Khi bật, đăng nhập còn cần mã từ ứng dụng trên điện thoại. Các phiên khác của bạn sẽ kết thúc; API token vẫn hoạt động.',
  },
  two_factor_is_on: {
    en: 'On. You have {left} {left|recovery code|recovery codes} left.',
    vi: 'Đang bật. Bạn còn {left} mã khôi phục.',
  },
  two_factor_scan: {
    en: 'Scan this with an authenticator app, then enter the code that it shows within 15 minutes.',
    vi: 'Quét mã này bằng ứng dụng xác thực rồi nhập mã hiển thị trong vòng 15 phút.',
  },
  two_factor_qr: { en: 'QR code of the secret', vi: 'Mã QR của khóa bí mật' },
  two_factor_secret: { en: 'Or enter this secret:', vi: 'Hoặc nhập khóa bí mật này:' },
  two_factor_link: { en: 'Open in an app on this device', vi: 'Mở bằng ứng dụng trên thiết bị này' },
  two_factor_turn_on: { en: 'Turn on', vi: 'Bật' },
  two_factor_turn_off: { en: 'Turn off', vi: 'Tắt' },
  two_factor_new_codes: { en: 'New recovery codes', vi: 'Tạo mã khôi phục mới' },
  two_factor_once: {
    en: 'Recovery codes, shown this once. Each signs you in one time without the app. Keep them in a safe place:',
    vi: 'Mã khôi phục chỉ hiển thị một lần. Mỗi mã đăng nhập được một lần khi không có ứng dụng. Hãy cất ở nơi an toàn:',
  },
  never: { en: 'never', vi: 'không' },
  all_permissions: { en: 'all', vi: 'tất cả' },
  permissions: { en: 'Permissions', vi: 'Quyền' },
} as const satisfies Texts

type WebText = keyof typeof texts

/** The text in the language, its `{placeholders}` filled. Plain text: whoever shows it in HTML escapes it. */
export const say = (language: WebLanguage, key: WebText, params: WebParams = {}): string =>
  fill(language, texts[key][language], params)
