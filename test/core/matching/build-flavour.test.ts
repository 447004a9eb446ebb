// The marks by which versions of special builds are known.
import { expect, test } from 'bun:test'
import { flavourOfVersion } from '../../../core/matching/build-flavour.ts'

test('[MAT-118] marks by which builds are told apart', () => {
  const of = (version: string) => flavourOfVersion(version) ?? 'none'
  expect(['1.1.1k-9.el8_6_fips', '3.0.2-0ubuntu1.18+Fips1'].map(of)).toEqual(['fips', 'fips'])
  expect(of('2.28-189.5.ksplice1.el8')).toBe('ksplice')
  expect(['5.15.0-1.realtime', '2.28-189.el8', 'ksplice-1'].map(of)).toEqual(['realtime', 'none', 'none'])
})
