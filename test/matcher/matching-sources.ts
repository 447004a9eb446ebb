// One small database of all sources, in the format of each: what the cases of matching-cases.txt are matched with.
const release = (codename: string, status: string, more: object = {}) => ({
  releases: { [codename]: { status, urgency: 'not yet assigned', ...more } },
})
const resolved = (fixed: string, more: object = {}) =>
  release('bookworm', 'resolved', { fixed_version: fixed, ...more })

const debian = {
  expat: {
    'CVE-2001-0001': resolved('2.5.0-1+deb12u1'),
    'CVE-2001-0002': resolved('0'),
    'TEMP-0000001-AAAAAA': resolved('2.5.0-2'),
  },
  bind9: {
    'CVE-2002-0001': resolved('1:9.18.19-1~deb12u1'),
    'CVE-2002-0002': resolved('1:9.18.24-1', { urgency: 'high**' }),
  },
  linux: {
    'CVE-2003-0001': resolved('6.1.76-1'),
    'CVE-2003-0002': resolved('6.1.90-1'),
    'CVE-2003-0003': release('bookworm', 'open'),
  },
  zlib: {
    'CVE-2004-0001': release('bookworm', 'open', { urgency: 'end-of-life' }),
    'CVE-2004-0002': release('bookworm', 'undetermined'),
  },
  tar: {
    'CVE-2005-0001': release('buster', 'open'),
    'CVE-2005-0002': release('buster', 'resolved', { fixed_version: '1.30+dfsg-6' }),
  },
  'docker-ce': { 'CVE-2006-0001': resolved('99') },
}
const elts = {
  tar: {
    'CVE-2005-0001': release('buster', 'resolved', { fixed_version: '1.30+dfsg-6+deb10u1' }),
    'CVE-2005-0002': release('buster', 'resolved', { fixed_version: '1.30+dfsg-6' }),
  },
}

type Events = readonly object[]
const osv = (id: string, cve: string, affected: readonly object[], more: object = {}) => ({
  schema_version: '1.7.0',
  id,
  modified: '2026-01-02T03:04:05Z',
  summary: '',
  upstream: [cve],
  affected,
  ...more,
})
const affects = (ecosystem: string, name: string, fixed?: string, more: object = {}) =>
  within(ecosystem, name, [{ introduced: '0' }, ...(fixed === undefined ? [] : [{ fixed }])], more)
const within = (ecosystem: string, name: string, events: Events, more: object = {}) => ({
  package: { ecosystem, name },
  ranges: [{ type: 'ECOSYSTEM', events }],
  ...more,
})
const lines = (...records: object[]) => ({ 'all.jsonl': records.map(each => JSON.stringify(each)).join('\n') })
const JAMMY = 'Ubuntu:22.04:LTS'
const PRO = 'Ubuntu:Pro:22.04:LTS'
const medium = { severity: [{ type: 'Ubuntu', score: 'medium' }] }

const ubuntu = lines(
  osv('UBUNTU-CVE-2010-0001', 'CVE-2010-0001', [affects(JAMMY, 'bash', '5.1-6ubuntu1.1')], medium),
  osv('UBUNTU-CVE-2010-0002', 'CVE-2010-0002', [
    affects(JAMMY, 'imagemagick'),
    affects(PRO, 'imagemagick', '8:6.9.11-1ubuntu1+esm2'),
  ]),
  osv('UBUNTU-CVE-2010-0003', 'CVE-2010-0003', [affects(PRO, 'imagemagick', '8:6.9.11-1ubuntu1+esm1')], {
    severity: [{ type: 'Ubuntu', score: 'low' }],
  }),
  osv('UBUNTU-CVE-2010-0004', 'CVE-2010-0004', [
    affects(JAMMY, 'curl', '7.81.0-1ubuntu1.15'),
    affects(PRO, 'curl', '7.81.0-1ubuntu1.14+esm1'),
  ]),
  osv('UBUNTU-CVE-2010-0005', 'CVE-2010-0005', [affects(JAMMY, 'linux', '5.15.0-100.110')]),
  osv('UBUNTU-CVE-2010-0006', 'CVE-2010-0006', [affects(JAMMY, 'linux-aws', '5.15.0-1050.55')]),
  osv('USN-10-7', 'CVE-2010-0007', [
    affects('Ubuntu:Pro:FIPS-updates:22.04:LTS', 'openssl', '3.0.2-0ubuntu1.15+Fips1'),
  ]),
  osv('UBUNTU-CVE-2010-0008', 'CVE-2010-0008', [affects('Ubuntu:24.04:LTS', 'bash', '5.2.21-2ubuntu5')]),
  osv('UBUNTU-CVE-2010-0009', 'CVE-2010-0009', [affects(JAMMY, 'bash', '9')], { withdrawn: '2026-01-03T00:00:00Z' }),
  osv('UBUNTU-CVE-2010-0010', 'CVE-2010-0010', [
    within(JAMMY, 'perl', [{ introduced: '5.34.0-3' }, { fixed: '5.34.0-3ubuntu1.3' }]),
  ]),
  osv('UBUNTU-CVE-2010-0011', 'CVE-2010-0011', [
    within(JAMMY, 'perl', [{ introduced: '0' }, { last_affected: '5.34.0-3ubuntu1' }]),
  ]),
)
const secdb = (version: string, name: string, secfixes: object) => ({
  distroversion: version,
  reponame: 'main',
  packages: [{ pkg: { name, secfixes } }],
})
const alpine = {
  'a.json': secdb('v3.20', 'busybox', {
    '1.36.1-r29': ['CVE-2020-0001', 'CVE-2020-0002 GHSA-aaaa-bbbb-cccc'],
    '0': ['CVE-2020-0003'],
  }),
  'b.json': secdb('v3.21', 'busybox', { '1.37.0-r9': ['CVE-2020-0001'] }),
  'c.json': secdb('edge', 'busybox', { '1.37.0-r20': ['CVE-2020-0001'] }),
  'd.json': secdb('v3.20', 'linux-lts', { '6.6.33-r0': ['CVE-2020-0004'] }),
  'e.json': secdb('v3.20', 'sudo', { '1.9.5p2-r0': ['CVE-2020-0005'] }),
}
const titled = (summary: string) => ({ summary, upstream: undefined, related: undefined })
const almalinux = lines(
  osv(
    'ALSA-30-1',
    'CVE-2030-0001',
    [affects('AlmaLinux:9', 'openssl', '1:3.0.7-27.el9'), affects('AlmaLinux:9', 'openssl-libs', '1:3.0.7-27.el9')],
    {
      ...titled('Important: openssl security update'),
      related: ['CVE-2030-0001', 'CVE-2030-0002'],
    },
  ),
  osv('ALBA-30-3', '', [affects('AlmaLinux:9', 'openssl', '9:9-9')], titled('openssl bug fix')),
  osv('ALSA-30-4', 'CVE-2030-0004', [affects('AlmaLinux:9', 'nodejs', '1:18.19.1-1.module_el9.3.0+1')], {
    ...titled('Moderate: nodejs:18 security update'),
    related: ['CVE-2030-0004'],
  }),
  osv(
    'ALSA-30-5',
    'CVE-2030-0005',
    [
      affects('AlmaLinux:9', 'kernel-core', '5.14.0-427.13.1.el9_4'),
      affects('AlmaLinux:9', 'perf', '5.14.0-427.13.1.el9_4'),
    ],
    {
      ...titled('Important: kernel security update'),
      related: ['CVE-2030-0005'],
    },
  ),
  osv('ALSA-30-6', 'CVE-2030-0006', [affects('AlmaLinux:9', 'ruby', '3.1.4-143.module_el9.2.0+1')], {
    ...titled('Important: ruby security update'),
    related: ['CVE-2030-0006'],
  }),
  osv('ALSA-30-7', 'CVE-2030-0007', [affects('AlmaLinux:9', 'nginx', '1:1.20.1-14.el9')], {
    related: ['CVE-2030-0007'],
    upstream: undefined,
  }),
)
const rocky = lines(
  osv('RLSA-40-1', 'CVE-2040-0001', [affects('Rocky Linux:9', 'postgresql', '0:15.6-1.module+el9')], {
    ...titled('Important: postgresql:15 security update'),
    related: ['CVE-2040-0001'],
  }),
  osv('RLSA-40-2', 'CVE-2040-0002', [affects('Rocky Linux:9', 'bind', '32:9.16.23-18.el9_4.1')], {
    related: ['CVE-2040-0002'],
    upstream: undefined,
  }),
)
const suse = lines(
  osv('SUSE-SU-50-1', 'CVE-2050-0001', [
    affects('SUSE:Linux Enterprise Server 15 SP6', 'kernel-default', '6.4.0-150600.23.14.2', {
      ecosystem_specific: { binaries: [{ 'kernel-default': '6.4.0-150600.23.14.2', 'kernel-default-devel': '6.4.0' }] },
    }),
  ]),
  osv('SUSE-SU-50-2', 'CVE-2050-0002', [
    affects('SUSE:Linux Enterprise Module for Basesystem 15 SP6', 'curl', '8.6.0-150600.4.3.1', {
      ecosystem_specific: { binaries: [{ libcurl4: '8.6.0-150600.4.3.1' }] },
    }),
  ]),
  osv('SUSE-SU-50-3', 'CVE-2050-0003', [affects('SUSE:Linux Enterprise Server 15 SP5', 'curl', '99')]),
)
const opensuse = lines(
  osv('openSUSE-SU-60-1', 'CVE-2060-0001', [affects('openSUSE:Leap 15.6', 'chromium', '125.0-bp156.2.3.1')]),
)

const product = (id: string, helper: object) => ({
  product: { product_id: id, name: id, product_identification_helper: helper },
})
const relation = (parent: string, reference: string) => ({
  full_product_name: { product_id: `${parent}:${reference}`, name: reference },
  product_reference: reference,
  relates_to_product_reference: parent,
})
const MODULE = 'mysql:8.0:9040020240101'
const redhat = {
  'vex.json': {
    document: { aggregate_severity: { text: 'Moderate' }, tracking: {} },
    product_tree: {
      branches: [
        product('BaseOS-9', { cpe: 'cpe:/o:redhat:enterprise_linux:9::baseos' }),
        product('AppStream-9', { cpe: 'cpe:/a:redhat:enterprise_linux:9::appstream' }),
        product('BaseOS-9.2.EUS', { cpe: 'cpe:/o:redhat:rhel_eus:9.2::baseos' }),
        product('rhel_9', { cpe: 'cpe:/o:redhat:enterprise_linux:9' }),
        product('rhel_7', { cpe: 'cpe:/o:redhat:enterprise_linux:7' }),
        product('glibc-a.src', { purl: 'pkg:rpm/redhat/glibc@2.34-100.el9?arch=src' }),
        product('glibc-b.src', { purl: 'pkg:rpm/redhat/glibc@2.34-60.el9_2.7?arch=src' }),
        product('mysql.src', { purl: 'pkg:rpm/redhat/mysql@8.0.36-1.module%2Bel9?arch=src' }),
        product(MODULE, { purl: 'pkg:rpmmod/redhat/mysql@8.0:9040020240101' }),
      ],
      relationships: [
        relation('BaseOS-9', 'glibc-a.src'),
        relation('BaseOS-9.2.EUS', 'glibc-b.src'),
        relation('AppStream-9', MODULE),
        relation(`AppStream-9:${MODULE}`, 'mysql.src'),
        ...['less', 'vim', 'emacs', 'sed', 'nginx'].map(name => relation('rhel_9', name)),
        relation('rhel_7', 'less'),
      ],
    },
    vulnerabilities: [
      {
        cve: 'CVE-2070-0001',
        product_status: {
          fixed: ['BaseOS-9:glibc-a.src', 'BaseOS-9.2.EUS:glibc-b.src', `AppStream-9:${MODULE}:mysql.src`],
          known_affected: ['rhel_9:less', 'rhel_9:vim', 'rhel_7:less', 'rhel_9:nginx'],
          under_investigation: ['rhel_9:emacs'],
          known_not_affected: ['rhel_9:sed'],
        },
        remediations: [{ category: 'no_fix_planned', product_ids: ['rhel_9:vim'] }],
        threats: [{ category: 'impact', details: 'Low', product_ids: ['rhel_9:less'] }],
      },
    ],
  },
}

/** Files by source, as `buildOf` takes them. */
export const sources = {
  debian: { 'tracker.json': debian },
  'debian-elts': { 'tracker.json': elts },
  ubuntu,
  alpine,
  almalinux,
  rocky,
  suse,
  opensuse,
  redhat,
}
