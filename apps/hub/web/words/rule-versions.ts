// The texts of what an edit of a rule changed.
import type { Texts } from './words.ts'

export const ruleVersionWords = {
  act_create: { en: 'created', vi: 'tạo' },
  act_update: { en: 'edited', vi: 'sửa' },
  act_enable: { en: 'enabled', vi: 'bật' },
  act_disable: { en: 'disabled', vi: 'tắt' },
  act_duplicate: { en: 'copied', vi: 'nhân bản' },
  act_other: { en: 'changed', vi: 'thay đổi' },
  field_kind: { en: 'Kind', vi: 'Loại' },
  field_metric: { en: 'Metric', vi: 'Chỉ số' },
  field_matchers: { en: 'Labels', vi: 'Nhãn của chuỗi' },
  field_operator: { en: 'Operator', vi: 'Toán tử' },
  field_threshold: { en: 'Threshold', vi: 'Ngưỡng' },
  field_for_seconds: { en: 'Holds for', vi: 'Kéo dài' },
  field_recover_threshold: { en: 'Recovers beyond', vi: 'Hồi phục khi vượt' },
  field_recover_for_seconds: { en: 'Recovered for', vi: 'Hồi phục trong' },
  field_no_data: { en: 'Without data', vi: 'Khi mất dữ liệu' },
  field_renotify_seconds: { en: 'Remind every', vi: 'Nhắc lại mỗi' },
  field_enabled: { en: 'State', vi: 'Trạng thái' },
  no_data_ignore: { en: 'nothing happens', vi: 'không làm gì' },
  no_data_alert: { en: 'an alert opens', vi: 'mở cảnh báo' },
  no_data_resolve: { en: 'an open alert is resolved', vi: 'kết thúc cảnh báo đang mở' },
  enabled: { en: 'enabled', vi: 'đang bật' },
} as const satisfies Texts
