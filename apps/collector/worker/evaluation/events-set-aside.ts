// Decides which events of the outbox are set aside. The hub may answer an event with a server error however often it is
// sent, and the events behind it, of all companies, would wait for ever. So once a batch has failed for minutes, ever
// smaller ones are sent until a single event fails; the events of its alert key are left out then, and others are sent.
// Only if the hub takes one of those is the event at fault, and its key is set aside: its events stay in the outbox, in
// their order, and are tried again seldom. A hub that takes nothing from anybody sets nothing aside (decision G-141).
import { backoffMs } from '../../../../core/backoff.ts'
import { limits } from '../../../../core/limits.ts'
import type { OutboxRow, SetAsideKey, Skipped } from '../../store/outbox-store.ts'

/** How patient the search is; all in ms but the tries. */
export type Patience = {
  /** A batch must have failed so often, and for so long, before the search for the event at fault begins. */
  readonly tries: number
  readonly forMs: number
  /** The first and the longest wait before events that were set aside are tried again. */
  readonly retryStartMs: number
  readonly retryCapMs: number
}
export const usualPatience: Patience = { tries: 5, forMs: 120_000, retryStartMs: 60_000, retryCapMs: 3_600_000 }

/** After so many single events that fail in a row, nobody's events are taken: it is the hub that is at fault. */
const SUSPECTS_MAX = 20
/** A company with more keys set aside than this is set aside as a whole. */
const KEYS_PER_COMPANY_MAX = 20
/** Where some are set aside already, the next are likely of their kind, and others need not wait for minutes. */
const TRIES_OF_KNOWN = 2

type Held = { readonly key: SetAsideKey; readonly companyId: string; tries: number; nextMs: number }
type Search = { batchMax: number; readonly suspects: Map<string, string>; byCompany: boolean }

const nameOf = (key: SetAsideKey): string => ('pairKey' in key ? `pair ${key.pairKey}` : `company ${key.companyId}`)

export class SetAside {
  private failing: { sinceMs: number; tries: number } | null = null
  private search: Search | null = null
  private readonly held = new Map<string, Held>()
  /** The last search found that the hub takes nothing. */
  private wasFruitless = false

  constructor(
    private readonly patience: Patience,
    private readonly nowMs: () => number,
  ) {}

  /** The alert keys, and whole companies, that are set aside. */
  get count(): number {
    return this.held.size
  }

  /** How many events may be sent at once. */
  get batchMax(): number {
    return this.search?.batchMax ?? limits.eventsPerRequest
  }

  /** The events that are not sent with the others now. */
  skipped(): Skipped {
    const pairKeys: string[] = []
    const companyIds: string[] = []
    for (const { key } of this.held.values()) {
      if ('pairKey' in key) pairKeys.push(key.pairKey)
      else companyIds.push(key.companyId)
    }
    for (const [pairKey, companyId] of this.search?.suspects ?? []) {
      pairKeys.push(pairKey)
      // The events of another company say more about the hub than those of the same one.
      if (this.search?.byCompany) companyIds.push(companyId)
    }
    return { pairKeys, companyIds }
  }

  /** The hub could not be asked, or answered something that is about none of the events. */
  unasked(): void {
    this.search = null
    this.failing = null
  }

  /** The hub answered these with a server error. True: go on with others, or with fewer, at once. */
  failed(rows: readonly OutboxRow[]): boolean {
    if (!this.search && !this.isLongEnough()) return false
    this.search ??= { batchMax: rows.length, suspects: new Map(), byCompany: true }
    const { suspects } = this.search
    if (rows.length > 1) {
      this.search.batchMax = Math.ceil(rows.length / 2)
      return true
    }
    const [row] = rows
    if (row) suspects.set(row.pairKey, row.event.company_id)
    this.search.batchMax = 1
    if (suspects.size < SUSPECTS_MAX) return true
    this.giveUp()
    return false
  }

  /** The hub will not take it, and there is nowhere to keep it: tried again with what is behind it of its alert. */
  unkept({ pairKey, event }: OutboxRow): void {
    this.hold({ pairKey }, event.company_id)
  }

  /** Nothing waits but what is skipped. True: read again, since other events are skipped now. */
  foundNothing(): boolean {
    if (!this.search || this.search.suspects.size === 0) {
      this.search = null
      return false
    }
    if (this.search.byCompany) {
      this.search.byCompany = false
      return true
    }
    this.giveUp()
    return false
  }

  /** The hub took events that are not set aside. Returns the keys that are set aside from now on. */
  delivered(): readonly SetAsideKey[] {
    this.failing = null
    this.wasFruitless = false
    if (!this.search) return []
    const found = [...this.search.suspects].map(([pairKey, companyId]) => this.hold({ pairKey }, companyId))
    this.search.suspects.clear()
    this.search.byCompany = true
    this.search.batchMax *= 2
    if (this.search.batchMax >= limits.eventsPerRequest) this.search = null
    return found
  }

  /** What was set aside and is to be tried again now; null while the hub does not take other events either. */
  due(): SetAsideKey | null {
    if (this.failing || this.search) return null
    const nowMs = this.nowMs()
    for (const { key, nextMs } of this.held.values()) if (nextMs <= nowMs) return key
    return null
  }

  retryFailed(key: SetAsideKey): void {
    const held = this.held.get(nameOf(key))
    if (held) held.nextMs = this.nowMs() + this.waitMs(++held.tries)
  }

  /** Nothing of the key waits any more, or a whole company may be tried event by event again. */
  release(key: SetAsideKey): void {
    this.held.delete(nameOf(key))
  }

  private waitMs(tries: number): number {
    return backoffMs({ startMs: this.patience.retryStartMs, capMs: this.patience.retryCapMs }, tries)
  }

  private isLongEnough(): boolean {
    const nowMs = this.nowMs()
    this.failing ??= { sinceMs: nowMs, tries: 0 }
    this.failing.tries++
    if (this.held.size > 0 && !this.wasFruitless && this.failing.tries >= TRIES_OF_KNOWN) return true
    return this.failing.tries >= this.patience.tries && nowMs - this.failing.sinceMs >= this.patience.forMs
  }

  private giveUp(): void {
    this.wasFruitless = true
    this.search = null
    this.failing = null
  }

  private hold(key: SetAsideKey, companyId: string): SetAsideKey {
    const ofCompany = this.held.values().filter(held => held.companyId === companyId && 'pairKey' in held.key)
    const names = [...ofCompany].map(held => nameOf(held.key))
    const isWhole = names.length >= KEYS_PER_COMPANY_MAX
    if (isWhole) for (const name of names) this.held.delete(name)
    const held = isWhole ? { companyId } : key
    this.held.set(nameOf(held), { key: held, companyId, tries: 1, nextMs: this.nowMs() + this.waitMs(1) })
    return held
  }
}
