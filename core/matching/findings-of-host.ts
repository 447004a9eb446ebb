// Verdicts of a server's packages → its findings (MAT-124 to MAT-129, MAT-141 to MAT-148): all binaries of one source
// make one finding a vulnerability, and of a kernel only the image that runs counts.
import type { AdvisoryReader } from './advisory.ts'
import type { FindingColumns, FindingPackage, MatchStatus, ReleaseSupport } from './finding-event.ts'
import { isRunning, replacesAtReboot } from './kernel-names.ts'
import type { MatchOptions } from './match-options.ts'
import { type HostInfo, type HostMatch, hostMatch, releaseEndFinding } from './match-status.ts'
import type { PackageInstance } from './package-instance.ts'
import type { ScanErrorCode } from './report-schema.ts'
import { lookUpOf, type Matched } from './rows-of-instance.ts'
import { mergeVerdicts, type Verdict } from './verdict.ts'
import { compareVersions } from './version.ts'

/** The most packages that a finding lists (MAT-142). */
const LISTED_MAX = 100

export type HostFindings = {
  readonly match: HostMatch
  readonly match_status: MatchStatus
  readonly release_support: ReleaseSupport
  /** Sorted, each once. */
  readonly error_codes: readonly ScanErrorCode[]
  /** In the order package_key, vuln_id. */
  readonly findings: readonly FindingColumns[]
}

type HostToMatch<Instance extends PackageInstance> = {
  readonly host: HostInfo
  readonly instances: readonly Instance[]
  /** What `evaluateInstance` gave for it; asked for instances that are matched only. */
  readonly verdictsOf: (instance: Instance) => readonly Verdict[]
  readonly reader: AdvisoryReader
  readonly nowMs: number
  readonly options: MatchOptions
  /** Only findings of these sources are made, and the one of the release's end; all when absent. */
  readonly packageKeys?: ReadonlySet<string>
}

/** A finding that is being put together. */
type Draft = {
  readonly packageKey: string
  readonly isKernel: boolean
  verdict: Verdict
  readonly hits: Matched[]
}

export function findingsOfHost<Instance extends PackageInstance>(input: HostToMatch<Instance>): HostFindings {
  const { host, reader, options } = input
  const match = hostMatch(host, reader, input.nowMs, options)
  const { status, support } = match
  const codes = new Set(host.error_codes)
  const result = (findings: readonly FindingColumns[]): HostFindings => ({
    match,
    match_status: status,
    release_support: support,
    error_codes: [...codes].sort(),
    findings,
  })
  if (!match.release) return result([])
  const selected = selectPackages(input, codes)
  if (status === 'no_db' || status === 'unsupported_release') return result([])
  const drafts = new Map<string, Map<string, Draft>>()
  for (const { matched, verdicts } of selected.counted) {
    const ofSource = drafts.get(matched.source) ?? new Map<string, Draft>()
    drafts.set(matched.source, ofSource)
    for (const verdict of verdicts)
      if (options.undetermined || verdict.status !== 'undetermined') addTo(ofSource, matched, verdict)
  }
  const kernels = newerKernels(selected, input.verdictsOf)
  readAhead(drafts, reader)
  const ended = releaseEndFinding(match)
  // In the order package_key, vuln_id (MAT-232): what ends with the release has no package.
  const findings: FindingColumns[] = ended ? [ended] : []
  for (const source of [...drafts.keys()].sort()) {
    const ofSource = drafts.get(source)!
    for (const vuln of [...ofSource.keys()].sort()) {
      const draft = ofSource.get(vuln)!
      if (draft.verdict.isModuleUnknown) codes.add('module_unknown')
      findings.push(columnsOf(draft, match.release.ecosystem, match, reader, kernels))
    }
  }
  return result(findings)
}

/** A server with as many findings has what is known of their vulnerabilities read at one go. */
const READ_AHEAD_MIN = 32

function readAhead(drafts: ReadonlyMap<string, ReadonlyMap<string, Draft>>, reader: AdvisoryReader): void {
  let count = 0
  for (const ofSource of drafts.values()) count += ofSource.size
  if (count < READ_AHEAD_MIN) return
  reader.readVulnerabilities?.([...drafts.values()].flatMap(ofSource => [...ofSource.keys()]))
}

type Counted = { readonly matched: Matched; readonly verdicts: readonly Verdict[] }

type Selected<Instance> = {
  readonly counted: readonly Counted[]
  /** Kernel images: the ones that run, and all. */
  readonly running: readonly Instance[]
  readonly images: readonly Instance[]
}

/** The instances whose verdicts count, and the kernel images among all; notes what could not be matched in `codes`. */
function selectPackages<Instance extends PackageInstance>(
  input: HostToMatch<Instance>,
  codes: Set<ScanErrorCode>,
): Selected<Instance> {
  const { host, packageKeys } = input
  const counted: Counted[] = []
  const images: Instance[] = []
  const running: Instance[] = []
  const isContained = codes.has('kernel_unpackaged')
  for (const instance of input.instances) {
    const matched = lookUpOf(instance)
    if (typeof matched === 'string') {
      if (matched === 'third_party') codes.add('third_party_packages')
      if (matched === 'version_invalid') codes.add('version_invalid')
      continue
    }
    if (matched.isKernel) {
      images.push(instance)
      if (isContained || !isRunning(instance, host.kernel.running)) continue
      running.push(instance)
    }
    if (packageKeys && !packageKeys.has(matched.source)) continue
    const verdicts = input.verdictsOf(instance)
    if (verdicts.length > 0) counted.push({ matched, verdicts })
  }
  if (host.kernel.running !== '' && running.length === 0 && input.instances.length > 0) codes.add('kernel_unpackaged')
  return { counted, running, images }
}

/** `drafts` are of one source, by vulnerability. */
function addTo(drafts: Map<string, Draft>, matched: Matched, verdict: Verdict): void {
  const draft = drafts.get(verdict.vuln)
  if (!draft) {
    drafts.set(verdict.vuln, { packageKey: matched.source, isKernel: matched.isKernel, verdict, hits: [matched] })
    return
  }
  draft.verdict = mergeVerdicts(matched.instance.system, draft.verdict, verdict)
  draft.hits.push(matched)
}

/** The vulnerabilities of each installed image that a reboot could bring (MAT-124). */
function newerKernels<Instance extends PackageInstance>(
  { running, images }: Selected<Instance>,
  verdictsOf: (instance: Instance) => readonly Verdict[],
): ReadonlySet<string>[] {
  const newer = images.filter(image => running.some(runs => replacesAtReboot(image, runs)))
  return newer.map(image => new Set(verdictsOf(image).map(verdict => verdict.vuln)))
}

function columnsOf(
  draft: Draft,
  ecosystem: string,
  match: HostMatch,
  reader: Pick<AdvisoryReader, 'vulnerability'>,
  kernels: readonly ReadonlySet<string>[],
): FindingColumns {
  const { verdict, hits } = draft
  const vulnerability = reader.vulnerability(verdict.vuln)
  const columns: { -readonly [Name in keyof FindingColumns]: FindingColumns[Name] } = {
    kind: 'vulnerability',
    vuln_id: verdict.vuln,
    aliases: sortedOnce(vulnerability?.aliases ?? [], verdict.vuln),
    advisory_ids: sortedOnce(verdict.advisories, ''),
    ecosystem,
    package_key: draft.packageKey,
    packages: listed(hits),
    installed_version: lowestVersion(hits),
    fixed_version: verdict.fixed,
    fix_status: verdict.status,
    fix_channel: verdict.channel,
    severity_label: verdict.severity,
    minor: verdict.minor,
    kernel: draft.isKernel,
    reboot_required: draft.isKernel && kernels.some(vulns => !vulns.has(verdict.vuln)),
    no_distro_fix: verdict.status === 'wont_fix' || (verdict.status === 'no_fix' && match.endedOn !== ''),
    eol_date: '',
    upgrade_to: [],
  }
  if (vulnerability?.cvss_score != null) columns.cvss_score = vulnerability.cvss_score
  if (vulnerability?.cvss_vector) columns.cvss_vector = vulnerability.cvss_vector
  if (vulnerability?.score_source) columns.score_source = vulnerability.score_source
  return columns
}

function sortedOnce(texts: readonly string[], without: string): readonly string[] {
  return texts.length === 0 ? texts : [...new Set(texts)].filter(text => text !== without).sort()
}

/** The installed binaries that are hit, by name and architecture (MAT-142). */
function listed(hits: readonly Matched[]): readonly FindingPackage[] {
  const packages = hits.map(({ instance: { name, version, arch } }) => ({ name, version, arch }))
  if (packages.length > 1)
    packages.sort((a, b) => byText(a.name, b.name) || byText(a.arch, b.arch) || byText(a.version, b.version))
  return packages.length > LISTED_MAX ? packages.slice(0, LISTED_MAX) : packages
}

/** Of the source, which the rules' fixes are given in; of a kernel the running image's (MAT-143). */
function lowestVersion(hits: readonly Matched[]): string {
  let lowest = hits[0]!
  for (let at = 1; at < hits.length; at++) {
    const hit = hits[at]!
    if (compareVersions(hit.instance.system, hit.sourceVersion, lowest.sourceVersion) < 0) lowest = hit
  }
  return lowest.isKernel ? lowest.instance.version : lowest.sourceVersion
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The distribution of an ecosystem: the release is no part of a finding's identity. */
export function distroOf(finding: Pick<FindingColumns, 'ecosystem'>): string {
  return finding.ecosystem.slice(0, finding.ecosystem.indexOf(':'))
}
