// A second reading of the contract, against which the state is held: it keeps whole reports and whole findings, and
// makes everything anew at every step, one host after the other, with no index, no cache and no difference.
import type { AdvisoryReader } from '../../../core/matching/advisory.ts'
import type { FindingColumns, ResolvedReason, SecurityEvent } from '../../../core/matching/finding-event.ts'
import type { Report } from '../../../core/matching/report-schema.ts'

type NaiveFinding = { readonly columns: NaiveColumns; readonly firstSeenMs: number }

/** Of the columns, those that follow from the test's simple rows. */
export type NaiveColumns = Pick<
  FindingColumns,
  | 'package_key'
  | 'vuln_id'
  | 'installed_version'
  | 'fixed_version'
  | 'fix_status'
  | 'severity_label'
  | 'packages'
  | 'ecosystem'
>

type NaiveHost = {
  readonly company: string
  server: string | null
  isRevoked: boolean
  report: Report | null
  findings: Map<string, NaiveFinding>
  told: NaiveEvent[]
}

export type NaiveEvent =
  | {
      readonly type: 'finding.opened' | 'finding.updated'
      readonly columns: NaiveColumns
      readonly firstSeenMs: number
    }
  | { readonly type: 'finding.resolved'; readonly name: string; readonly reason: ResolvedReason }
  | { readonly type: 'server.scanned'; readonly open: number }

const nameOf = (columns: Pick<NaiveColumns, 'package_key' | 'vuln_id'>): string =>
  `${columns.package_key} ${columns.vuln_id}`

/** Versions of the test are `N.N`, which dpkg orders as numbers. */
const numberOf = (version: string): number => {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major * 1_000 + minor
}

export class NaiveFleet {
  readonly hosts = new Map<string, NaiveHost>()
  #reader: AdvisoryReader | null = null

  enroll(id: string, company: string, server: string | null): void {
    this.hosts.set(id, { company, server, isRevoked: false, report: null, findings: new Map(), told: [] })
  }

  report(id: string, report: Report, nowMs: number): void {
    const host = this.hosts.get(id)!
    if (report.packages !== undefined) {
      host.report = report
      this.#compare(host, nowMs)
    }
    host.told.push({ type: 'server.scanned', open: host.findings.size })
  }

  switchTo(reader: AdvisoryReader, nowMs: number): void {
    this.#reader = reader
    for (const host of this.hosts.values()) if (host.report !== null) this.#compare(host, nowMs)
  }

  purge(company: string, server: string | null): void {
    for (const host of this.hosts.values()) {
      if (host.company !== company || (server !== null && host.server !== server)) continue
      this.#drop(host)
    }
  }

  revoke(id: string): void {
    const host = this.hosts.get(id)!
    host.isRevoked = true
    this.#drop(host)
  }

  resync(company: string): void {
    for (const host of this.hosts.values())
      if (host.company === company)
        for (const { columns, firstSeenMs } of host.findings.values())
          host.told.push({ type: 'finding.opened', columns, firstSeenMs })
  }

  /** What waits of every host, which is told then. */
  deliver(): Map<string, NaiveEvent[]> {
    const told = new Map([...this.hosts].map(([id, host]) => [id, host.told]))
    for (const host of this.hosts.values()) host.told = []
    return told
  }

  packagesOf(company: string, server: string): string[] | null {
    const host = [...this.hosts.values()].find(
      each => each.company === company && each.server === server && each.report,
    )
    if (!host) return null
    const { name, version } = host.report!.packages!
    return name.map((each, row) => `${each} ${version[row]}`).sort()
  }

  /** Servers of the company with the package, each with its lowest version. */
  serversWith(company: string, name: string): string[] {
    const rows: string[] = []
    for (const host of this.hosts.values()) {
      const packages = host.report?.packages
      if (host.company !== company || host.server === null || !packages) continue
      const versions = packages.name.flatMap((each, row) =>
        each === name || packages.source[row] === name ? [packages.version[row]!] : [],
      )
      versions.sort((a, b) => numberOf(a) - numberOf(b))
      if (versions.length > 0) rows.push(`${host.server} ${versions[0]}`)
    }
    return rows.sort()
  }

  #drop(host: NaiveHost): void {
    host.report = null
    host.findings = new Map()
    host.told = []
  }

  #found(report: Report): Map<string, NaiveColumns> {
    const found = new Map<string, NaiveColumns>()
    const { name, version, source, arch } = report.packages!
    const release = `${report.os.id}:${report.os.version_id}`
    for (const key of new Set(source)) {
      for (const rule of this.#reader!.affected(release, key, 'source')?.rules ?? []) {
        const rows = name.flatMap((_, row) => {
          const isHit = rule.fixed === undefined || numberOf(version[row]!) < numberOf(rule.fixed)
          return source[row] === key && isHit ? [row] : []
        })
        if (rows.length === 0) continue
        const packages = rows
          .map(row => ({ name: name[row]!, version: version[row]!, arch: arch[row]! }))
          .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : numberOf(a.version) - numberOf(b.version)))
        const lowest = rows.map(row => version[row]!).sort((a, b) => numberOf(a) - numberOf(b))[0]!
        const columns: NaiveColumns = {
          package_key: key,
          vuln_id: rule.vuln,
          installed_version: lowest,
          fixed_version: rule.fixed ?? '',
          fix_status: rule.status,
          severity_label: rule.severity,
          packages,
          ecosystem: release,
        }
        found.set(nameOf(columns), columns)
      }
    }
    return found
  }

  #compare(host: NaiveHost, nowMs: number): void {
    // Without a database nothing is opened or resolved.
    if (this.#reader === null || this.#reader.version === 0) return
    const found = this.#found(host.report!)
    const opened: NaiveEvent[] = []
    const updated: NaiveEvent[] = []
    const resolved: NaiveEvent[] = []
    for (const [name, finding] of host.findings) {
      if (found.has(name)) continue
      resolved.push({ type: 'finding.resolved', name, reason: reasonOf(finding.columns, host.report!) })
      host.findings.delete(name)
    }
    for (const [name, columns] of found) {
      const held = host.findings.get(name)
      const firstSeenMs = held?.firstSeenMs ?? nowMs
      host.findings.set(name, { columns, firstSeenMs })
      if (!held) opened.push({ type: 'finding.opened', columns, firstSeenMs })
      else if (isOther(held.columns, columns)) updated.push({ type: 'finding.updated', columns, firstSeenMs })
    }
    host.told.push(...resolved, ...updated, ...opened)
  }
}

function isOther(before: NaiveColumns, now: NaiveColumns): boolean {
  const told = ({ installed_version, fixed_version, fix_status, severity_label, packages }: NaiveColumns) =>
    JSON.stringify([installed_version, fixed_version, fix_status, severity_label, packages])
  return told(before) !== told(now)
}

function reasonOf(finding: NaiveColumns, now: Report): ResolvedReason {
  const release = `${now.os.id}:${now.os.version_id}`
  if (finding.ecosystem !== release) return 'release_upgraded'
  const { name, version, source } = now.packages!
  if (!source.includes(finding.package_key)) return 'package_removed'
  const isInstalled = (each: { readonly name: string; readonly version: string }): boolean =>
    name.some((known, row) => known === each.name && version[row] === each.version)
  return finding.packages.every(isInstalled) ? 'advisory_changed' : 'package_updated'
}

/** An event of the state in the words of the naive fleet; findings by the name that their key was opened under. */
export function naiveEvent(event: SecurityEvent, names: Map<string, string>): NaiveEvent {
  switch (event.type) {
    case 'finding.opened':
    case 'finding.updated': {
      const { package_key, vuln_id, installed_version, fixed_version, fix_status } = event.payload
      const { severity_label, packages, ecosystem } = event.payload
      names.set(event.payload.finding_key, nameOf(event.payload))
      const columns = {
        package_key,
        vuln_id,
        installed_version,
        fixed_version,
        fix_status,
        severity_label,
        packages,
        ecosystem,
      }
      return { type: event.type, columns, firstSeenMs: Date.parse(event.payload.first_seen_at) }
    }
    case 'finding.resolved': {
      const name = names.get(event.payload.finding_key) ?? 'never opened'
      return { type: event.type, name, reason: event.payload.resolved_reason }
    }
    case 'server.scanned':
      return { type: event.type, open: event.payload.open_findings }
  }
}
