// Alpine's secdb and Red Hat's VEX files, field by field (MAT-083 to 086).
import { describe, expect, test } from 'bun:test'
import { buildOf } from './support.ts'

const secdb = (secfixes: unknown, more: object = {}): object => ({
  distroversion: 'v3.20',
  reponame: 'main',
  urlprefix: 'https://dl-cdn.alpinelinux.org/alpine',
  apkurl: '{{urlprefix}}/{{distroversion}}/{{reponame}}/{{arch}}/{{pkg.name}}-{{pkg.ver}}.apk',
  archs: ['x86_64'],
  packages: [{ pkg: { name: 'openssl', secfixes } }],
  ...more,
})

describe('Alpine', () => {
  test('[MAT-083] an advisory of GitHub without any digit is an id; a word is none', async () => {
    using built = await buildOf({
      alpine: { 'main.json': secdb({ '2-r0': ['CVE-2024-1 GHSA-cfgh-jmpq-rvwx fixed-by'] }) },
    })
    expect(built.rules('alpine:3.20', 'openssl').map(({ vuln }) => vuln)).toEqual(['CVE-2024-1', 'GHSA-cfgh-jmpq-rvwx'])
  })

  test('[MAT-083] a version and an id are a rule each, an entry of two ids two, and version 0 none', async () => {
    const fixes = {
      '3.3.1-r1': ['CVE-2024-4741', 'CVE-2024-4603 CVE-2024-2511'],
      '0': ['CVE-2022-0001'],
      '3.3.2-r0': ['CVE-2024-5535 (+ regression fix)'],
    }
    using built = await buildOf({ alpine: { 'main.json': secdb(fixes) } })
    expect(built.rules('alpine:3.20', 'openssl').map(({ vuln, fixed }) => [vuln, fixed])).toEqual([
      ['CVE-2024-2511', '3.3.1-r1'],
      ['CVE-2024-4603', '3.3.1-r1'],
      ['CVE-2024-4741', '3.3.1-r1'],
      ['CVE-2024-5535', '3.3.2-r0'],
    ])
    expect(built.rules('alpine:3.20', 'openssl')[0]).toEqual({
      vuln: 'CVE-2024-2511',
      advisories: [],
      fixed: '3.3.1-r1',
      status: 'fixed',
      channel: 'standard',
      severity: '',
      minor: false,
      no_distro_fix: false,
    })
    expect(built.reader.coversDistro('alpine')).toBeTrue()
  })

  test('[MAT-088] several files are told apart by distroversion and reponame', async () => {
    using built = await buildOf({
      alpine: {
        'a/one.json': secdb({ '1-r0': ['CVE-2024-0001'] }),
        'a/two.json': secdb({ '1-r0': ['CVE-2024-0002'] }, { reponame: 'community' }),
        'a/three.json': secdb({ '2-r0': ['CVE-2024-0001'] }, { distroversion: 'edge' }),
      },
    })
    expect(built.rules('alpine:3.20', 'openssl').map(({ vuln }) => vuln)).toEqual(['CVE-2024-0001', 'CVE-2024-0002'])
    expect(built.rules('alpine:edge', 'openssl').map(({ fixed }) => fixed)).toEqual(['2-r0'])
  })

  test('packages without secfixes are records, and what is no secdb file is refused', async () => {
    using built = await buildOf({ alpine: { 'main.json': secdb(null) } })
    expect(built.outcomes).toMatchObject([{ records: 1, rejected: 0 }])
    await expect(buildOf({ alpine: { 'main.json': { packages: [] } } })).rejects.toThrow(
      'is not a secdb file of Alpine',
    )
  })
})

const product = (id: string, helper: object): object => ({
  category: 'product_name',
  name: id,
  product: { name: id, product_id: id, product_identification_helper: helper },
})
const component = (id: string, purl: string): object => ({
  category: 'product_version',
  name: id,
  product: { name: id, product_id: id, product_identification_helper: { purl } },
})
const relation = (parent: string, reference: string): object => ({
  category: 'default_component_of',
  full_product_name: { name: `${reference} of ${parent}`, product_id: `${parent}:${reference}` },
  product_reference: reference,
  relates_to_product_reference: parent,
})

const MODULE = 'nodejs:18:8060020230306170312:ad008a3a'

/** A file of Red Hat's with a base stream, an extended one, a module and a product that is an image. */
const vex = (vulnerability: object, cve = 'CVE-2024-0001'): object => ({
  document: {
    aggregate_severity: { text: 'Moderate' },
    category: 'csaf_vex',
    csaf_version: '2.0',
    tracking: {
      current_release_date: '2024-05-01T00:00:00+00:00',
      id: cve,
      initial_release_date: '2024-01-01T00:00:00+00:00',
    },
  },
  product_tree: {
    branches: [
      {
        category: 'vendor',
        name: 'Red Hat',
        branches: [
          product('BaseOS-8', { cpe: 'cpe:/o:redhat:enterprise_linux:8::baseos' }),
          product('AppStream-8', { cpe: 'cpe:/a:redhat:enterprise_linux:8::appstream' }),
          product('BaseOS-8.6.EUS', { cpe: 'cpe:/o:redhat:rhel_eus:8.6::baseos' }),
          product('red_hat_enterprise_linux_9', { cpe: 'cpe:/o:redhat:enterprise_linux:9' }),
          component('openssl-1:1.1.1k-9.el8_7.src', 'pkg:rpm/redhat/openssl@1.1.1k-9.el8_7?arch=src&epoch=1'),
          component('openssl-1:1.1.1k-12.el8_9.src', 'pkg:rpm/redhat/openssl@1.1.1k-12.el8_9?arch=src&epoch=1'),
          component(
            'openssl-libs-1:1.1.1k-9.el8_7.x86_64',
            'pkg:rpm/redhat/openssl-libs@1.1.1k-9.el8_7?arch=x86_64&epoch=1',
          ),
          component('nodejs-1:18.14.2-2.src', 'pkg:rpm/redhat/nodejs@18.14.2-2.module%2Bel8?arch=src&epoch=1'),
          component(MODULE, 'pkg:rpmmod/redhat/nodejs@18:8060020230306170312:ad008a3a'),
          component('openssl', 'pkg:rpm/redhat/openssl?arch=src'),
          component('libssl', 'pkg:rpm/redhat/libssl'),
          component('php:8.1/php', 'pkg:rpmmod/redhat/php:8.1/php'),
          component('ubi9/nodejs', 'pkg:oci/nodejs?repository_url=registry.access.redhat.com/ubi9'),
        ],
      },
    ],
    relationships: [
      relation('BaseOS-8', 'openssl-1:1.1.1k-9.el8_7.src'),
      relation('BaseOS-8', 'openssl-1:1.1.1k-12.el8_9.src'),
      relation('BaseOS-8', 'openssl-libs-1:1.1.1k-9.el8_7.x86_64'),
      relation('BaseOS-8.6.EUS', 'openssl-1:1.1.1k-9.el8_7.src'),
      relation('AppStream-8', MODULE),
      relation(`AppStream-8:${MODULE}`, 'nodejs-1:18.14.2-2.src'),
      relation('red_hat_enterprise_linux_9', 'openssl'),
      relation('red_hat_enterprise_linux_9', 'nodejs:16/nodejs'),
      relation('red_hat_enterprise_linux_9', 'php:8.1/php'),
      relation('red_hat_enterprise_linux_9', 'libssl'),
      relation('red_hat_enterprise_linux_9', 'ubi9/nodejs'),
    ],
  },
  vulnerabilities: [{ cve, title: 'openssl: a bug', release_date: '2024-02-01T00:00:00+00:00', ...vulnerability }],
})

const redhat = async (vulnerability: object) => await buildOf({ redhat: { 'cve-2024-0001.json': vex(vulnerability) } })

describe('Red Hat', () => {
  test('[MAT-084] fixed products give the EVR of the purl by source package, the lowest of a stream, with its erratum', async () => {
    const low = 'BaseOS-8:openssl-1:1.1.1k-9.el8_7.src'
    using built = await redhat({
      product_status: {
        fixed: [low, 'BaseOS-8:openssl-1:1.1.1k-12.el8_9.src', 'BaseOS-8:openssl-libs-1:1.1.1k-9.el8_7.x86_64'],
      },
      remediations: [
        { category: 'vendor_fix', url: 'https://access.redhat.com/errata/RHSA-2023:1405', product_ids: [low] },
      ],
      threats: [{ category: 'impact', details: 'Important' }],
    })
    expect(built.rules('rhel:8', 'openssl')).toEqual([
      {
        vuln: 'CVE-2024-0001',
        advisories: ['RHSA-2023:1405'],
        fixed: '1:1.1.1k-9.el8_7',
        status: 'fixed',
        channel: 'standard',
        severity: 'important',
        minor: false,
        no_distro_fix: false,
      },
    ])
    expect(built.rules('rhel:8', 'openssl-libs', 'binary')).toEqual([])
  })

  test('[MAT-118] a special build is a fix of its own, which clears no other', async () => {
    const file = JSON.stringify(
      vex({
        product_status: {
          fixed: ['BaseOS-8:openssl-1:1.1.1k-9.el8_7.src', 'BaseOS-8:openssl-1:1.1.1k-12.el8_9.src'],
        },
      }),
    )
    using built = await buildOf({ redhat: { 'cve-2024-0001.json': file.replaceAll('-9.el8_7', '-9.el8_7_fips') } })
    expect(built.rules('rhel:8', 'openssl').map(({ fixed, flavour }) => [fixed, flavour])).toEqual([
      ['1:1.1.1k-12.el8_9', undefined],
      ['1:1.1.1k-9.el8_7_fips', 'fips'],
    ])
  })

  test('[MAT-084] known_affected is no_fix, with no_fix_planned wont_fix; under investigation is undetermined', async () => {
    const id = 'red_hat_enterprise_linux_9:openssl'
    const of = async (vulnerability: object) => {
      using built = await redhat(vulnerability)
      return built
        .rules('rhel:9', 'openssl')
        .map(({ status, no_distro_fix, severity, minor }) => [status, no_distro_fix, severity, minor])
    }
    expect(await of({ product_status: { known_affected: [id] } })).toEqual([['no_fix', false, 'moderate', false]])
    const planned = { remediations: [{ category: 'no_fix_planned', details: 'Will not fix', product_ids: [id] }] }
    expect(await of({ product_status: { known_affected: [id] }, ...planned })).toEqual([
      ['wont_fix', true, 'moderate', false],
    ])
    expect(await of({ product_status: { under_investigation: [id] } })).toEqual([
      ['undetermined', false, 'moderate', false],
    ])
    expect(await of({ product_status: { known_not_affected: [id] } })).toEqual([])
    const low = { threats: [{ category: 'impact', details: 'Low', product_ids: [id] }] }
    expect(await of({ product_status: { known_affected: [id] }, ...low })).toEqual([['no_fix', false, 'low', true]])
  })

  test('[MAT-084] binaries are left out where the same release names its sources', async () => {
    const id = (name: string): string => `red_hat_enterprise_linux_9:${name}`
    using both = await redhat({ product_status: { known_affected: [id('openssl'), id('libssl')] } })
    expect(both.rules('rhel:9', 'openssl')).toHaveLength(1)
    expect(both.rules('rhel:9', 'libssl')).toEqual([])
    using older = await redhat({ product_status: { known_affected: [id('libssl')] } })
    expect(older.rules('rhel:9', 'libssl')).toMatchObject([{ status: 'no_fix' }])
  })

  test('[MAT-084] a package of a module is affected by its older purl too, and a module alone is no package', async () => {
    const id = 'red_hat_enterprise_linux_9:php:8.1/php'
    const status = { product_status: { known_affected: [id, `AppStream-8:${MODULE}`] } }
    using built = await redhat(status)
    expect(built.rules('rhel:9', 'php')).toMatchObject([{ module: 'php:8.1', status: 'no_fix' }])
    expect(built.rules('rhel:8', MODULE)).toEqual([])
    using left = await redhat({ ...status, remediations: [{ category: 'no_fix_planned', product_ids: [id] }] })
    expect(left.rules('rhel:9', 'php')).toMatchObject([{ module: 'php:8.1', status: 'wont_fix' }])
  })

  test('[MAT-084] [MAT-085] modules come through two relationships, extended streams are releases of their own, images are none', async () => {
    using built = await redhat({
      product_status: {
        fixed: [`AppStream-8:${MODULE}:nodejs-1:18.14.2-2.src`, 'BaseOS-8.6.EUS:openssl-1:1.1.1k-9.el8_7.src'],
        known_affected: ['red_hat_enterprise_linux_9:nodejs:16/nodejs', 'red_hat_enterprise_linux_9:ubi9/nodejs'],
      },
    })
    expect(built.rules('rhel:8', 'nodejs')).toMatchObject([{ module: 'nodejs:18', fixed: '1:18.14.2-2.module+el8' }])
    expect(built.rules('rhel:9', 'nodejs')).toMatchObject([{ module: 'nodejs:16', status: 'no_fix' }])
    expect(built.rules('rhel:8', 'openssl')).toEqual([])
    expect(built.rules('rhel:8.6-eus', 'openssl')).toMatchObject([{ fixed: '1:1.1.1k-9.el8_7' }])
  })

  test("[MAT-086] the score is Red Hat's, and a score of NVD stands back", async () => {
    const vector = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H'
    const nvd = {
      format: 'NVD_CVE',
      version: '2.0',
      vulnerabilities: [
        {
          cve: {
            id: 'CVE-2024-0001',
            published: '2024-01-01T00:00:00.000',
            lastModified: '2024-02-01T00:00:00.000',
            metrics: {
              cvssMetricV31: [
                {
                  source: 'x',
                  type: 'Secondary',
                  cvssData: { vectorString: 'CVSS:3.1/AV:L/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H', baseScore: 6.2 },
                },
                {
                  source: 'nvd@nist.gov',
                  type: 'Primary',
                  cvssData: { vectorString: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H', baseScore: 9.8 },
                },
              ],
            },
          },
        },
      ],
    }
    const status = { product_status: { known_affected: ['red_hat_enterprise_linux_9:openssl'] } }
    using scored = await buildOf({
      redhat: {
        'a.json': vex({ ...status, scores: [{ cvss_v3: { baseScore: 7.5, vectorString: vector }, products: [] }] }),
      },
      scores: { 'nvdcve-2.0-2024.json': nvd },
    })
    expect(scored.reader.vulnerability('CVE-2024-0001')).toMatchObject({
      cvss_score: 7.5,
      cvss_vector: vector,
      score_source: 'redhat',
      title: 'openssl: a bug',
    })
    using unscored = await buildOf({ redhat: { 'a.json': vex(status) }, scores: { 'nvdcve-2.0-2024.json': nvd } })
    expect(unscored.reader.vulnerability('CVE-2024-0001')).toMatchObject({ cvss_score: 9.8, score_source: 'nvd' })
  })
})

describe('reference data and ends of support', () => {
  const tracker = { bash: { 'CVE-2024-0001': { releases: { bookworm: { status: 'open', urgency: 'low' } } } } }

  test('KEV and EPSS are told of vulnerabilities that a rule names, and kept when the rule comes later', async () => {
    const reference = {
      kev: {
        'kev.json': {
          title: 'x',
          vulnerabilities: [
            { cveID: 'CVE-2024-0001', dueDate: '2026-12-01' },
            { cveID: 'CVE-2024-0002', dueDate: '2026-12-02' },
          ],
        },
      },
      epss: {
        'epss.csv':
          '#model_version:v2025.03.14,score_date:2026-11-22\ncve,epss,percentile\nCVE-2024-0001,0.12345,0.9\nCVE-2024-0002,0.5,0.99\n',
      },
    }
    using built = await buildOf({ debian: { 'tracker.json': tracker }, ...reference })
    expect(built.reader.vulnerability('CVE-2024-0001')).toMatchObject({
      kev: true,
      kev_due_date: '2026-12-01',
      epss: 0.12345,
    })
    expect(built.reader.vulnerability('CVE-2024-0002')).toBeUndefined()
    const more = { bash: { ...tracker.bash, 'CVE-2024-0002': tracker.bash['CVE-2024-0001'] } }
    using next = await buildOf({ debian: { 'tracker.json': more } }, { previous: built.file, version: 2026112202 })
    expect(next.reader.vulnerability('CVE-2024-0002')).toMatchObject({ kev: true, epss: 0.5 })
  })

  test('[MAT-088] [MAT-128] the table in the code stands without the source eol, which changes what it names', async () => {
    using plain = await buildOf({ debian: { 'tracker.json': tracker } })
    expect(plain.reader.release('debian:12')).toMatchObject({ distro: 'debian', codename: 'bookworm', channel: 'elts' })
    const cycles = [
      { cycle: '12', codename: 'Bookworm', eol: '2026-06-10', extendedSupport: '2031-01-01', latest: '12.9' },
    ]
    const ubuntu = {
      result: {
        name: 'ubuntu',
        releases: [{ name: '22.04', codename: 'Jammy Jellyfish', eolFrom: '2027-05-01', eoesFrom: '2033-01-01' }],
      },
    }
    const suse = ['15.0', '15.6', '16.0'].map(cycle => ({ cycle, eol: `20${cycle.slice(0, 2)}-01-01` }))
    using changed = await buildOf({
      debian: { 'tracker.json': tracker },
      eol: { 'e/debian.json': cycles, 'e/ubuntu.json': ubuntu, 'e/sles.json': suse },
    })
    const ends = ['suse:15', 'suse:15.6', 'suse:16.0'].map(id => changed.reader.release(id)?.standard_until)
    expect(ends).toEqual(['2015-01-01', '2015-01-01', '2016-01-01'])
    expect(changed.reader.release('debian:12')).toMatchObject({ standard_until: '2031-01-01' })
    expect(changed.reader.release('ubuntu:22.04')).toMatchObject({
      standard_until: '2027-05-01',
      extended_until: '2033-01-01',
    })
    expect(changed.reader.release('debian:11')).toEqual(plain.reader.release('debian:11')!)
    await expect(buildOf({ eol: { 'windows.json': cycles } })).rejects.toThrow(
      'no product file of endoflife.date is named so',
    )
  })
})
