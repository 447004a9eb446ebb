// What is read where there is no vulnerability database yet (MAT-153): it covers no distribution.
import type { AdvisoryReader } from '../../core/matching/advisory.ts'

export const noDatabase: AdvisoryReader = {
  version: 0,
  release: () => undefined,
  releases: () => [],
  coversDistro: () => false,
  hasRows: () => false,
  affected: () => undefined,
  vulnerability: () => undefined,
}
