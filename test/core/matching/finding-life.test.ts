// The life of findings over random changes of a server and its database, against an oracle that knows numbers instead
// of versions and looks at everything anew.
import { expect, test } from 'bun:test'
import { isConclusive } from '../../../core/matching/conclusive-report.ts'
import { findingChanges } from '../../../core/matching/finding-changes.ts'
import type { FindingColumns } from '../../../core/matching/finding-event.ts'
import { findingsOfHost } from '../../../core/matching/findings-of-host.ts'
import { DEFAULT_MATCH_OPTIONS } from '../../../core/matching/match-options.ts'
import { instancesOfReport } from '../../../core/matching/package-instance.ts'
import { evaluateInstance } from '../../../core/matching/verdict.ts'
import { randomFrom } from '../../support/random.ts'
import { databaseOf, reportOf } from './made-database.ts'

const DAY = Date.parse('2026-01-15T12:00:00Z')
const SEQUENCES = 300
const STEPS = 40
const SOURCE_OF: Readonly<Record<string, string>> = { a1: 'a', a2: 'a', b1: 'b' }
const IMAGES = [1, 2, 3]

/** A server and its database as numbers: version n of a package, a fix in version n, 0 for none. */
type World = {
  release: 12 | 13
  readonly installed: Map<string, number>
  /** Kernel images on disk by number, and the one that runs. */
  readonly images: Set<number>
  running: number
  isBroken: boolean
  dbVersion: number
  /** `release source vuln` → the version that fixes it. */
  readonly fixes: Map<string, { fix: number; severity: string }>
}

const image = (n: number): string => `linux-image-6.1.0-${n}-amd64`

function change(world: World, random: () => number): void {
  const below = (n: number): number => Math.floor(random() * n)
  const oneOf = <T>(list: readonly T[]): T => list[below(list.length)]!
  world.isBroken = false
  const rule = `${oneOf([12, 13])} ${oneOf(['a', 'b', 'linux'])} CVE-${1 + below(3)}`
  const actions: (() => void)[] = [
    () => world.installed.set(oneOf(Object.keys(SOURCE_OF)), 1 + below(5)),
    () => world.installed.set(oneOf(Object.keys(SOURCE_OF)), 1 + below(5)),
    () => world.installed.delete(oneOf(Object.keys(SOURCE_OF))),
    () => world.images.add(oneOf(IMAGES)),
    () => world.images.delete(oneOf(IMAGES)),
    () => {
      world.running = oneOf(IMAGES)
    },
    () => {
      world.fixes.set(rule, { fix: below(6), severity: oneOf(['low', 'high']) })
      world.dbVersion++
    },
    () => {
      world.fixes.delete(rule)
      world.dbVersion++
    },
    () => {
      if (random() < 0.3) world.release = oneOf([12, 13])
    },
    () => {
      world.isBroken = true
    },
  ]
  for (let left = 1 + below(3); left > 0; left--) oneOf(actions)()
}

/** What the engine makes of the world. */
function engineLook(world: World) {
  const rows: Record<string, { vuln: string; fixed?: string; severity: string }[]> = {
    'debian:12 other': [],
    'debian:13 other': [],
  }
  for (const [place, { fix, severity }] of world.fixes) {
    const [release, source, vuln] = place.split(' ')
    const row = `debian:${release} ${source}`
    rows[row] = [...(rows[row] ?? []), { vuln: vuln!, severity, ...(fix > 0 && { fixed: `${fix}-1` }) }]
  }
  const reader = databaseOf(rows, { version: world.dbVersion })
  const packages = [
    'base-files 12',
    ...[...world.installed].map(([name, n]) => `${name} ${n}-1 source=${SOURCE_OF[name]}`),
    ...[...world.images].map(n => `${image(n)} ${n}-1 source=linux-signed-amd64 sv=${n}+1`),
  ]
  const report = reportOf('debian', packages, {
    os: { version_id: String(world.release) },
    running: `6.1.0-${world.running}-amd64`,
    ...(world.isBroken && { error_codes: ['packages_unreadable'] }),
  })
  const instances = instancesOfReport(report, DEFAULT_MATCH_OPTIONS)
  const result = findingsOfHost({
    host: report,
    instances,
    verdictsOf: instance => evaluateInstance(instance, reader, DEFAULT_MATCH_OPTIONS),
    reader,
    nowMs: DAY,
    options: DEFAULT_MATCH_OPTIONS,
  })
  const cause = { match: result.match, host: report, instances }
  return { findings: result.findings, cause, isKept: !isConclusive(report, result.match_status) }
}

/** What the oracle knows of an open finding. */
type Known = { readonly release: number; readonly hits: readonly string[]; readonly text: string }

/** The packages that a source could be hit through, as `name=n`; of the kernel the image that runs. */
function countedOf(world: World, source: string): string[] {
  if (source === 'linux') return world.images.has(world.running) ? [`${image(world.running)}=${world.running}`] : []
  return [...world.installed].filter(([name]) => SOURCE_OF[name] === source).map(([name, n]) => `${name}=${n}`)
}

const numberOf = (hit: string): number => Number(hit.slice(hit.indexOf('=') + 1))

function oracleLook(world: World): Map<string, Known> {
  const open = new Map<string, Known>()
  for (const [place, { fix, severity }] of world.fixes) {
    const [release, source, vuln] = place.split(' ')
    if (Number(release) !== world.release) continue
    const isHit = (n: number): boolean => fix === 0 || n < fix
    const hits = countedOf(world, source!)
      .filter(hit => isHit(numberOf(hit)))
      .sort()
    if (hits.length === 0) continue
    const isKernel = source === 'linux'
    const reboot = isKernel && [...world.images].some(n => n > world.running && !isHit(n))
    const lowest = Math.min(...hits.map(numberOf))
    const text = `${lowest}-1 ${fix > 0 ? `${fix}-1` : ''} ${severity} ${reboot} ${hits.join(' ')}`
    open.set(`${source} ${vuln}`, { release: world.release, hits, text })
  }
  return open
}

const textOf = (finding: FindingColumns): string => {
  const hits = finding.packages.map(({ name, version }) => `${name}=${Number.parseInt(version, 10)}`)
  const { installed_version, fixed_version, severity_label, reboot_required } = finding
  return `${installed_version} ${fixed_version} ${severity_label} ${reboot_required} ${hits.join(' ')}`
}

function oracleReason(key: string, before: Known, world: World): string {
  if (before.release !== world.release) return 'release_upgraded'
  const source = key.slice(0, key.indexOf(' '))
  const isInstalled =
    source === 'linux'
      ? world.images.size > 0
      : Object.keys(SOURCE_OF).some(n => SOURCE_OF[n] === source && world.installed.has(n))
  if (!isInstalled) return 'package_removed'
  const counted = countedOf(world, source)
  return before.hits.every(hit => counted.includes(hit)) ? 'advisory_changed' : 'package_updated'
}

/** What must be told between two looks of the oracle. */
function oracleEvents(before: ReadonlyMap<string, Known>, now: ReadonlyMap<string, Known>, world: World): string[] {
  const events: string[] = []
  for (const [key, known] of now) {
    const held = before.get(key)
    if (!held) events.push(`opened ${key} ${known.text}`)
    else if (held.text !== known.text) events.push(`updated ${key} ${known.text}`)
  }
  for (const [key, held] of before) if (!now.has(key)) events.push(`resolved ${key} ${oracleReason(key, held, world)}`)
  return events.sort()
}

function runSequence(random: () => number, reasons: Set<string>): void {
  const world: World = {
    release: 12,
    installed: new Map([
      ['a1', 1],
      ['b1', 2],
    ]),
    images: new Set([1]),
    running: 1,
    isBroken: false,
    dbVersion: 1,
    fixes: new Map([['12 a CVE-1', { fix: 3, severity: 'low' }]]),
  }
  let open: readonly FindingColumns[] = []
  let known: ReadonlyMap<string, Known> = new Map()
  for (let step = 0; step < STEPS; step++) {
    change(world, random)
    const look = engineLook(world)
    expect(look.isKept).toBe(world.isBroken)
    if (look.isKept) continue
    const changes = findingChanges(open, look.findings, look.cause)
    const name = (finding: FindingColumns): string => `${finding.package_key} ${finding.vuln_id}`
    const told = [
      ...changes.opened.map(finding => `opened ${name(finding)} ${textOf(finding)}`),
      ...changes.updated.map(({ now }) => `updated ${name(now)} ${textOf(now)}`),
      ...changes.resolved.map(({ before, reason }) => `resolved ${name(before)} ${reason}`),
    ]
    const now = oracleLook(world)
    expect(told.sort()).toEqual(oracleEvents(known, now, world))
    for (const { reason } of changes.resolved) reasons.add(reason)
    // What the matcher would hold: what it held, changed by what it told.
    open = [...changes.opened, ...[...changes.updated, ...changes.unchanged].map(pair => pair.now)]
    known = now
    expect(open.map(finding => `${name(finding)} ${textOf(finding)}`).sort()).toEqual(
      [...now].map(([key, { text }]) => `${key} ${text}`).sort(),
    )
  }
}

test('[MAT-150] [MAT-151] [MAT-152] what is told over random sequences is what an oracle tells, and the open set is its set', () => {
  const seed = Number(process.env.SVC_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`life of findings: SVC_FUZZ_SEED=${seed}`)
  const random = randomFrom(seed)
  const reasons = new Set<string>()
  for (let sequence = 0; sequence < SEQUENCES; sequence++) runSequence(random, reasons)
  expect([...reasons].sort()).toEqual(['advisory_changed', 'package_removed', 'package_updated', 'release_upgraded'])
})
