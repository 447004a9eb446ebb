// Packages of a server, and servers that have a package, as the hub asks for them (MAT-201 to MAT-206). Company first:
// an instance is shown only with a host of the company that has it (MAT-189).
import type { Database } from 'bun:sqlite'
import type { PackageInstance } from '../../../core/matching/package-instance.ts'
import { PACKAGE_SYSTEMS, type PackageSystem } from '../../../core/matching/report-schema.ts'
import { compareVersions, isValidVersion } from '../../../core/matching/version.ts'
import { decodeSorted } from './number-list.ts'
import type { StateParts } from './state-parts.ts'
import type { PackagePosition, PackageRow, SearchQuery } from './state-types.ts'
import { TimeSlice } from './time-slice.ts'

/**
 * Each turn that a search lets others have lasts as long as a transaction when hosts are matched again meanwhile: most
 * searches are over within their first turn.
 */
const SLICE_MS = 20
/** Hosts that are read at one go. Where most of them are hits a page needs few: the first time it is a page and one. */
const HOSTS_AT_ONCE = 1_000
const MORE_HOSTS = 3
/** Of a name with more instances, those are left out early that no host of the company has. */
const KEPT_UNASKED = 5_000
/** Up to so many hosts with a hit, they are looked up; beyond it, the company's hosts are gone through in order. */
const LOOKED_UP_MAX = 2_000

type HostPlace = {
  readonly id: number
  readonly server_id: string
  readonly context: number
}

type Candidate = { readonly id: number; readonly instance: PackageInstance; readonly version: string }

type SearchResult = { readonly items: readonly PackageRow[]; readonly nextAfter: string | null }

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const byPosition = (a: PackagePosition, b: PackagePosition): number =>
  byText(a.name, b.name) || byText(a.arch, b.arch) || byText(a.version, b.version)

export class PackageSearch {
  readonly #parts: StateParts
  readonly #hostOfServer
  readonly #hostsInOrder
  readonly #place
  readonly #contextsOf
  readonly #summary
  readonly #findingsOf

  constructor(database: Database, parts: StateParts) {
    this.#parts = parts
    this.#hostOfServer = database.prepare<{ readonly context: number; readonly list: number }, [number, string]>(
      `SELECT context, list FROM host WHERE company = ? AND server_id = ? AND list IS NOT NULL
       ORDER BY reported_ms DESC, id DESC LIMIT 1`,
    )
    // The first bound is what the index begins at: with the other alone, all hosts before the page were gone through.
    this.#hostsInOrder = database.prepare<HostPlace, [number, string, number, number]>(
      `SELECT id, server_id, context FROM host WHERE company = ?1 AND list IS NOT NULL
       AND server_id >= ?2 AND (server_id > ?2 OR id > ?3) ORDER BY server_id, id LIMIT ?4`,
    )
    this.#place = database.prepare<HostPlace, [number, number]>(
      `SELECT id, server_id, context FROM host WHERE id = ? AND company = ? AND list IS NOT NULL
       AND server_id IS NOT NULL`,
    )
    // From each context to the next one: DISTINCT would go through every host of the company before the first row.
    const next = 'SELECT min(context) FROM host WHERE company = ?1 AND list IS NOT NULL'
    this.#contextsOf = database.prepare<{ readonly context: number }, [number]>(
      `WITH RECURSIVE own (context) AS (${next} UNION ALL
         SELECT (${next} AND context > own.context) FROM own WHERE own.context IS NOT NULL)
       SELECT context FROM own WHERE context IS NOT NULL`,
    )
    this.#summary = database.prepare<
      { readonly context: number; readonly hosts: number; readonly oldest: number },
      [number]
    >(
      `SELECT context, count(*) AS hosts, min(reported_ms) AS oldest FROM host WHERE company = ? AND list IS NOT NULL
       GROUP BY context`,
    )
    this.#findingsOf = database.prepare<{ readonly findings: number | null }, [number]>(
      'SELECT sum(finding_count) AS findings FROM host WHERE company = ?',
    )
  }

  packages(
    companyId: string,
    serverId: string,
    page: { readonly q: string | null; readonly after: PackagePosition | null; readonly limit: number },
  ): { readonly items: readonly PackageRow[]; readonly next: PackagePosition | null } | null {
    const company = this.#parts.hosts.company(companyId)
    const host = company === undefined ? null : this.#hostOfServer.get(company, serverId)
    if (host === null) return null
    const ecosystem = this.#parts.contexts.row(host.context).ecosystem
    const part = page.q?.toLowerCase() ?? ''
    const rows: PackageRow[] = []
    for (const id of decodeSorted(this.#parts.lists.body(host.list))) {
      const instance = this.#parts.instances.get(id)
      const isFound = instance.name.toLowerCase().includes(part) || instance.source.toLowerCase().includes(part)
      if (!isFound || (page.after !== null && byPosition(instance, page.after) <= 0)) continue
      rows.push(rowOf(serverId, instance, ecosystem))
    }
    rows.sort(byPosition)
    // Two builds of one version would stand at one place of the list.
    const items = rows.filter((row, at) => at === 0 || byPosition(row, rows[at - 1]!) !== 0).slice(0, page.limit)
    const last = items.at(-1)
    const isMore = last !== undefined && byPosition(last, rows.at(-1)!) < 0
    return { items, next: isMore ? { name: last.name, arch: last.arch, version: last.version } : null }
  }

  async search(companyId: string, query: SearchQuery): Promise<SearchResult | 'invalid_bound'> {
    const endsAt = performance.now() + query.deadlineMs
    const company = this.#parts.hosts.company(companyId)
    const systems = company === undefined ? PACKAGE_SYSTEMS : this.#systemsOf(company, query.ecosystem)
    const possible = (systems.length === 0 ? PACKAGE_SYSTEMS : systems).filter(system => areBoundsValid(system, query))
    if (possible.length === 0) return 'invalid_bound'
    if (company === undefined) return { items: [], nextAfter: null }
    const slice = new TimeSlice(SLICE_MS)
    const candidates = await this.#candidates(company, query, possible, slice)
    if (candidates.length === 0) return { items: [], nextAfter: null }
    const hits = this.#parts.inventory.isLoaded ? await this.#hitsOf(candidates, slice) : null
    if (hits !== null && hits.count <= LOOKED_UP_MAX) return this.#lookUp(company, query, candidates, hits.bySlot)
    return this.#goThrough(company, query, candidates, { bySlot: hits?.bySlot ?? null, endsAt, slice })
  }

  summary(companyId: string) {
    const company = this.#parts.hosts.company(companyId)
    const rows = company === undefined ? [] : this.#summary.all(company)
    const ecosystems: Record<string, number> = {}
    for (const { context, hosts } of rows) {
      const { ecosystem } = this.#parts.contexts.row(context)
      ecosystems[ecosystem] = (ecosystems[ecosystem] ?? 0) + hosts
    }
    return {
      servers: rows.reduce((sum, { hosts }) => sum + hosts, 0),
      oldest_report_ms: rows.length === 0 ? null : Math.min(...rows.map(({ oldest }) => oldest)),
      ecosystems,
      open_findings: company === undefined ? 0 : (this.#findingsOf.get(company)?.findings ?? 0),
    }
  }

  /** Package systems that hosts of the company have, in an ecosystem when one is asked for. */
  #systemsOf(company: number, ecosystem: string | null): PackageSystem[] {
    const systems = new Set<PackageSystem>()
    for (const { context } of this.#contextsOf.iterate(company)) {
      if (ecosystem !== null && this.#parts.contexts.row(context).ecosystem !== ecosystem) continue
      const { system } = this.#parts.contexts.get(context)
      if (system !== '') systems.add(system)
      if (systems.size === PACKAGE_SYSTEMS.length) break
    }
    return [...systems]
  }

  /**
   * Instances of the name within the bounds, of each system the lowest version first. Other companies' hosts can make
   * any number of a name: these neither take the memory nor the turns of everybody else.
   */
  async #candidates(
    company: number,
    query: SearchQuery,
    systems: readonly PackageSystem[],
    slice: TimeSlice,
  ): Promise<Candidate[]> {
    let candidates: Candidate[] = []
    let own: Uint8Array | null = null
    for (const some of this.#parts.instances.named(query.name)) {
      for (const { id, instance } of some) {
        const version = instance.name === query.name ? instance.version : instance.sourceVersion
        if (!systems.includes(instance.system) || !isWithin(instance.system, version, query)) continue
        if (own === null || this.#isOfSlots(id, own)) candidates.push({ id, instance, version })
      }
      if (own === null && candidates.length > KEPT_UNASKED && this.#parts.inventory.isLoaded) {
        own = await this.#slotsOf(company, slice)
        const slots = own
        candidates = candidates.filter(({ id }) => this.#isOfSlots(id, slots))
      }
      await slice.yieldIfDue()
    }
    return candidates.sort(
      (a, b) =>
        byText(a.instance.system, b.instance.system) ||
        compareOrText(a.instance.system, a.version, b.version) ||
        byPosition(a.instance, b.instance),
    )
  }

  /** 1 for each slot of a host of the company. */
  async #slotsOf(company: number, slice: TimeSlice): Promise<Uint8Array> {
    const own = new Uint8Array(this.#parts.inventory.slotCount)
    let last = { server_id: '', id: 0 }
    for (;;) {
      const hosts = this.#hostsInOrder.all(company, last.server_id, last.id, HOSTS_AT_ONCE)
      for (const { id } of hosts) {
        const slot = this.#parts.inventory.slotOf(id)
        if (slot !== undefined && slot < own.length) own[slot] = 1
      }
      last = hosts.at(-1) ?? last
      if (hosts.length < HOSTS_AT_ONCE) return own
      await slice.yieldIfDue()
    }
  }

  #isOfSlots(id: number, own: Uint8Array): boolean {
    let isOwn = false
    this.#parts.inventory.index.forEach(id, slot => {
      if (own[slot] === 1) isOwn = true
    })
    return isOwn
  }

  /** By slot: the place of the host's first candidate, plus one. */
  async #hitsOf(
    candidates: readonly Candidate[],
    slice: TimeSlice,
  ): Promise<{ readonly bySlot: Int32Array; readonly count: number }> {
    const { inventory } = this.#parts
    const bySlot = new Int32Array(inventory.slotCount)
    let count = 0
    for (const [place, { id }] of candidates.entries()) {
      inventory.index.forEach(id, slot => {
        if (slot >= bySlot.length || bySlot[slot] !== 0) return
        bySlot[slot] = place + 1
        count++
      })
      await slice.yieldIfDue()
    }
    return { bySlot, count }
  }

  #lookUp(company: number, query: SearchQuery, candidates: readonly Candidate[], bySlot: Int32Array): SearchResult {
    const { inventory } = this.#parts
    const places: { readonly host: HostPlace; readonly candidate: Candidate }[] = []
    for (let slot = 0; slot < bySlot.length; slot++) {
      const host = bySlot[slot] === 0 ? null : this.#place.get(inventory.hostOf(slot), company)
      if (host !== null && (query.after === null || host.server_id > query.after))
        places.push({ host, candidate: candidates[bySlot[slot]! - 1]! })
    }
    places.sort((a, b) => byText(a.host.server_id, b.host.server_id) || a.host.id - b.host.id)
    const page = new SearchPage(query, this.#parts)
    for (const { host, candidate } of places) if (!page.add(host, candidate)) break
    return page.result()
  }

  /** The company's hosts in order of server_id, by the index or, until it is loaded, by their own lists. */
  async #goThrough(
    company: number,
    query: SearchQuery,
    candidates: readonly Candidate[],
    { bySlot, endsAt, slice }: { bySlot: Int32Array | null; endsAt: number; slice: TimeSlice },
  ): Promise<SearchResult> {
    const page = new SearchPage(query, this.#parts)
    const placeOf = new Map(candidates.map(({ id }, place) => [id, place]))
    let last = { server_id: query.after ?? '', id: query.after === null ? 0 : Number.MAX_SAFE_INTEGER }
    for (let count = query.limit + 1; ; count = Math.min(HOSTS_AT_ONCE, count * MORE_HOSTS)) {
      const hosts = this.#hostsInOrder.all(company, last.server_id, last.id, count)
      for (const host of hosts) {
        const place = bySlot === null ? this.#placeByList(host.id, placeOf) : this.#placeBySlot(host.id, bySlot)
        if (place !== undefined && !page.add(host, candidates[place]!)) return page.result()
        last = host
        if (performance.now() > endsAt) return page.stoppedAt(host.server_id)
        if (bySlot === null) await slice.yieldIfDue()
      }
      if (hosts.length < count) return page.result()
      await slice.yieldIfDue()
    }
  }

  #placeBySlot(host: number, bySlot: Int32Array): number | undefined {
    const slot = this.#parts.inventory.slotOf(host)
    const place = slot === undefined ? 0 : (bySlot[slot] ?? 0)
    return place === 0 ? undefined : place - 1
  }

  #placeByList(host: number, placeOf: ReadonlyMap<number, number>): number | undefined {
    const row = this.#parts.hosts.byId.get(host)
    const list = row && this.#parts.listOf(row)
    let lowest: number | undefined
    for (const id of list ?? []) {
      const place = placeOf.get(id)
      if (place !== undefined && (lowest === undefined || place < lowest)) lowest = place
    }
    return lowest
  }
}

/** Rows of one page, one a server. */
class SearchPage {
  readonly #items: PackageRow[] = []
  readonly #query: SearchQuery
  readonly #parts: StateParts
  #isMore = false

  constructor(query: SearchQuery, parts: StateParts) {
    this.#query = query
    this.#parts = parts
  }

  /** False when the page is full, and there is more. */
  add(host: HostPlace, candidate: Candidate): boolean {
    if (this.#items.at(-1)?.server_id === host.server_id) return true
    const { ecosystem } = this.#parts.contexts.row(host.context)
    if (this.#query.ecosystem !== null && ecosystem !== this.#query.ecosystem) return true
    if (this.#items.length === this.#query.limit) {
      this.#isMore = true
      return false
    }
    this.#items.push(rowOf(host.server_id, candidate.instance, ecosystem))
    return true
  }

  result(): SearchResult {
    return { items: this.#items, nextAfter: this.#isMore ? (this.#items.at(-1)?.server_id ?? null) : null }
  }

  /** The time is up: the next page begins behind the server that was last looked at. */
  stoppedAt(serverId: string): SearchResult {
    return { items: this.#items, nextAfter: serverId }
  }
}

const rowOf = (serverId: string, instance: PackageInstance, ecosystem: string): PackageRow => ({
  server_id: serverId,
  name: instance.name,
  version: instance.version,
  arch: instance.arch,
  source_name: instance.source,
  source_version: instance.sourceVersion,
  ecosystem,
})

const areBoundsValid = (system: PackageSystem, query: SearchQuery): boolean =>
  [query.versionGte, query.versionLt].every(bound => bound === null || isValidVersion(system, bound))

function isWithin(system: PackageSystem, version: string, query: SearchQuery): boolean {
  if (query.versionGte === null && query.versionLt === null) return true
  // An invalid installed version is on no side of a bound (MAT-098).
  if (!isValidVersion(system, version)) return false
  return (
    (query.versionGte === null || compareVersions(system, version, query.versionGte) >= 0) &&
    (query.versionLt === null || compareVersions(system, version, query.versionLt) < 0)
  )
}

/** Invalid versions stand behind the valid ones, as text. */
function compareOrText(system: PackageSystem, a: string, b: string): number {
  const [isA, isB] = [isValidVersion(system, a), isValidVersion(system, b)]
  if (isA && isB) return compareVersions(system, a, b)
  return isA === isB ? byText(a, b) : isA ? -1 : 1
}
