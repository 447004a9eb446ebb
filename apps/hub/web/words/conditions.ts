// The texts of a condition: how a series stands to a value, and for how long.
import type { Texts } from './words.ts'

export const conditionsWords = {
  op_gt: { en: '{series} over {value}', vi: '{series} trên {value}' },
  op_ge: { en: '{series} at least {value}', vi: '{series} từ {value} trở lên' },
  op_lt: { en: '{series} below {value}', vi: '{series} dưới {value}' },
  op_le: { en: '{series} at most {value}', vi: '{series} từ {value} trở xuống' },
  op_eq: { en: '{series} equal to {value}', vi: '{series} bằng {value}' },
  op_ne: { en: '{series} other than {value}', vi: '{series} khác {value}' },
  held_for: { en: 'for {time}', vi: 'trong {time}' },
} as const satisfies Texts
