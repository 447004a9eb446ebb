// Views, made once in two seconds for all viewers who ask for the same, with the last few answers at hand, so that a
// stream is sent what has changed and nothing else.
import { createHash } from 'node:crypto'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import type { Hub } from '../../hub-context.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { views } from '../views/all-views.ts'
import type { View, ViewContext } from '../views/view.ts'
import { ActiveAlerts } from './active-alerts.ts'
import { Fleets } from './fleet.ts'
import { LiveServers } from './live-servers.ts'
import { NewestValues } from './newest-values.ts'
import { type Patch, patchOf } from './patch.ts'
import { type Freshness, RecentValues } from './recent-values.ts'
import { ScanCoverage } from './scan-coverage.ts'
import { Standings } from './standing.ts'

const VIEW_AGE_MS = 2_000
const KEPT_VIEWS_MAX = 2_000
const PARAM_CHARS_MAX = 1_000
/** As long as a matcher makes one; a part of one leads nowhere. */
const CURSOR_CHARS_MAX = 8_192
/** Smaller answers go as they are. */
const COMPRESSED_FROM = 1_024

/** What a viewer asks for. */
type ViewRequest = {
  readonly name: string
  readonly companyId: string
  readonly search: URLSearchParams
  readonly permissions: ReadonlySet<string>
  /** `now`: the viewer has just changed something. */
  readonly wanted: Freshness
}

type FormerValue = { readonly value: unknown; readonly version: string }
/** Streams look at different moments: one may have seen an answer that others have passed already. */
const FORMER_MAX = 3

class MadeView {
  readonly version: string
  private readonly compressed = new Map<string, Uint8Array<ArrayBuffer>>()
  private readonly patches = new Map<string, Patch | null>()

  /** `former`: the answers before this one, the last one first. */
  constructor(
    readonly value: unknown,
    readonly json: string,
    readonly madeAtMs: number,
    readonly former: readonly FormerValue[],
  ) {
    this.version = createHash('sha256').update(json).digest('base64url').slice(0, 12)
  }

  /** What has changed since the answer of that version; null where that one is not at hand any more. */
  since(version: string): { readonly patch: Patch | null } | null {
    if (version === this.version) return { patch: null }
    const known = this.patches.get(version)
    if (known !== undefined) return { patch: known }
    const before = this.former.find(each => each.version === version)
    if (before === undefined) return null
    const patch = patchOf(before.value, this.value)
    this.patches.set(version, patch)
    return { patch }
  }

  /** The answer as bytes, compressed once for all. */
  bytes(encoding: 'br' | 'gzip' | null): {
    readonly body: Uint8Array<ArrayBuffer>
    readonly encoding: 'br' | 'gzip' | null
  } {
    const used = this.json.length < COMPRESSED_FROM ? null : encoding
    const key = used ?? 'plain'
    const body = this.compressed.get(key) ?? new Uint8Array(encoded(this.json, used))
    this.compressed.set(key, body)
    return { body, encoding: used }
  }
}

function encoded(text: string, encoding: 'br' | 'gzip' | null): Uint8Array {
  if (encoding === 'br') return brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })
  return encoding === 'gzip' ? gzipSync(text, { level: 5 }) : new TextEncoder().encode(text)
}

/** Parameters by name, bounded, empty where missing. Throws 404 for what no database could hold. */
function paramsIn(names: readonly string[], search: URLSearchParams): ReadonlyMap<string, string> {
  const charsMax = (name: string): number => (name === 'cursor' ? CURSOR_CHARS_MAX : PARAM_CHARS_MAX)
  const params = new Map(names.map(name => [name, (search.get(name) ?? '').slice(0, charsMax(name))]))
  if ([...params.values()].some(value => value.includes('\0'))) throw notFound()
  return params
}

export class SharedViews {
  private readonly made: RecentValues<MadeView>
  private readonly fleets: Fleets
  private readonly alerts: ActiveAlerts
  private readonly newest: NewestValues
  private readonly live: LiveServers
  private readonly standings: Standings
  private readonly scans: ScanCoverage

  constructor(private readonly hub: Hub) {
    this.made = new RecentValues(VIEW_AGE_MS, KEPT_VIEWS_MAX, hub.now)
    this.alerts = new ActiveAlerts(hub)
    this.fleets = new Fleets(hub)
    this.newest = new NewestValues(hub)
    this.live = new LiveServers(hub)
    this.standings = new Standings(hub)
    this.scans = new ScanCoverage(hub)
  }

  /** Throws 404 for a name that no view has. */
  static viewNamed(name: string): View {
    const view = Object.hasOwn(views, name) ? views[name] : undefined
    if (view === undefined) throw notFound()
    return view
  }

  private contextOf(
    companyId: string,
    params: ReadonlyMap<string, string>,
    granted: readonly string[],
    wanted: Freshness,
  ): ViewContext {
    return {
      hub: this.hub,
      companyId,
      param: param => params.get(param) ?? '',
      may: permission => granted.includes(permission),
      fleets: { of: id => this.fleets.of(id, wanted) },
      alerts: { of: id => this.alerts.of(id, wanted) },
      newest: {
        of: id => this.newest.of(id, wanted),
        ofMetric: (id, metric) => this.newest.ofMetric(id, metric, wanted),
      },
      live: this.live,
      standings: { of: id => this.standings.of(id, wanted) },
      scans: { of: id => this.scans.of(id, wanted) },
    }
  }

  /** What a maker of something that is not kept gets, as a file that is sent once. Throws 404 as `get` does. */
  contextFor(companyId: string, names: readonly string[], search: URLSearchParams): ViewContext {
    return this.contextOf(companyId, paramsIn(names, search), [], 'recent')
  }

  /** The answer to a request whose viewer has the view's keys. Throws what the view's maker throws. */
  async get(request: ViewRequest): Promise<MadeView> {
    const { name, companyId, search, permissions, wanted } = request
    const view = SharedViews.viewNamed(name)
    const params = paramsIn(view.params, search)
    const granted = (view.optional ?? []).filter(permission => permissions.has(permission))
    const key = JSON.stringify([name, companyId, [...params.values()], granted])
    const last = this.made.last(key, Number.POSITIVE_INFINITY)
    const isAged = last === null || view.ageMs === undefined || this.hub.now() - last.madeAtMs >= view.ageMs
    if (!isAged && wanted !== 'now') return last
    const context = this.contextOf(companyId, params, granted, wanted)
    const make = async (): Promise<MadeView> => {
      const before = this.made.last(key, Number.POSITIVE_INFINITY)
      const json = JSON.stringify(await view.make(context))
      const nowMs = this.hub.now()
      if (before?.json === json) return new MadeView(before.value, json, nowMs, before.former)
      const former = before === null ? [] : [before, ...before.former].slice(0, FORMER_MAX)
      // Read back, so that what a patch is made of is what the viewers have.
      return new MadeView(
        JSON.parse(json),
        json,
        nowMs,
        former.map(({ value, version }) => ({ value, version })),
      )
    }
    return wanted === 'now' ? this.made.getFresh(key, make) : this.made.get(key, make)
  }
}
