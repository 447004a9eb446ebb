// What applying a plan would refuse: its writes are done in the order of applying, in a transaction that is rolled back
// (resources.md ). So every rule of a kind is a rule of planning, and no second form of it has to be kept.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { sqlState } from '../platform/db/connect.ts'
import type { RunError } from '../platform/db/schema-iac.ts'
import { inTrial, lockCompanies, type Tx } from '../platform/db/transaction.ts'
import { render } from '../platform/http/api-texts.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { toApiError } from '../platform/http/unexpected-error.ts'
import { HostBook, withHostBook } from '../platform/outbound-guard.ts'
import { actingContext, hubWithin } from './act-as-applier.ts'
import { FAULTS_MAX, fieldFault, sameResourceFault } from './fault-place.ts'
import { TrialLimit, type Writing } from './kinds/manifest-kind.ts'
import type { Manifest } from './manifest.ts'
import { bind, ItemFailure, StaleItem, type WrittenItem, writeItem } from './write-item.ts'

export type Trial = {
  readonly item: Omit<WrittenItem, 'runId'> & {
    readonly path: string
    readonly adopts: boolean
    readonly refersTo: readonly string[]
  }
  readonly manifest: Manifest
  /** The spec as it will be. */
  readonly whole: Unchecked
}

/** Shorter than the second after which the database ends a deadlock: a trial gives way, and no request fails for it. */
const LOCK_WAIT_MS = 500
const LOCK_NOT_AVAILABLE = '55P03'
/** Once for what the first one could not know of hosts, and for locks that somebody else had. */
const TRIES_MAX = 10
/** A part costs some ten statements, and the company is locked meanwhile. */
export const PARTS_MAX = 150

/** What items of the trial made so far: paths by the ids of resources. */
type Made = Map<string, string>

/**
 * A 422 as faults of the manifest, and what nobody expected as one of it all: applying would meet it again. What else
 * refuses (in use, changed meanwhile) may be over when it is applied.
 */
function faultsIn(error: unknown, { manifest, whole }: Trial, { hub, language }: RouteContext, made: Made): RunError[] {
  const { path, lineOf } = manifest
  if (error instanceof StaleItem) {
    const other = made.get(error.resourceId ?? '')
    return other === undefined ? [] : [sameResourceFault(manifest, other)]
  }
  if (error instanceof ItemFailure) return [{ path, line: lineOf(['spec']), message: error.message }]
  // A conflict with another transaction ends the trial.
  if (/^(40|55)/.test(sqlState(error) ?? '')) throw error
  const refusal = toApiError(error, hub.log)
  if (refusal.status === 503) throw error
  if (refusal.status >= 500) return [{ path, line: lineOf(['spec']), message: render(refusal.text, language) }]
  if (refusal.status !== 422) return []
  return Object.entries(refusal.more.errors ?? {})
    .slice(0, FAULTS_MAX)
    .map(([field, texts]) => fieldFault(manifest, whole, field, texts.map(text => render(text, language)).join(', ')))
}

/** Writes one item in a savepoint. Jobs and numbers of feeds that it asks for go with the transaction. */
async function tryItem(
  context: RouteContext,
  outer: Tx,
  { manifest, item }: Trial,
  trial: Writing['trial'],
): Promise<string | null> {
  const { companyId } = item
  return outer.db.transaction(async db => {
    const tx: Tx = { ...outer, db }
    const hub = hubWithin(context.hub, tx)
    const { user, permissions } = context.caller
    const acting = actingContext(hub, user, companyId, [...permissions], context.language, {})
    const writing = { hub, db, companyId, context: acting, tx, trial }
    const tried = { ...item, runId: null }
    if (item.action !== 'none') return writeItem(writing, manifest.kind, tried)
    // Others of the run may call it by the name that it gets.
    if (item.resourceId !== null) await bind(writing, manifest.kind, tried, item.resourceId)
    return item.resourceId
  })
}

/** Deletes are left out: what is still in use fails when it is applied, and may be free by then (RES-135). */
const isTried = ({ item: { action, adopts } }: Trial): boolean =>
  action === 'create' || action === 'update' || (action === 'none' && adopts)

/** The faults, and the paths of items for which there was no room: a trial writes so many parts. */
type Tried = { readonly errors: readonly RunError[]; readonly untried: readonly string[] }

async function tryAll(context: RouteContext, tx: Tx, trials: readonly Trial[]): Promise<Tried> {
  const errors: RunError[] = []
  const untried: string[] = []
  const known = new Set(trials.map(({ item }) => item.path))
  const refused = new Set<string>()
  const made: Made = new Map()
  const bound = { partsLeft: PARTS_MAX }
  await lockCompanies(tx, new Set(trials.map(({ item }) => item.companyId)))
  await tx.db.execute(sql`select set_config('lock_timeout', ${String(LOCK_WAIT_MS)}, true)`)
  for (const trial of trials.filter(isTried)) {
    const { path, refersTo } = trial.item
    try {
      if (refersTo.some(each => untried.includes(each))) untried.push(path)
      else if (refersTo.some(each => refused.has(each) || !known.has(each))) refused.add(path)
      else made.set((await tryItem(context, tx, trial, bound)) ?? '', path)
    } catch (error) {
      if (error instanceof TrialLimit) untried.push(path)
      else {
        errors.push(...faultsIn(error, trial, context, made))
        refused.add(path)
      }
    }
  }
  return { errors, untried }
}

/**
 * The faults that applying items, in their order, would meet. An item that depends on one with a fault, or on one that
 * is not among them, has none of its own.
 */
export async function tryItems(context: RouteContext, trials: readonly Trial[]): Promise<Tried> {
  if (!trials.some(({ item }) => item.action === 'create' || item.action === 'update'))
    return { errors: [], untried: [] }
  // Name servers are asked between two attempts: whoever waits for the company must not wait for them.
  const book = new HostBook()
  const hub = { ...context.hub, config: withHostBook(context.hub.config, book) }
  for (let run = 1; ; run++) {
    try {
      const tried = await inTrial(hub.database.db, true, tx => tryAll({ ...context, hub }, tx, trials))
      if (run === TRIES_MAX || !(await book.lookUp(context.hub.config))) return tried
    } catch (error) {
      if (run === TRIES_MAX || sqlState(error) !== LOCK_NOT_AVAILABLE) throw error
      await new Promise(resolve => setTimeout(resolve, LOCK_WAIT_MS * Math.random()))
    }
  }
}
