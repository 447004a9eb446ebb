// Feeds of distributions as large as the real ones, made from a seed: what an import costs depends on how many records
// they have, of which form and how long, and not on what they say. `bun bench/security/feeds.ts SOURCE PATH COUNT`
// writes one.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomFrom } from '../../test/support/random.ts'

const RELEASES = ['bullseye', 'bookworm', 'trixie', 'forky', 'sid'] as const
const SOURCES = 4_000
const TEXT =
  'A flaw was found in the handling of requests by the package, by which a remote attacker who sends many of them can reach memory that was freed.'

const vulnOf = (index: number): string => `CVE-${2010 + (index % 16)}-${10_000 + index}`
const versionOf = (random: () => number): string =>
  `${Math.floor(random() * 9)}.${Math.floor(random() * 40)}.${Math.floor(random() * 90)}-${1 + Math.floor(random() * 5)}`

/** The security tracker of Debian: an object of sources, each with its vulnerabilities. */
export function debianTracker(vulnerabilities: number): string {
  const random = randomFrom(3)
  const tracker: Record<string, Record<string, unknown>> = {}
  for (let index = 0; index < vulnerabilities; index++) {
    const isOpen = random() < 0.2
    const release = isOpen
      ? { status: 'open', repositories: {}, urgency: 'unimportant' }
      : { status: 'resolved', repositories: {}, fixed_version: versionOf(random), urgency: 'not yet assigned' }
    const source = `source-${Math.floor(random() ** 2 * SOURCES)}`
    tracker[source] ??= {}
    tracker[source][vulnOf(index)] = {
      description: TEXT,
      scope: 'remote',
      releases: Object.fromEntries(RELEASES.map(name => [name, release])),
    }
  }
  return JSON.stringify(tracker)
}

/** OSV records of Ubuntu, one a line: each of four releases with the binaries that it is built into. */
function ubuntuRecords(vulnerabilities: number): string {
  const random = randomFrom(4)
  const lines: string[] = []
  for (let index = 0; index < vulnerabilities; index++) {
    const name = `source-${Math.floor(random() ** 2 * SOURCES)}`
    const fixed = versionOf(random)
    const binaries = Array.from({ length: 8 }, (_, at) => ({
      binary_name: `lib${name}-${at}`,
      binary_version: fixed,
    }))
    const affected = ['Ubuntu:20.04:LTS', 'Ubuntu:22.04:LTS', 'Ubuntu:24.04:LTS', 'Ubuntu:Pro:18.04:LTS'].map(
      ecosystem => ({
        package: { ecosystem, name, purl: `pkg:deb/ubuntu/${name}@${fixed}?arch=source` },
        ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
        versions: Array.from({ length: 6 }, () => versionOf(random)),
        ecosystem_specific: { availability: 'No subscription required', ubuntu_priority: 'medium', binaries },
      }),
    )
    const vuln = vulnOf(index)
    lines.push(
      JSON.stringify({
        schema_version: '1.7.0',
        id: `UBUNTU-${vuln}`,
        details: TEXT,
        upstream: [vuln],
        severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N' }],
        modified: '2026-01-02T03:04:05Z',
        published: '2026-01-01T00:00:00Z',
        references: [{ type: 'REPORT', url: `https://ubuntu.com/security/${vuln}` }],
        affected,
      }),
    )
  }
  return lines.join('\n')
}

const cpeProduct = (id: string, cpe: string): object => ({
  category: 'product_name',
  name: id,
  product: { name: id, product_id: id, product_identification_helper: { cpe } },
})

/** A file of Red Hat's with two streams, in which `packages` sources and their binaries are fixed. */
function vexOf(vuln: string, packages: number, random: () => number): string {
  const streams = ['BaseOS-8', 'AppStream-9']
  const components = Array.from({ length: packages }, () => {
    const name = `source-${Math.floor(random() ** 2 * SOURCES)}`
    const version = `${versionOf(random)}.el9`
    return ['src', 'x86_64', 'aarch64', 's390x', 'ppc64le'].map(arch => ({
      id: `${name}-0:${version}.${arch}`,
      purl: `pkg:rpm/redhat/${name}@${version}?arch=${arch}`,
    }))
  }).flat()
  const named = new Map(components.map(each => [each.id, each]))
  const ids = streams.flatMap(stream => [...named.keys()].map(id => `${stream}:${id}`))
  return JSON.stringify({
    document: {
      aggregate_severity: { text: 'Moderate' },
      category: 'csaf_vex',
      csaf_version: '2.0',
      tracking: {
        current_release_date: '2026-05-01T00:00:00+00:00',
        id: vuln,
        initial_release_date: '2026-01-01T00:00:00+00:00',
      },
    },
    product_tree: {
      branches: [
        {
          category: 'vendor',
          name: 'Red Hat',
          branches: [
            cpeProduct('BaseOS-8', 'cpe:/o:redhat:enterprise_linux:8::baseos'),
            cpeProduct('AppStream-9', 'cpe:/a:redhat:enterprise_linux:9::appstream'),
            ...[...named.values()].map(({ id, purl }) => ({
              category: 'product_version',
              name: id,
              product: { name: id, product_id: id, product_identification_helper: { purl } },
            })),
          ],
        },
      ],
      relationships: streams.flatMap(stream =>
        [...named.keys()].map(id => ({
          category: 'default_component_of',
          full_product_name: { name: `${id} as a component of ${stream}`, product_id: `${stream}:${id}` },
          product_reference: id,
          relates_to_product_reference: stream,
        })),
      ),
    },
    vulnerabilities: [
      {
        cve: vuln,
        title: TEXT,
        release_date: '2026-02-01T00:00:00+00:00',
        product_status: { fixed: ids },
        remediations: [
          { category: 'vendor_fix', url: 'https://access.redhat.com/errata/RHSA-2026:1405', product_ids: ids },
        ],
        threats: [{ category: 'impact', details: 'Moderate' }],
      },
    ],
  })
}

/** A folder of Red Hat's VEX files, some of them a great deal longer than most. */
function writeVexFolder(folder: string, vulnerabilities: number): void {
  const random = randomFrom(5)
  mkdirSync(folder, { recursive: true })
  for (let index = 0; index < vulnerabilities; index++) {
    const vuln = vulnOf(index)
    writeFileSync(join(folder, `${vuln.toLowerCase()}.json`), vexOf(vuln, 1 + Math.floor(random() ** 4 * 60), random))
  }
}

const writers: Readonly<Record<string, (path: string, vulnerabilities: number) => void>> = {
  debian: (path, count) => writeFileSync(path, debianTracker(count)),
  ubuntu: (path, count) => writeFileSync(path, ubuntuRecords(count)),
  redhat: writeVexFolder,
}

if (import.meta.main) {
  const [source = '', path = '', count = ''] = process.argv.slice(2)
  const write = writers[source]
  if (write === undefined) throw new Error(`a feed is of one of ${Object.keys(writers).join(', ')}`)
  write(path, Number(count))
}
