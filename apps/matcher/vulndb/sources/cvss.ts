// The score of a vector, computed where a source gives the vector only (MAT-086).
import { CVSS30, CVSS31, CVSS40 } from '@pandatix/js-cvss'

export type Cvss = { readonly cvss_vector: string; readonly cvss_score: number }

const VECTOR_LENGTH_MAX = 512

/** Null for a vector that is none of CVSS 3.0, 3.1 or 4.0. A score that the source gives beside it is taken. */
export function cvssOf(vector: unknown, given?: unknown): Cvss | null {
  if (typeof vector !== 'string' || vector.length > VECTOR_LENGTH_MAX) return null
  const score = scoreOf(vector)
  if (score === null) return null
  const isGiven = typeof given === 'number' && given >= 0 && given <= 10
  return { cvss_vector: vector, cvss_score: isGiven ? given : score }
}

function scoreOf(vector: string): number | null {
  try {
    if (vector.startsWith('CVSS:3.1/')) return new CVSS31(vector).BaseScore()
    if (vector.startsWith('CVSS:3.0/')) return new CVSS30(vector).BaseScore()
    return vector.startsWith('CVSS:4.0/') ? new CVSS40(vector).Score() : null
  } catch {
    return null
  }
}
