// The real fixes of test/data/advisories, imported and looked up.
import { expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { openAdvisories } from '../../../apps/matcher/vulndb/reader.ts'
import { compareVersions } from '../../../core/matching/version.ts'
import { buildOf } from './support.ts'

const path = resolve(import.meta.dir, '../../data/advisories/debian-tracker.json')

test('[MAT-080] [MAT-088] several hundred real fixes of Debian are imported, and each hits the version before it', async () => {
  expect(statSync(path).size).toBeLessThan(1024 * 1024)
  using built = await buildOf({ debian: { 'debian-tracker.json': readFileSync(path, 'utf8') } })
  expect(built.outcomes).toMatchObject([{ source: 'debian', rejected: 0, fault: null }])
  expect(built.outcomes[0]!.records).toBeGreaterThan(1000)
  const hits = (release: string, name: string, version: string): string[] =>
    built
      .rules(release, name)
      .filter(rule => rule.fixed !== undefined && compareVersions('dpkg', version, rule.fixed) < 0)
      .map(({ vuln }) => vuln)
  expect(hits('debian:12', 'openssl', '3.0.11-1~deb12u1')).toContain('CVE-2023-5363')
  expect(hits('debian:12', 'openssl', '3.0.11-1~deb12u2')).not.toContain('CVE-2023-5363')
  expect(hits('debian:12', 'openssl', '99')).toEqual([])
  for (const name of ['openssl', 'curl', 'glibc', 'systemd', 'openssh', 'linux'])
    expect(built.rules('debian:12', name).length).toBeGreaterThan(0)
  // What is read at one go is what is read one by one, and an id that nobody knows is none both times.
  const ids = [...new Set(built.rules('debian:12', 'openssl').map(({ vuln }) => vuln)), 'CVE-0000-0000']
  const [ahead, single] = [openAdvisories(built.file), openAdvisories(built.file)]
  ahead.readVulnerabilities?.(ids)
  expect(ids.map(id => ahead.vulnerability(id))).toEqual(ids.map(id => single.vulnerability(id)))
  expect(ids.filter(id => ahead.vulnerability(id) === undefined)).toEqual(['CVE-0000-0000'])
  ahead.close()
  single.close()
})
