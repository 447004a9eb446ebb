// Which sources of the vulnerability database a running matcher fetches by itself (`db.sources: auto`; MAT-062,
// MAT-186), and which of them first.
import { sourceOfDistro } from './sources/catalogue.ts'

/** What `auto` fetches beside the sources of the distributions seen. */
export const REFERENCE_SOURCES: readonly string[] = ['eol', 'kev', 'epss', 'scores']

/** None before the first host has reported. */
export function wantedSources(distros: readonly string[], referenceSources: readonly string[]): string[] {
  const ofDistros = [...new Set(distros.flatMap(distro => sourceOfDistro(distro) ?? []))].toSorted()
  return ofDistros.length === 0 ? [] : [...ofDistros, ...referenceSources]
}

/** The first database of a distribution waits for no reference data (MAT-186). */
export function roundsOf(wanted: readonly string[]): readonly (readonly string[])[] {
  const slow = wanted.filter(source => REFERENCE_SOURCES.includes(source) && source !== 'eol')
  const first = wanted.filter(source => !slow.includes(source))
  return [first, slow].filter(round => round.length > 0)
}
