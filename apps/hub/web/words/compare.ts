// The texts of the page that compares one metric of several servers.
import type { Texts } from './words.ts'

export const compareWords = {
  title: { en: 'Compare servers', vi: 'So sánh máy chủ' },
  metric: { en: 'Metric', vi: 'Chỉ số' },
  of_chosen: { en: '{count} {count|server|servers}', vi: '{count} máy chủ' },
  of_highest: {
    en: 'The {count} with the highest newest value, of {total}',
    vi: '{count} máy chủ có giá trị mới nhất cao nhất, trong {total}',
  },
  beside: {
    en: 'beside the {count} with the highest newest value, of {total}',
    vi: 'bên cạnh {count} máy chủ có giá trị mới nhất cao nhất, trong {total}',
  },
  shown_as: { en: 'Shown as', vi: 'Hiển thị dạng' },
  as_charts: { en: 'A chart each', vi: 'Mỗi máy một biểu đồ' },
  as_lines: { en: 'One chart', vi: 'Một biểu đồ' },
  remove: { en: 'Leave {name} out', vi: 'Bỏ {name}' },
  add: { en: 'Add a server', vi: 'Thêm máy chủ' },
  nobody_called: { en: 'No server is called that.', vi: 'Không có máy chủ nào tên như vậy.' },
  most: { en: 'At most {count} at a time.', vi: 'Tối đa {count} máy cùng lúc.' },
  highest: { en: 'The highest instead', vi: 'Xem cao nhất' },
  open: { en: 'Open', vi: 'Mở' },
  more_series: { en: '{count} more not shown', vi: 'còn {count} chuỗi không hiển thị' },
  nobody: { en: 'No server has sent this metric lately.', vi: 'Chưa có máy chủ nào gửi chỉ số này gần đây.' },
  one_scale: { en: 'All charts have the same scale.', vi: 'Các biểu đồ dùng chung thang đo.' },
  from_chart: { en: 'Compare with other servers', vi: 'So với máy chủ khác' },
} as const satisfies Texts
