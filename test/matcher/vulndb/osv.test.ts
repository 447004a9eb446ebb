// OSV records of every distribution that has them, field by field (MAT-076 to 079, 082).
import { describe, expect, test } from 'bun:test'
import type { Rule } from '../../../core/matching/advisory.ts'
import { buildOf } from './support.ts'

type Event = Record<string, string>
const affected = (ecosystem: string, name: string, events: Event[], more: object = {}): object => ({
  package: { ecosystem, name },
  ranges: [{ type: 'ECOSYSTEM', events }],
  ...more,
})

const record = (id: string, list: object[], more: object = {}): object => ({
  schema_version: '1.7.0',
  id,
  modified: '2026-01-02T03:04:05Z',
  published: '2026-01-01T00:00:00Z',
  affected: list,
  ...more,
})

const rules = async (
  source: string,
  release: string,
  name: string,
  records: object[],
  by: 'source' | 'binary' = 'source',
): Promise<readonly Rule[]> => {
  const lines = records.map(each => JSON.stringify(each)).join('\n')
  using built = await buildOf({ [source]: { 'all.jsonl': lines } })
  return built.rules(release, name, by)
}

const bounds = (list: readonly Rule[]): object[] =>
  list.map(({ introduced, fixed, last_affected, versions, status }) =>
    JSON.parse(JSON.stringify({ introduced, fixed, last_affected, versions, status })),
  )

describe('ranges', () => {
  const of = async (events: Event[], more: object = {}) =>
    bounds(
      await rules('ubuntu', 'ubuntu:22.04', 'curl', [
        record('UBUNTU-CVE-2024-1', [affected('Ubuntu:22.04:LTS', 'curl', events, more)], {
          upstream: ['CVE-2024-0001'],
        }),
      ]),
    )

  test('[MAT-076] introduced 0 is the beginning, and each introduced goes with the next fixed or last_affected', async () => {
    expect(await of([{ introduced: '0' }, { fixed: '2' }])).toEqual([{ fixed: '2', status: 'fixed' }])
    expect(
      await of([{ introduced: '1' }, { fixed: '2' }, { introduced: '3' }, { last_affected: '4' }, { introduced: '5' }]),
    ).toEqual([
      { introduced: '1', fixed: '2', status: 'fixed' },
      { introduced: '3', last_affected: '4', status: 'no_fix' },
      { introduced: '5', status: 'no_fix' },
    ])
  })

  test('[MAT-076] versions count only where no range is given, and other types of range never', async () => {
    expect(await of([{ introduced: '0' }], { versions: ['1', '2'] })).toEqual([{ status: 'no_fix' }])
    expect(await of([], { ranges: [], versions: ['2', '1'] })).toEqual([{ versions: ['1', '2'], status: 'no_fix' }])
    expect(await of([], { ranges: [{ type: 'GIT', events: [{ introduced: '0' }] }] })).toEqual([])
  })

  test('[MAT-076] withdrawn records and unknown ecosystems make no rows', async () => {
    const one = affected('Ubuntu:22.04:LTS', 'curl', [{ introduced: '0' }])
    const other = affected('Debian:12', 'curl', [{ introduced: '0' }])
    const found = await rules('ubuntu', 'ubuntu:22.04', 'curl', [
      record('USN-1-1', [one], { withdrawn: '2026-01-01T00:00:00Z' }),
      record('USN-2-1', [other]),
    ])
    expect(found).toEqual([])
  })
})

describe('identity', () => {
  const ids = async (source: string, ecosystem: string, release: string, id: string, more: object) => {
    const by = source === 'almalinux' ? 'binary' : 'source'
    const found = await rules(
      source,
      release,
      'p',
      [record(id, [affected(ecosystem, 'p', [{ introduced: '0' }, { fixed: '2-1' }])], more)],
      by,
    )
    return found.map(({ vuln, advisories }) => [vuln, ...advisories])
  }
  const ubuntu = (id: string, more: object) => ids('ubuntu', 'Ubuntu:22.04:LTS', 'ubuntu:22.04', id, more)
  const rocky = (id: string, more: object) => ids('rocky', 'Rocky Linux:9', 'rocky:9', id, more)
  const alma = (id: string, more: object) => ids('almalinux', 'AlmaLinux:9', 'almalinux:9', id, more)

  test('[MAT-077] the CVE of upstream, else of aliases, else of related, several giving a row each', async () => {
    const all = { upstream: ['CVE-2024-0001'], aliases: ['CVE-2024-0002'], related: ['CVE-2024-0003'] }
    expect(await ubuntu('USN-1-1', all)).toEqual([['CVE-2024-0001', 'USN-1-1']])
    expect(await ubuntu('USN-1-1', { ...all, upstream: [] })).toEqual([['CVE-2024-0002', 'USN-1-1']])
    expect(await alma('ALSA-2024:1', { related: ['CVE-2024-0004', 'CVE-2024-0003'] })).toEqual([
      ['CVE-2024-0003', 'ALSA-2024:1'],
      ['CVE-2024-0004', 'ALSA-2024:1'],
    ])
  })

  test('[MAT-077] a republished CVE names no advisory', async () => {
    expect(await ubuntu('UBUNTU-CVE-2024-0001', { upstream: ['CVE-2024-0001'] })).toEqual([['CVE-2024-0001']])
  })

  test('[MAT-077] without a CVE a record is its own vulnerability, unless it is a bug fix or an enhancement', async () => {
    expect(await rocky('RLSA-2024:1', {})).toEqual([['RLSA-2024:1', 'RLSA-2024:1']])
    for (const id of ['RLBA-2024:1', 'RLEA-2024:1']) expect(await rocky(id, {})).toEqual([])
    for (const id of ['ALBA-2024:1', 'ALEA-2024:1']) expect(await alma(id, {})).toEqual([])
    expect(await alma('ALBA-2024:1', { related: ['CVE-2024-0001'] })).toEqual([['CVE-2024-0001', 'ALBA-2024:1']])
  })
})

describe('Ubuntu', () => {
  const one = async (ecosystem: string, more: object = {}, entry: object = {}) =>
    await rules('ubuntu', 'ubuntu:18.04', 'linux', [
      record(
        'UBUNTU-CVE-2024-0001',
        [affected(ecosystem, 'linux', [{ introduced: '0' }, { fixed: '4.15.0-1' }], entry)],
        {
          upstream: ['CVE-2024-0001'],
          ...more,
        },
      ),
    ])

  test('[MAT-082] Pro is the channel esm, and special builds have a flavour', async () => {
    const of = async (ecosystem: string) => (await one(ecosystem)).map(({ channel, flavour }) => [channel, flavour])
    expect(await of('Ubuntu:18.04:LTS')).toEqual([['standard', undefined]])
    expect(await of('Ubuntu:18.04')).toEqual([['standard', undefined]])
    expect(await of('Ubuntu:Pro:18.04:LTS')).toEqual([['esm', undefined]])
    expect(await of('Ubuntu:Pro:FIPS:18.04:LTS')).toEqual([['esm', 'fips']])
    expect(await of('Ubuntu:Pro:FIPS-updates:18.04:LTS')).toEqual([['esm', 'fips']])
    expect(await of('Ubuntu:Pro:Realtime:18.04:LTS')).toEqual([['esm', 'realtime']])
    expect(await of('Ubuntu:Pro:18.04:LTS:Realtime:Kernel')).toEqual([['esm', 'realtime']])
    for (const other of [
      'Ubuntu:Pro:Unheard-of:18.04:LTS',
      'Ubuntu:18.04:LTS:for:NVIDIA:BlueField',
      'Ubuntu:Pro:18.04:LTS:Kernel',
    ])
      expect(await of(other)).toEqual([])
  })

  test('[MAT-082] severity is the entry of type Ubuntu, else the priority of the package; untriaged is none', async () => {
    const of = async (more: object, entry: object = {}) =>
      (await one('Ubuntu:18.04:LTS', more, entry)).map(({ severity, minor }) => [severity, minor])
    const priority = { ecosystem_specific: { ubuntu_priority: 'high' } }
    expect(await of({ severity: [{ type: 'Ubuntu', score: 'medium' }] }, priority)).toEqual([['medium', false]])
    expect(await of({}, priority)).toEqual([['high', false]])
    expect(await of({ severity: [{ type: 'Ubuntu', score: 'negligible' }] })).toEqual([['negligible', true]])
    expect(await of({ severity: [{ type: 'Ubuntu', score: 'low' }] })).toEqual([['low', true]])
    expect(await of({ severity: [{ type: 'Ubuntu', score: 'untriaged' }] })).toEqual([['', false]])
  })

  test('[MAT-086] a score is computed from the vector, and names its source', async () => {
    const severity = [
      { type: 'CVSS_V3', score: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' },
      { type: 'Ubuntu', score: 'high' },
    ]
    const lines = record('UBUNTU-CVE-2024-0001', [affected('Ubuntu:18.04:LTS', 'linux', [{ introduced: '0' }])], {
      upstream: ['CVE-2024-0001'],
      severity,
      details: 'First line.\n\nSecond.',
      references: [
        { type: 'REPORT', url: 'https://ubuntu.com/security/CVE-2024-0001' },
        { url: 'javascript:alert(1)' },
      ],
    })
    using built = await buildOf({ ubuntu: { 'one.json': lines } })
    expect(built.reader.vulnerability('CVE-2024-0001')).toMatchObject({
      cvss_score: 9.8,
      score_source: 'ubuntu',
      title: 'First line.',
      published_ms: Date.UTC(2026, 0, 1),
      references: ['https://ubuntu.com/security/CVE-2024-0001'],
    })
  })
})

describe('AlmaLinux, Rocky, SUSE', () => {
  const fixed = (version: string): Event[] => [{ introduced: '0' }, { fixed: version }]

  test('[MAT-078] AlmaLinux names binary packages, the others source packages', async () => {
    const alma = record('ALSA-2024:1', [affected('AlmaLinux:9', 'openssl-libs', fixed('1:3.0.7-1.el9'))], {
      related: ['CVE-2024-0001'],
      summary: 'Important: openssl security update',
    })
    expect(await rules('almalinux', 'almalinux:9', 'openssl-libs', [alma], 'binary')).toMatchObject([
      { vuln: 'CVE-2024-0001', fixed: '1:3.0.7-1.el9', severity: 'important', minor: false },
    ])
    expect(await rules('almalinux', 'almalinux:9', 'openssl-libs', [alma], 'source')).toEqual([])
  })

  test("[MAT-078] SUSE's binaries limit the rule, and products and modules are their service pack", async () => {
    const entry = affected('SUSE:Linux Enterprise Module for Basesystem 15 SP5', 'openssl-1_1', fixed('1.1.1l-1'), {
      ecosystem_specific: { binaries: [{ libopenssl1_1: '1.1.1l-1', 'openssl-1_1': '1.1.1l-1' }] },
    })
    const suse = record('SUSE-SU-2024:1-1', [entry], { upstream: ['CVE-2024-0001'] })
    expect(await rules('suse', 'suse:15.5', 'openssl-1_1', [suse])).toMatchObject([
      { binaries: ['libopenssl1_1', 'openssl-1_1'], advisories: ['SUSE-SU-2024:1-1'] },
    ])
    for (const [product, release] of [
      ['Linux Enterprise Server 11 SP4-LTSS-EXTREME-CORE', 'suse:11.4'],
      ['Linux Enterprise Server 15 SP5-LTSS', 'suse:15.5'],
      ['Linux Enterprise Server LTSS Extended Security 15 SP5', 'suse:15.5'],
      ['Linux Enterprise High Performance Computing 15 SP5', 'suse:15.5'],
      ['Linux Enterprise Server 16.0', 'suse:16.0'],
      ['Linux Enterprise Server for SAP applications 16.0', 'suse:16.0'],
      ['Linux Enterprise Server 15', 'suse:15'],
      ['Linux Enterprise Micro 5.5', 'suse:linux enterprise micro 5.5'],
      ['Linux Micro 6.1', 'suse:linux micro 6.1'],
    ]) {
      const of = [record('SUSE-SU-2024:2-1', [affected(`SUSE:${product}`, 'curl', fixed('8-1'))])]
      expect([product, await rules('suse', release!, 'curl', of)]).toMatchObject([product, [{ fixed: '8-1' }]])
    }
    const leap = record('openSUSE-SU-2024:1-1', [affected('openSUSE:Leap 15.6', 'curl', fixed('8-1'))], {
      upstream: ['CVE-2024-0001'],
    })
    expect(await rules('opensuse', 'opensuse:15.6', 'curl', [leap])).toHaveLength(1)
  })

  test('[MAT-079] several fixed versions of one package and module in one record: the lowest clears', async () => {
    const rocky = record(
      'RLSA-2024:1',
      ['2:4.9-10.el9', '2:4.9-9.el9', '2:4.10-1.el9'].map(version =>
        affected('Rocky Linux:9', 'podman', fixed(version)),
      ),
      { upstream: ['CVE-2024-0001'] },
    )
    expect((await rules('rocky', 'rocky:9', 'podman', [rocky])).map(rule => rule.fixed)).toEqual(['2:4.9-9.el9'])
    const other = record('RLSA-2024:2', [affected('Rocky Linux:9', 'podman', fixed('2:5.0-1.el9'))], {
      upstream: ['CVE-2024-0001'],
    })
    const both = await rules('rocky', 'rocky:9', 'podman', [rocky, other])
    expect(both.map(rule => [rule.fixed, ...rule.advisories])).toEqual([
      ['2:4.9-9.el9', 'RLSA-2024:1'],
      ['2:5.0-1.el9', 'RLSA-2024:2'],
    ])
  })

  test('[MAT-117] the module of a build is read from the title', async () => {
    const of = async (summary: string) => {
      const version = '1:18.19.0-1.module_el8.9.0+3731+490d3ecc'
      const alma = record('ALSA-2024:1', [affected('AlmaLinux:8', 'nodejs', fixed(version))], {
        related: ['CVE-2024-0001'],
        summary,
      })
      return (await rules('almalinux', 'almalinux:8', 'nodejs', [alma], 'binary')).map(({ module }) => module)
    }
    expect(await of('Moderate: nodejs:18 security update')).toEqual(['nodejs:18'])
    expect(await of('Important: virt:rhel and virt-devel:rhel security update')).toEqual([
      'virt-devel:rhel',
      'virt:rhel',
    ])
    expect(await of('Moderate: nodejs security update')).toEqual([undefined])
  })

  test('[MAT-118] marks of special builds are flavours', async () => {
    const of = async (version: string) => {
      const rocky = record('RLSA-2024:1', [affected('Rocky Linux:8', 'openssl', fixed(version))], {
        upstream: ['CVE-2024-0001'],
      })
      return (await rules('rocky', 'rocky:8', 'openssl', [rocky])).map(({ flavour }) => flavour)
    }
    expect(await of('10:1.1.1k-9.el8_6_fips')).toEqual(['fips'])
    expect(await of('2:2.28-189.5.ksplice1.el8')).toEqual(['ksplice'])
    expect(await of('5.14.0-1.realtime.el8')).toEqual(['realtime'])
    expect(await of('1:1.1.1k-9.el8')).toEqual([undefined])
  })
})
