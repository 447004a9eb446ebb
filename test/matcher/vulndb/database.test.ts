// The file that an import writes: equal for equal input, read by look-ups, compared by digests, kept per source.
import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { changedKeys, changedKeysOfOpen } from '../../../apps/matcher/vulndb/reader.ts'
import { isOwnSchema } from '../../../apps/matcher/vulndb/schema.ts'
import { buildOf, storedRules } from './support.ts'

const SEED = Number(process.env.SVC_FUZZ_SEED ?? 0) || Date.now() % 1_000_000

/** A generator of numbers below 1 that a seed repeats. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map(item => ({ item, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

const usn = (id: number, cve: number, fixed: string): object => ({
  id: `USN-${id}-1`,
  upstream: [`CVE-2024-${String(cve).padStart(4, '0')}`],
  affected: ['22.04', '24.04'].map(version => ({
    package: { ecosystem: `Ubuntu:${version}:LTS`, name: `package-${id % 7}` },
    ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
  })),
})

const tracker = (fixed: Record<string, string>): Record<string, unknown> => ({
  'tracker.json': Object.fromEntries(
    Object.entries(fixed).map(([name, version]) => [
      name,
      { 'CVE-2024-0001': { releases: { bookworm: { status: 'resolved', fixed_version: version, urgency: 'low' } } } },
    ]),
  ),
})

describe('the database file', () => {
  test('[MAT-075] the same records give the same rules, byte for byte, in whatever order the files came', async () => {
    console.log(`seed ${SEED}: SVC_FUZZ_SEED=${SEED} repeats this`)
    const random = randomOf(SEED)
    const records = Array.from({ length: 60 }, (_, index) => usn(index, Math.floor(random() * 20), `1.${index % 5}-1`))
    const stored = async (order: readonly object[]) => {
      const files = Object.fromEntries(
        order.map((record, index) => [`${String(index).padStart(3, '0')}/r.json`, record]),
      )
      using built = await buildOf({ ubuntu: files })
      return storedRules(built.file)
    }
    const first = await stored(records)
    expect(first.length).toBeGreaterThan(10)
    for (let round = 0; round < 5; round++) expect(await stored(shuffled(records, random))).toEqual(first)
  })

  test('[MAT-075] digests are those of the stored rules, and rules that differ by advisories only are one', async () => {
    using built = await buildOf({
      ubuntu: { 'all.jsonl': [usn(7, 1, '1-1'), usn(14, 1, '1-1')].map(each => JSON.stringify(each)).join('\n') },
    })
    const rules = built.rules('ubuntu:22.04', 'package-0')
    expect(rules).toMatchObject([{ vuln: 'CVE-2024-0001', advisories: ['USN-14-1', 'USN-7-1'], fixed: '1-1' }])
    const digest = new Bun.CryptoHasher('sha256').update(JSON.stringify(rules)).digest('hex')
    expect(built.reader.affected('ubuntu:22.04', 'package-0', 'source')?.digest).toBe(digest)
  })

  test('[MAT-182] two files differ in the keys whose digests differ, and in those that one of them lacks', async () => {
    using before = await buildOf({ debian: tracker({ bash: '1-1', curl: '1-1', zlib: '1-1' }) })
    using after = await buildOf({ debian: tracker({ bash: '1-1', curl: '1-2', wget: '1-1' }) }, { version: 2026112202 })
    const names = [...changedKeys(before.file, after.file)].map(
      ({ release, package: name, by }) => `${release} ${name} ${by}`,
    )
    expect(names.toSorted()).toEqual(['debian:12 curl source', 'debian:12 wget source', 'debian:12 zlib source'])
    expect([...changedKeys(after.file, after.file)]).toEqual([])
    // A version whose file was removed since is compared as it is open.
    rmSync(before.file)
    const open = [...changedKeysOfOpen(before.reader, after.reader)].map(({ package: name }) => name)
    expect(open.toSorted()).toEqual(['curl', 'wget', 'zlib'])
  })

  test('[MAT-064] a source that is refused keeps its rows of the version before; the others go on', async () => {
    using before = await buildOf({
      debian: tracker({ bash: '1-1' }),
      ubuntu: { 'one.json': usn(1, 1, '1-1') },
      kev: { 'kev.json': { vulnerabilities: [{ cveID: 'CVE-2024-0001', dueDate: '2026-01-02' }] } },
    })
    using after = await buildOf(
      { debian: { 'tracker.json': '{"bash":' }, ubuntu: { 'one.json': usn(1, 1, '1-2') } },
      { previous: before.file, version: 2026112202 },
    )
    expect(after.outcomes.map(({ source, fault }) => [source, fault !== null])).toEqual([
      ['debian', true],
      ['ubuntu', false],
    ])
    expect(after.rules('debian:12', 'bash')).toEqual(before.rules('debian:12', 'bash'))
    expect(after.rules('ubuntu:22.04', 'package-1')).toMatchObject([{ fixed: '1-2' }])
    expect(after.reader.vulnerability('CVE-2024-0001')).toMatchObject({ kev: true, kev_due_date: '2026-01-02' })
    expect(after.reader.coversDistro('debian')).toBeTrue()
    expect(after.reader.coversDistro('alpine')).toBeFalse()
  })

  test('[MAT-065] a source that shrinks by more than 20 % or turns empty is refused, unless that is accepted', async () => {
    const names = (count: number) =>
      tracker(Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, '1-1'])))
    using before = await buildOf({ debian: names(10) })
    const next = (count: number, acceptShrink = false) =>
      buildOf({ debian: names(count) }, { previous: before.file, version: 2026112202, acceptShrink })
    using smaller = await next(8)
    expect(smaller.rules('debian:12', 'p9')).toEqual([])
    await expect(next(7)).rejects.toThrow('it shrank from 10 to 7 records, more than 20 %')
    await expect(next(0)).rejects.toThrow('it has no records')
    using accepted = await next(7, true)
    expect(accepted.rules('debian:12', 'p7')).toEqual([])
  })

  test('a file of other tables, or with a trigger, is not taken for a database', () => {
    expect(isOwnSchema(['create table meta (key text primary key, value text not null) without rowid'])).toBeFalse()
  })
})
