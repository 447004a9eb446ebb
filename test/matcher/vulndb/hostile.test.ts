// Feeds that were changed at random: whatever comes of them, the import ends, and what it writes is whole.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { checkFile } from '../../../apps/matcher/vulndb/check-file.ts'
import { buildOf } from './support.ts'

const SEED = Number(process.env.SVC_FUZZ_SEED ?? 0) || Date.now() % 1_000_000
const RUNS = Number(process.env.SVC_FUZZ_RUNS ?? 400)
setDefaultTimeout(Math.max(120_000, RUNS * 200))

function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const osv = (id: string, ecosystem: string, fixed: string): object => ({
  id,
  summary: 'Important: nodejs:18 security update',
  related: ['CVE-2024-0001', 'CVE-2024-0002'],
  severity: [{ type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' }],
  affected: [
    {
      package: { ecosystem, name: 'nodejs' },
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
      versions: ['1', '2'],
      ecosystem_specific: { binaries: [{ nodejs: fixed }], ubuntu_priority: 'high' },
    },
  ],
  references: [{ type: 'WEB', url: 'https://example.test/' }],
})

const debian = JSON.stringify({
  bash: {
    'CVE-2024-0001': {
      description: 'x',
      releases: {
        bookworm: { status: 'resolved', fixed_version: '1-1', urgency: 'low**' },
        trixie: { status: 'open', urgency: 'high', nodsa: '' },
      },
    },
  },
})

const seeds: readonly (readonly [string, string, string])[] = [
  ['debian', 'tracker.json', debian],
  ['debian-advisories', 'DSA.json', JSON.stringify(osv('DSA-1-1', 'Debian:12', '1-1'))],
  ['ubuntu', 'all.jsonl', JSON.stringify(osv('USN-1-1', 'Ubuntu:Pro:18.04:LTS', '1-1'))],
  ['almalinux', 'one.json', JSON.stringify(osv('ALSA-1:1', 'AlmaLinux:8', '1:18-1.module_el8+1'))],
  ['suse', 'one.json', JSON.stringify(osv('SUSE-SU-1:1', 'SUSE:Linux Enterprise Server 15 SP5', '1-1'))],
  [
    'alpine',
    'main.json',
    JSON.stringify({
      distroversion: 'v3.20',
      reponame: 'main',
      packages: [{ pkg: { name: 'a', secfixes: { '1-r0': ['CVE-2024-0001 CVE-2024-0002'] } } }],
    }),
  ],
  [
    'redhat',
    'cve.json',
    JSON.stringify({
      document: { tracking: { id: 'x' } },
      product_tree: {
        branches: [
          { product: { product_id: 'r', product_identification_helper: { cpe: 'cpe:/o:redhat:enterprise_linux:9' } } },
          { product: { product_id: 'b', product_identification_helper: { purl: 'pkg:rpm/redhat/b@1-1?arch=src' } } },
        ],
        relationships: [
          { full_product_name: { product_id: 'r:b' }, product_reference: 'b', relates_to_product_reference: 'r' },
        ],
      },
      vulnerabilities: [
        { cve: 'CVE-2024-0001', product_status: { fixed: ['r:b'] }, scores: [{ cvss_v3: { baseScore: 7 } }] },
      ],
    }),
  ],
  [
    'scores',
    'nvd.json',
    JSON.stringify({
      vulnerabilities: [
        { cve: { id: 'CVE-2024-0001', metrics: { cvssMetricV31: [{ cvssData: { vectorString: 'CVSS:3.1/AV:N' } }] } } },
      ],
    }),
  ],
  ['kev', 'kev.json', JSON.stringify({ vulnerabilities: [{ cveID: 'CVE-2024-0001', dueDate: '2026-01-01' }] })],
  ['epss', 'epss.csv', '#x\ncve,epss,percentile\nCVE-2024-0001,0.5,0.5\n'],
  ['eol', 'debian.json', JSON.stringify([{ cycle: '12', eol: '2028-06-30', codename: 'Bookworm' }])],
]

/** What a value of JSON is swapped with. */
const odd = [
  'null',
  '-1e309',
  '""',
  '[]',
  '{}',
  '"__proto__"',
  '"constructor"',
  '1',
  'true',
  '"\\u0000\\ud800"',
  `"${'9'.repeat(5000)}"`,
]

function changed(text: string, random: () => number): string {
  const at = Math.floor(random() * text.length)
  const length = Math.floor(random() * 8)
  switch (Math.floor(random() * 5)) {
    case 0:
      return text.slice(0, at)
    case 1:
      return text.slice(0, at) + text.slice(at + length)
    case 2:
      return text.slice(0, at) + String.fromCharCode(Math.floor(random() * 300)) + text.slice(at + 1)
    case 3:
      return text.slice(0, at) + text.slice(at, at + 40).repeat(3) + text.slice(at + 40)
    default: {
      const values = [...text.matchAll(/"(?:[^"\\]|\\.)*"|\btrue\b|-?\d+/g)]
      const value = values[Math.floor(random() * values.length)]
      if (value === undefined) return text
      const other = odd[Math.floor(random() * odd.length)]!
      return text.slice(0, value.index) + other + text.slice(value.index + value[0].length)
    }
  }
}

test('[MAT-066] [MAT-098] feeds that were changed at random end in a whole file or in a refusal with a reason', async () => {
  console.log(`seed ${SEED}: SVC_FUZZ_SEED=${SEED} repeats this`)
  const random = randomOf(SEED)
  let taken = 0
  let refused = 0
  for (let run = 0; run < RUNS; run++) {
    const [source, name, text] = seeds[run % seeds.length]!
    let feed = text
    for (let round = Math.floor(random() * 4); round >= 0; round--) feed = changed(feed, random)
    try {
      using built = await buildOf({ [source]: { [name]: feed } })
      expect(checkFile(built.file)).toBe(2026112201)
      taken += 1
    } catch (error) {
      expect(String(error)).toMatch(new RegExp(`^Error: ${source}: .+`))
      expect(String(error)).not.toContain('malformed')
      refused += 1
    }
  }
  expect(taken).toBeGreaterThan(RUNS / 20)
  expect(refused).toBeGreaterThan(RUNS / 20)
})
