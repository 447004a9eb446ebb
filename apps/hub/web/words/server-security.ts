// The texts of the tabs of a server that say how secure it is and which packages it has.
import type { Texts } from './words.ts'

export const serverSecurityWords = {
  never: {
    en: 'This server has never been scanned: no scanner is enrolled for it. That nothing is shown does not mean that nothing is wrong.',
    vi: 'Máy chủ này chưa từng được quét: chưa có trình quét nào được ghi danh. Không hiện gì không có nghĩa là không có lỗi.',
  },
  waiting: {
    en: 'A scanner is enrolled, and no report of it has come yet.',
    vi: 'Đã ghi danh trình quét nhưng chưa có báo cáo nào.',
  },
  uncompared: {
    en: 'A report has come, and the matcher has not told yet what it found in it.',
    vi: 'Đã có báo cáo, nhưng matcher chưa cho biết kết quả.',
  },
  revoked: {
    en: 'The scanner of this server was revoked: what is shown is of its last scan, and nothing new is found.',
    vi: 'Trình quét của máy chủ này đã bị thu hồi: đây là lần quét cuối, không tìm thấy gì mới.',
  },
  inactive: {
    en: 'The plan has no place for this server: its reports are not compared until a place is free.',
    vi: 'Gói không còn chỗ cho máy chủ này: báo cáo chưa được so sánh cho đến khi có chỗ trống.',
  },
  stale: {
    en: 'No report has come for two days: what is shown may be out of date.',
    vi: 'Đã hai ngày không có báo cáo: dữ liệu có thể đã cũ.',
  },
  detached: {
    en: 'No scanner is attached to this server any more: what is shown is of its last scan.',
    vi: 'Không còn trình quét nào gắn với máy chủ này: đây là lần quét cuối.',
  },
  match_no_db: {
    en: 'There was no vulnerability database for {os} at the last scan: nothing was compared.',
    vi: 'Lần quét cuối chưa có cơ sở dữ liệu lỗ hổng cho {os}: chưa so sánh gì.',
  },
  match_unsupported_os: {
    en: 'The distribution {os} is not known: nothing is compared.',
    vi: 'Không biết bản phân phối {os}: không so sánh gì.',
  },
  match_unsupported_release: {
    en: 'Nothing is known of the release {os}: nothing is compared.',
    vi: 'Không có dữ liệu về bản phát hành {os}: không so sánh gì.',
  },
  match_release_eol: {
    en: '{os} is no longer supported: new vulnerabilities may not be known.',
    vi: '{os} không còn được hỗ trợ: lỗ hổng mới có thể không được biết.',
  },
  failed: {
    en: 'The last scan failed: what is shown is what was known before it.',
    vi: 'Lần quét cuối thất bại: đây là những gì đã biết trước đó.',
  },
  partial: { en: 'What the last scan left out:', vi: 'Lần quét cuối bỏ qua:' },
  code_kernel_unpackaged: {
    en: 'the running kernel is of no installed package and is not compared',
    vi: 'nhân đang chạy không thuộc gói nào, không được so sánh',
  },
  code_module_unknown: {
    en: 'packages of modules do not say of which',
    vi: 'gói của module không nói thuộc module nào',
  },
  code_no_packages: { en: 'the list of packages is empty', vi: 'danh sách gói trống' },
  code_os_release_missing: {
    en: 'os-release is missing or names no distribution',
    vi: 'thiếu os-release hoặc không nêu bản phân phối',
  },
  code_package_incomplete: {
    en: 'packages without a name or a version are left out',
    vi: 'bỏ qua gói không có tên hoặc phiên bản',
  },
  code_packages_unreadable: {
    en: 'the list of packages is missing, broken, or may not be read by the agent',
    vi: 'danh sách gói thiếu, hỏng, hoặc agent không được đọc',
  },
  code_third_party_packages: {
    en: 'packages of other vendors are not compared',
    vi: 'không so sánh gói của nhà cung cấp khác',
  },
  code_too_many_packages: {
    en: 'there are more packages than a report may list',
    vi: 'có nhiều gói hơn một báo cáo được liệt kê',
  },
  code_version_invalid: {
    en: 'packages whose version cannot be compared are passed over',
    vi: 'bỏ qua gói có phiên bản không so sánh được',
  },
  last_scan: { en: 'Last scan', vi: 'Lần quét cuối' },
  scanned: { en: 'Scanned', vi: 'Quét lúc' },
  last_report: { en: 'Last report', vi: 'Báo cáo cuối' },
  scanner_seen: { en: 'Scanner seen', vi: 'Thấy trình quét' },
  system: { en: 'System', vi: 'Hệ điều hành' },
  support: { en: 'Support of the release', vi: 'Hỗ trợ bản phát hành' },
  support_standard: { en: 'supported', vi: 'được hỗ trợ' },
  support_esm_only: { en: 'extended support only', vi: 'chỉ hỗ trợ mở rộng' },
  support_eol: { en: 'ended', vi: 'đã kết thúc' },
  kernel: { en: 'Running kernel', vi: 'Nhân đang chạy' },
  reboot: { en: 'Reboot needed', vi: 'Cần khởi động lại' },
  livepatch: { en: 'Live patches', vi: 'Vá trực tiếp' },
  yes: { en: 'yes', vi: 'có' },
  no: { en: 'no', vi: 'không' },
  unknown: { en: 'not known', vi: 'chưa rõ' },
  packages: { en: 'Packages', vi: 'Các gói' },
  scanner: { en: 'Scanner', vi: 'Trình quét' },
  database: { en: 'Database of that scan', vi: 'Cơ sở dữ liệu khi quét' },
  open_findings: { en: 'Open findings', vi: 'Phát hiện đang mở' },
  none_open: { en: 'The last scan found nothing that is open.', vi: 'Lần quét cuối không thấy gì đang mở.' },
  none_known: {
    en: 'No open finding is known. For the reasons above that is not to say that there is none.',
    vi: 'Không biết phát hiện nào đang mở. Vì lý do trên, không có nghĩa là không có.',
  },
  all_findings: { en: 'All findings of this server', vi: 'Mọi phát hiện của máy chủ này' },
  others: {
    en: '{accepted} accepted, {not_affected} not affected, {resolved} resolved',
    vi: '{accepted} đã chấp nhận, {not_affected} không ảnh hưởng, {resolved} đã xử lý',
  },
  first_of: { en: 'The first {shown} of {count}.', vi: '{shown} đầu tiên trên {count}.' },

  find_package: { en: 'Find a package', vi: 'Tìm gói' },
  name: { en: 'Package', vi: 'Gói' },
  version: { en: 'Version', vi: 'Phiên bản' },
  architecture: { en: 'Architecture', vi: 'Kiến trúc' },
  source: { en: 'Built from', vi: 'Xây từ' },
  ecosystem: { en: 'Distribution', vi: 'Bản phân phối' },
  no_matching_package: { en: 'No package matches.', vi: 'Không có gói nào khớp.' },
  reason_deleted: {
    en: 'This server was deleted: its packages are not known any more. Restored, it is scanned again.',
    vi: 'Máy chủ này đã bị xóa: không còn biết các gói của nó. Khi khôi phục, nó sẽ được quét lại.',
  },
  reason_not_configured: {
    en: 'This hub has no matcher: packages are not known.',
    vi: 'Hub này chưa có matcher: không biết các gói.',
  },
  reason_unavailable: {
    en: 'The matcher does not answer: packages cannot be shown now.',
    vi: 'Matcher không trả lời: hiện không xem được các gói.',
  },
  reason_no_data: {
    en: 'The matcher has no packages of this server: it has not been scanned, or its last report could not be read.',
    vi: 'Matcher không có gói của máy chủ này: chưa được quét, hoặc không đọc được báo cáo cuối.',
  },
  next: { en: 'Next packages', vi: 'Gói tiếp theo' },
  from_start: { en: 'From the first', vi: 'Từ đầu' },
} as const satisfies Texts
