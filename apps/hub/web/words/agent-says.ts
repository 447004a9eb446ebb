// The texts of what agents say of themselves.
import type { Texts } from './words.ts'

export const agentSaysWords = {
  buffer: { en: 'Buffer', vi: 'Bộ đệm' },
  batches: { en: '{count} {count|batch|batches}', vi: '{count} gói' },
  last_warning: { en: 'Last warning', vi: 'Cảnh báo gần nhất' },
} as const satisfies Texts
