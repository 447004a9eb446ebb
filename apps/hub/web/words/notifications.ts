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
  test_of: { en: 'Send a test to {name}', vi: 'Gửi thử tới {name}' },
  own_messages: { en: 'Your messages', vi: 'Thông báo của bạn' },
  no_messages: { en: 'You were told nothing yet.', vi: 'Bạn chưa có thông báo nào.' },
  message: { en: 'Message', vi: 'Thông báo' },
  message_body: { en: 'Text', vi: 'Nội dung' },
  mark_read: { en: 'Mark as read', vi: 'Đánh dấu đã đọc' },
  read_of: { en: 'Mark as read: {name}', vi: 'Đánh dấu đã đọc: {name}' },
  mark_all_read: { en: 'Mark all as read', vi: 'Đánh dấu tất cả đã đọc' },
  own_levels: { en: 'What you are told', vi: 'Bạn được thông báo' },
  level_bell: { en: 'Here, from severity', vi: 'Tại đây, từ mức độ' },
  level_email: { en: 'By e-mail, from severity', vi: 'Qua e-mail, từ mức độ' },
  level_push: { en: 'On your phone, from severity', vi: 'Trên điện thoại, từ mức độ' },
  level_off: { en: 'Nothing', vi: 'Không gì cả' },
} as const satisfies Texts
