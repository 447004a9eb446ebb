// Whether the matcher answered, in answers that show what it has (decision G-176).
import { Type } from '@sinclair/typebox'
import { nullable, wordOf } from '../../platform/http/response-schema.ts'

const matcherReasons = ['unavailable', 'not_configured', 'no_data'] as const
export type MatcherReason = (typeof matcherReasons)[number]

export const matcherNote = {
  available: Type.Boolean(),
  reason: nullable(wordOf(matcherReasons)),
}
