// The texts of saved views.
import type { Texts } from './words.ts'

export const savedViewWords = {
  title: { en: 'Saved views', vi: 'Chế độ xem đã lưu' },
  of_page: { en: 'Of this page', vi: 'Của trang này' },
  none: {
    en: 'Nothing is saved for this page yet. Filter and sort the list, then save it here under a name.',
    vi: 'Trang này chưa có chế độ xem nào được lưu. Hãy lọc và sắp xếp danh sách rồi lưu lại tại đây.',
  },
  everything: { en: 'everything', vi: 'tất cả' },
  is_shown: { en: 'shown now', vi: 'đang hiển thị' },
  shared: { en: 'shared', vi: 'dùng chung' },
  shared_by: { en: 'shared by {name}', vi: '{name} chia sẻ' },
  save_title: { en: 'Save what is shown now', vi: 'Lưu những gì đang hiển thị' },
  change_title: { en: 'Change {name}', vi: 'Sửa {name}' },
  name: { en: 'Name', vi: 'Tên' },
  share: { en: 'Everybody in {company} sees it', vi: 'Mọi người trong {company} đều thấy' },
  take_shown: { en: 'Keep what is shown now in it: {about}', vi: 'Lưu vào đó những gì đang hiển thị: {about}' },
  change: { en: 'Change', vi: 'Sửa' },
  change_of: { en: 'Change {name}', vi: 'Sửa {name}' },
  delete: { en: 'Delete', vi: 'Xóa' },
  delete_of: { en: 'Delete {name}', vi: 'Xóa {name}' },
  delete_for_all: { en: 'Delete for everybody', vi: 'Xóa cho mọi người' },
  deleted: { en: 'Deleted: {name}.', vi: 'Đã xóa: {name}.' },
  saved: { en: 'Saved: {name}.', vi: 'Đã lưu: {name}.' },
  bring_back: { en: 'Bring it back', vi: 'Hoàn tác' },
} as const satisfies Texts
