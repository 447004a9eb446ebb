// The texts of security events, in both languages; a company can replace each. What is listed by names ({vuln_id},
// {server}) is cut after a few.
import type { SecurityEventType } from '../../../core/lifecycle/security-event-severity.ts'

type Template = { readonly title: string; readonly body: string }

export const securityTexts: Readonly<Record<SecurityEventType, Readonly<Record<'en' | 'vi', Template>>>> = {
  'security.finding.p1_opened': {
    en: {
      title: '[P1] {vuln_id} on {server}',
      body: '{count} {count|finding|findings} of priority p1 {count|is|are} open, risk up to {risk}. Fixed in {fixed_version}. {link}',
    },
    vi: {
      title: '[P1] {vuln_id} trên {server}',
      body: '{count} phát hiện ưu tiên p1 đang mở, rủi ro tới {risk}. Đã sửa trong {fixed_version}. {link}',
    },
  },
  'security.digest.daily': {
    en: {
      title: 'Security today: {open} open {open|finding|findings}, {p1} of priority p1',
      body: 'p2: {p2}, p3: {p3}, p4: {p4}. Opened since yesterday: {opened}, resolved: {resolved}. Overdue: {overdue}. Servers without a scan for two days: {stale}. {link}',
    },
    vi: {
      title: 'Bảo mật hôm nay: {open} phát hiện đang mở, {p1} ưu tiên p1',
      body: 'p2: {p2}, p3: {p3}, p4: {p4}. Mở từ hôm qua: {opened}, đã xử lý: {resolved}. Quá hạn: {overdue}. Máy không quét trong hai ngày: {stale}. {link}',
    },
  },
  'security.sla.due_soon': {
    en: {
      title: '{count} {count|finding|findings} {count|is|are} due soon: {vuln_id}',
      body: 'A quarter of the time is left on {server}, until {due_at}. Priority {priority}, fixed in {fixed_version}. {link}',
    },
    vi: {
      title: '{count} phát hiện sắp đến hạn: {vuln_id}',
      body: 'Còn một phần tư thời hạn trên {server}, đến {due_at}. Ưu tiên {priority}, đã sửa trong {fixed_version}. {link}',
    },
  },
  'security.sla.overdue': {
    en: {
      title: '{count} {count|finding|findings} {count|is|are} overdue: {vuln_id}',
      body: 'On {server}, due since {due_at}. Priority {priority}, fixed in {fixed_version}. {link}',
    },
    vi: {
      title: '{count} phát hiện đã quá hạn: {vuln_id}',
      body: 'Trên {server}, hạn từ {due_at}. Ưu tiên {priority}, đã sửa trong {fixed_version}. {link}',
    },
  },
  'security.exception.requested': {
    en: {
      title: '{requester} asks for an exception for {count} {count|finding|findings}',
      body: 'As {exception_type}, until {expires_at}: {reason}. Somebody else must approve it. {link}',
    },
    vi: {
      title: '{requester} yêu cầu ngoại lệ cho {count} phát hiện',
      body: 'Loại {exception_type}, đến {expires_at}: {reason}. Cần người khác duyệt. {link}',
    },
  },
  'security.exception.decided': {
    en: {
      title: 'The exception for {count} {count|finding|findings} is {exception_status}',
      body: 'By {decider}. It was asked for by {requester}: {reason}. {link}',
    },
    vi: {
      title: 'Ngoại lệ cho {count} phát hiện: {exception_status}',
      body: 'Bởi {decider}. Người yêu cầu {requester}: {reason}. {link}',
    },
  },
  'security.exception.expiring': {
    en: {
      title: 'The exception for {count} {count|finding|findings} ends soon',
      body: 'At {expires_at} {count|it is|they are} open again: {reason}. {link}',
    },
    vi: {
      title: 'Ngoại lệ cho {count} phát hiện sắp hết hạn',
      body: 'Lúc {expires_at} chúng sẽ mở lại: {reason}. {link}',
    },
  },
  'security.exception.expired': {
    en: {
      title: 'The exception for {count} {count|finding|findings} is over',
      body: 'It ended at {expires_at}: {reason}. {link}',
    },
    vi: { title: 'Ngoại lệ cho {count} phát hiện đã hết hạn', body: 'Kết thúc lúc {expires_at}: {reason}. {link}' },
  },
  'security.server.scan_stale': {
    en: {
      title: 'No scan of {server} for two days',
      body: '{count} scan {count|host is active and does|hosts are active and do} not report; the last report came at {last_report_at}. {link}',
    },
    vi: {
      title: '{server} không được quét trong hai ngày',
      body: '{count} máy quét đang hoạt động nhưng không báo cáo; báo cáo cuối lúc {last_report_at}. {link}',
    },
  },
  'security.db.stale': {
    en: {
      title: 'The vulnerability database is of {db_day}',
      body: 'Newer vulnerabilities are not found until the matcher has a newer one. {link}',
    },
    vi: {
      title: 'Cơ sở dữ liệu lỗ hổng là của ngày {db_day}',
      body: 'Lỗ hổng mới hơn chưa được phát hiện cho đến khi matcher có bản mới. {link}',
    },
  },
  'security.secret.high_opened': {
    en: { title: 'A secret was found on {server}', body: '{count} {count|finding|findings} by {vuln_id}. {link}' },
    vi: { title: 'Phát hiện bí mật trên {server}', body: '{count} phát hiện bởi {vuln_id}. {link}' },
  },
  'security.pii.bulk_found': {
    en: {
      title: 'Personal data were found on {server}',
      body: '{count} {count|finding|findings} by {vuln_id}. {link}',
    },
    vi: { title: 'Phát hiện dữ liệu cá nhân trên {server}', body: '{count} phát hiện bởi {vuln_id}. {link}' },
  },
  'security.content.scope_changed': {
    en: { title: 'What contents are scanned has changed', body: 'Look at the settings of the scan. {link}' },
    vi: { title: 'Phạm vi quét nội dung đã thay đổi', body: 'Hãy xem thiết lập quét. {link}' },
  },
}

/** What a preview of such a text is filled with. */
export const securitySample: Readonly<Record<string, string>> = {
  server: 'web-1',
  vuln_id: 'CVE-2024-0001',
  count: '3',
  risk: '95',
  priority: 'p1',
  fixed_version: '3.0.2-1',
  due_at: '2026-01-31T12:00:00.000Z',
  expires_at: '2026-01-31T12:00:00.000Z',
  last_report_at: '2026-01-29T12:00:00.000Z',
  reason: 'behind a firewall',
  requester: 'Lan',
  decider: 'Minh',
  exception_type: 'accepted',
  exception_status: 'approved',
  db_day: '2026-01-20',
  open: '120',
  p1: '2',
  p2: '18',
  p3: '60',
  p4: '40',
  opened: '5',
  resolved: '7',
  overdue: '1',
  stale: '1',
  link: '',
}
