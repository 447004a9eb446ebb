// What a metric is called.
import { metricWords } from '../words/metrics.ts'
import { textsOf } from './session.ts'

const t = textsOf(metricWords)

/** The words of a metric; of one that has none its name. */
export const metricTitle = (name: string): string =>
  Object.hasOwn(metricWords, name) ? t(name as keyof typeof metricWords) : name
