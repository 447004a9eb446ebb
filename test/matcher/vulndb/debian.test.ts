// Debian's tracker, field by field (MAT-080, 081).
import { describe, expect, test } from 'bun:test'
import { buildOf } from './support.ts'

const tracker = (releases: Record<string, unknown>): Record<string, unknown> => ({
  'tracker.json': { openssl: { 'CVE-2024-0001': { description: 'A bug.', scope: 'remote', releases } } },
})

const entry = async (release: unknown): Promise<unknown> => {
  using built = await buildOf({ debian: tracker({ bookworm: release }) })
  return built.rules('debian:12', 'openssl')
}

const rule = (more: object): object => ({
  vuln: 'CVE-2024-0001',
  advisories: [],
  status: 'no_fix',
  channel: 'standard',
  severity: '',
  minor: false,
  no_distro_fix: false,
  ...more,
})

describe("Debian's tracker", () => {
  test('[MAT-080] resolved with a version is fixed in it, and with version 0 there is no rule', async () => {
    const resolved = { status: 'resolved', fixed_version: '3.0.11-1~deb12u2', urgency: 'not yet assigned' }
    expect(await entry(resolved)).toEqual([rule({ status: 'fixed', fixed: '3.0.11-1~deb12u2' })])
    expect(await entry({ ...resolved, fixed_version: '0' })).toEqual([])
  })

  test('[MAT-080] open is no_fix; ignored or at its end of life it is wont_fix without a fix of the distribution', async () => {
    expect(await entry({ status: 'open', urgency: 'medium' })).toEqual([rule({ severity: 'medium' })])
    const wontFix = { status: 'wont_fix', no_distro_fix: true }
    expect(await entry({ status: 'open', urgency: 'medium', nodsa: 'Minor', nodsa_reason: 'ignored' })).toEqual([
      rule({ ...wontFix, severity: 'medium', minor: true }),
    ])
    expect(await entry({ status: 'open', urgency: 'end-of-life' })).toEqual([rule(wontFix)])
  })

  test('[MAT-080] undetermined stays undetermined', async () => {
    expect(await entry({ status: 'undetermined', urgency: 'not yet assigned' })).toEqual([
      rule({ status: 'undetermined' }),
    ])
  })

  test('[MAT-081] severity is the urgency without stars, and minor are unimportant, low and what gets no DSA', async () => {
    const of = (urgency: string, more: object = {}) => entry({ status: 'open', urgency, ...more })
    expect(await of('low**')).toEqual([rule({ severity: 'low', minor: true })])
    expect(await of('high*')).toEqual([rule({ severity: 'high' })])
    expect(await of('unimportant')).toEqual([rule({ severity: 'unimportant', minor: true })])
    expect(await of('not yet assigned')).toEqual([rule({})])
    expect(await of('medium', { nodsa: '', nodsa_reason: 'postponed' })).toEqual([
      rule({ severity: 'medium', minor: true }),
    ])
  })

  test('[MAT-110] testing and unstable have no rows', async () => {
    using built = await buildOf({
      debian: tracker({ sid: { status: 'open', urgency: 'low' }, bookworm: { status: 'open', urgency: 'low' } }),
    })
    expect(built.reader.hasRows('debian:12')).toBeTrue()
    expect(
      built.reader
        .releases()
        .filter(({ id }) => built.reader.hasRows(id))
        .map(({ id }) => id),
    ).toEqual(['debian:12'])
  })

  test('the description is the title of the vulnerability, on one line', async () => {
    using built = await buildOf({ debian: tracker({ bookworm: { status: 'open', urgency: 'low' } }) })
    expect(built.reader.vulnerability('CVE-2024-0001')).toMatchObject({ title: 'A bug.', cvss_score: null, kev: false })
    expect(built.reader.vulnerability('CVE-2024-9999')).toBeUndefined()
  })

  test('rows of the paid extension have the channel elts and stand beside those of Debian', async () => {
    const release = (fixed: string) => tracker({ buster: { status: 'resolved', fixed_version: fixed, urgency: 'low' } })
    using built = await buildOf({ debian: release('1.1-1'), 'debian-elts': release('1.1-2') })
    expect(built.rules('debian:10', 'openssl').map(({ channel, fixed }) => [channel, fixed])).toEqual([
      ['standard', '1.1-1'],
      ['elts', '1.1-2'],
    ])
  })

  test('[MAT-080] DSA and DLA ids come from the OSV records of Debian, and only with a fix', async () => {
    const dsa = {
      id: 'DSA-5500-1',
      upstream: ['CVE-2024-0001'],
      affected: [
        {
          package: { ecosystem: 'Debian:12', name: 'openssl' },
          ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '3.0.11-1' }] }],
        },
      ],
    }
    const debian = tracker({ bookworm: { status: 'resolved', fixed_version: '3.0.11-1', urgency: 'low' } })
    using built = await buildOf({ debian, 'debian-advisories': { 'DSA-5500-1.json': dsa } })
    expect(built.rules('debian:12', 'openssl').map(({ advisories }) => advisories)).toEqual([['DSA-5500-1']])
    using open = await buildOf({
      debian: tracker({ bookworm: { status: 'open', urgency: 'low' } }),
      'debian-advisories': { 'DSA-5500-1.json': dsa },
    })
    expect(open.rules('debian:12', 'openssl').map(({ advisories }) => advisories)).toEqual([[]])
    // A later update of the tracker alone keeps them.
    using next = await buildOf({ debian }, { previous: built.file, version: 2026112202 })
    expect(next.rules('debian:12', 'openssl')).toEqual(built.rules('debian:12', 'openssl'))
  })

  test('[MAT-098] an invalid boundary drops its rule and counts as rejected', async () => {
    const releases = {
      bookworm: { status: 'resolved', fixed_version: 'a b', urgency: 'low' },
      trixie: { status: 'resolved', fixed_version: '1.0-1', urgency: 'low' },
    }
    using built = await buildOf({ debian: tracker(releases) })
    expect(built.rules('debian:12', 'openssl')).toEqual([])
    expect(built.rules('debian:13', 'openssl')).toHaveLength(1)
    expect(built.outcomes).toMatchObject([{ source: 'debian', records: 1, rejected: 1, fault: null }])
  })

  test('[MAT-066] a record that cannot be read is skipped and counted; more than 1 % of them refuse the source', async () => {
    const records = (count: number, broken: number): Record<string, unknown> => {
      const good = { releases: { bookworm: { status: 'open', urgency: 'low' } } }
      const bad = { releases: { bookworm: { status: 'unheard of' } } }
      const ids = Array.from({ length: count }, (_, index) => `CVE-2024-${String(index).padStart(4, '0')}`)
      return { 'tracker.json': { bash: Object.fromEntries(ids.map((id, index) => [id, index < broken ? bad : good])) } }
    }
    using built = await buildOf({ debian: records(200, 2) })
    expect(built.outcomes).toMatchObject([{ records: 200, rejected: 2, fault: null }])
    expect(built.rules('debian:12', 'bash')).toHaveLength(198)
    await expect(buildOf({ debian: records(200, 3) })).rejects.toThrow(
      '3 of its 200 records cannot be read, more than 1 %',
    )
  })
})
