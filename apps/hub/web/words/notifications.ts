// The texts of the page of notifications, besides those of administration.
import type { Texts } from './words.ts'

export const notificationsWords = {
  notifications: { en: 'Notifications', vi: 'Thông báo' },
  channels: { en: 'Group addresses', vi: 'Địa chỉ nhóm' },
  no_channels: {
    en: 'There are none. A group address is told of alerts as people are, whoever reads it.',
    vi: 'Chưa có. Địa chỉ nhóm nhận cảnh báo như người dùng, dù ai đọc.',
  },
  no_mail: {
    en: 'The hub sends no mail: its administrator has not set smtp.url.',
    vi: 'Hub không gửi thư: quản trị viên chưa đặt smtp.url.',
  },
  delete_channel_text: { en: 'No mail goes there any more.', vi: 'Sẽ không gửi thư tới đó nữa.' },
  address_unconfirmed: { en: 'Not confirmed', vi: 'Chưa xác nhận' },
  address_confirmed: { en: 'Confirmed', vi: 'Đã xác nhận' },
  address_stopped: { en: 'Wants no mail', vi: 'Không nhận thư' },
  test: { en: 'Send a test', vi: 'Gửi thử' },
  test_on_its_way: {
    en: 'A test is on its way to {email}: below is what becomes of it.',
    vi: 'Đang gửi thử tới {email}: kết quả ở bên dưới.',
  },
  test_of: { en: 'Send a test to {name}', vi: 'Gửi thử tới {name}' },
} as const satisfies Texts
