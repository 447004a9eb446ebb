// What operators set for all hubs while they run: values of settings, pauses of queues, maintenance. It stands in the
// database; every hub keeps a copy, which it reads again when another has changed something (NOTIFY with the commit),
// and every few seconds, should the signal be lost (decision R-067).
import { sql } from 'drizzle-orm'
import type { Logger } from 'pino'
import type { HubConfig } from '../config.ts'
import type { Sealer } from '../identity/sealer.ts'
import type { Database, Executor } from '../platform/db/connect.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { Jobs } from '../platform/jobs/jobs.ts'
import { definitionOf, isSettingKey, type SettingKey, type SettingValue, settingKeys } from './setting-definitions.ts'

const CHANNEL = 'hub_system'
const READ_EVERY_MS = 4_000

type Maintenance = {
  readonly mode: 'off' | 'read_only'
  readonly messageEn: string | null
  readonly messageVi: string | null
  readonly untilMs: number | null
}
const NO_MAINTENANCE: Maintenance = { mode: 'off', messageEn: null, messageVi: null, untilMs: null }

type ValueRow = { readonly key: string; readonly value: unknown; readonly value_sealed: string | null }
type StateRow = {
  values: readonly ValueRow[]
  pauses: readonly { queue: string; until_ms: number }[]
  maintenance: { mode: 'off' | 'read_only'; en: string | null; vi: string | null; until_ms: number | null } | null
}

export class SystemState {
  /** The configuration as file and environment have it, without what is set over the API. */
  readonly configured: HubConfig
  private values: ReadonlyMap<SettingKey, unknown> = new Map()
  private ordered: Maintenance = NO_MAINTENANCE
  private timer: ReturnType<typeof setInterval> | null = null
  private reading: Promise<void> | null = null

  constructor(
    private readonly config: HubConfig,
    private readonly database: Database,
    private readonly sealer: Sealer,
    private readonly jobs: Jobs,
    private readonly log: Logger,
    private readonly now: () => number,
  ) {
    this.configured = { ...config }
  }

  /** Hears of changes from now on, until the database is closed. */
  async start(): Promise<void> {
    const again = () => this.refreshLater()
    await this.database.jobs.listen(CHANNEL, again, again)
    this.timer = setInterval(again, READ_EVERY_MS)
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer)
    this.timer = null
  }

  private refreshLater(): void {
    this.reading ??= this.refresh()
      .catch(error => this.log.error({ err: error }, 'cannot read the settings'))
      .finally(() => {
        this.reading = null
      })
  }

  /** Reads everything again. */
  async refresh(): Promise<void> {
    const [row] = await this.database.db.execute<StateRow>(sql`
      select
        (select coalesce(jsonb_agg(jsonb_build_object('key', key, 'value', value, 'value_sealed', value_sealed)), '[]')
          from setting_values where company_id is null) as values,
        (select coalesce(jsonb_agg(jsonb_build_object('queue', queue, 'until_ms', floor(extract(epoch from paused_until) * 1000))), '[]')
          from queue_pauses where paused_until > now()) as pauses,
        (select jsonb_build_object('mode', mode, 'en', message_en, 'vi', message_vi, 'until_ms', floor(extract(epoch from until) * 1000))
          from maintenance) as maintenance`)
    if (!row) return
    this.values = new Map(row.values.flatMap(each => this.opened(each)))
    this.applyToConfig()
    this.jobs.setPauses(new Map(row.pauses.map(({ queue, until_ms }) => [queue, until_ms])))
    const { maintenance: given } = row
    this.ordered = given
      ? { mode: given.mode, messageEn: given.en, messageVi: given.vi, untilMs: given.until_ms }
      : NO_MAINTENANCE
  }

  /** A stored value with its key; nothing for a key of another version, or what no key of ours opens. */
  private opened({ key, value, value_sealed: sealed }: ValueRow): [SettingKey, unknown][] {
    if (!isSettingKey(key)) return []
    if (sealed === null) return [[key, value]]
    const secret = this.sealer.open(sealed)
    if (secret !== null) return [[key, secret]]
    this.log.error({ key }, 'the setting was sealed with a key that is gone: set it again')
    return []
  }

  /** What reads the configuration finds what is set over the API in it. */
  applyToConfig(): void {
    const changed = settingKeys.flatMap(key => {
      const { configKey, levels } = definitionOf(key)
      if (configKey === null || levels === 'none') return []
      return [[configKey, this.values.get(key) ?? this.configured[configKey]]]
    })
    Object.assign(this.config, Object.fromEntries(changed))
  }

  /** The value for all; null where none is set and the default is none. */
  value<K extends SettingKey>(key: K): SettingValue<K> | null {
    const { configKey, default: otherwise } = definitionOf(key)
    const value = this.values.get(key) ?? (configKey === null ? otherwise : this.configured[configKey])
    // A stored value was held to the schema of its key.
    return value as SettingValue<K> | null
  }

  /** The value for all that has a default. */
  valueOf<K extends SettingKey>(key: K): SettingValue<K> {
    const value = this.value(key)
    if (value === null) throw new Error(`assertion failed: the setting ${key} has a value`)
    return value
  }

  isSet(key: SettingKey): boolean {
    return this.values.has(key)
  }

  /** The value that holds in a company: its own, else the one for all. */
  async valueIn<K extends SettingKey>(db: Executor, companyId: string, key: K): Promise<SettingValue<K> | null> {
    const [row] = await db.execute<ValueRow>(
      sql`select key, value, value_sealed from setting_values where key = ${key} and company_id = ${companyId}`,
    )
    const [own] = row ? this.opened(row) : []
    return own ? (own[1] as SettingValue<K>) : this.value(key)
  }

  /** Maintenance as it is now: one whose end has come is over. */
  get maintenance(): Maintenance {
    const { mode, untilMs } = this.ordered
    return mode === 'read_only' && untilMs !== null && untilMs <= this.now() ? NO_MAINTENANCE : this.ordered
  }
}

/** With the commit, tells every hub to read again. */
export async function tellHubs(tx: Tx): Promise<void> {
  await tx.db.execute(sql`select pg_notify(${CHANNEL}, '')`)
}
