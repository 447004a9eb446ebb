// Settings over the API (decisions ): what holds for a company and where it comes from, and changing it
// for the company or for all.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { judgeSoon } from '../certificates/judge-soon.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound, superAdminOnly } from '../platform/http/api-error.ts'
import type { Caller } from '../platform/http/caller.ts'
import { schemaFaults } from '../platform/http/request-schema.ts'
import { anyObject, named, nullable, reference, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import {
  definitionOf,
  isSettingKey,
  type SettingDefinition,
  type SettingKey,
  settingKeys,
} from '../system-state/setting-definitions.ts'
import { tellHubs } from '../system-state/system-state.ts'

export const settingLevels = ['company', 'system'] as const
type SettingLevel = (typeof settingLevels)[number]

const anyValue = () => Type.Unsafe<unknown>({})

export const settingResponse = named('Setting', {
  key: string(),
  value: anyValue(),
  default: anyValue(),
  source: wordOf(['default', 'configuration', 'system', 'company']),
  level: wordOf(settingLevels),
  type: string(),
  domain: anyObject(),
  description: string(),
  secret: Type.Boolean(),
  is_set: Type.Boolean(),
  settable: Type.Boolean(),
  restart_needed: Type.Boolean(),
  updated_by: nullable(reference),
  updated_at: nullable(time()),
})

type StoredRow = {
  key: string
  of_company: boolean
  value: unknown
  updated_at: string
  updated_by: { id: string; name: string } | null
}

/** The stored values of settings that count in a company, its own and those for all. */
async function storedFor(db: Executor, companyId: string): Promise<StoredRow[]> {
  return [
    ...(await db.execute<StoredRow>(sql`
      select v.key, v.company_id is not null as of_company, v.value, v.updated_at,
        case when u.id is not null then jsonb_build_object('id', u.id, 'name', u.name) end as updated_by
      from setting_values v left join users u on u.id = v.updated_by
      where v.company_id is null or v.company_id = ${companyId}`)),
  ]
}

/** Where the value comes from where nothing is stored. */
const unsetSource = (hub: Hub, { configKey, default: otherwise }: SettingDefinition): 'default' | 'configuration' =>
  configKey === null || JSON.stringify(hub.state.configured[configKey]) === JSON.stringify(otherwise)
    ? 'default'
    : 'configuration'

function presentSetting({ hub, caller, language }: RouteContext, key: SettingKey, stored: readonly StoredRow[]) {
  const definition = definitionOf(key)
  const { levels, schema, isSecret, configKey, default: otherwise } = definition
  const ofKey = stored.filter(row => row.key === key)
  const row = ofKey.find(each => each.of_company) ?? ofKey[0] ?? null
  const ofConfig = configKey === null ? otherwise : hub.state.configured[configKey]
  // Where the hub listens and whom it believes is of the host, and no company's concern.
  const isHidden = isSecret || (levels === 'none' && !caller.actsAsSuperAdmin)
  const { type, items, ...domain } = JSON.parse(JSON.stringify(schema)) as Readonly<Record<string, unknown>>
  return {
    key,
    value: isHidden ? null : row ? row.value : ofConfig,
    default: isHidden || levels === 'none' ? null : otherwise,
    source: row ? (row.of_company ? 'company' : 'system') : unsetSource(hub, definition),
    level: levels === 'both' ? 'company' : 'system',
    type: typeof type === 'string' ? type : 'any',
    domain: items === undefined ? domain : { ...domain, items },
    description: definition.says[language],
    secret: isSecret,
    is_set: row !== null || (ofConfig !== null && ofConfig !== otherwise),
    settable: levels !== 'none',
    restart_needed: levels === 'none',
    updated_by: row?.updated_by ?? null,
    updated_at: row ? new Date(row.updated_at) : null,
  }
}

export async function listSettings(context: RouteContext, level: SettingLevel | undefined) {
  const stored = await storedFor(context.hub.database.db, context.companyId)
  return settingKeys
    .map(key => presentSetting(context, key, stored))
    .filter(each => level === undefined || each.level === level)
}

/** The key of the path. Throws 404. */
export async function settingOfPath({ params }: RouteContext): Promise<SettingKey> {
  const { key = '' } = params
  if (!isSettingKey(key)) throw notFound()
  return key
}

export async function showSetting(context: RouteContext, key: SettingKey) {
  return presentSetting(context, key, await storedFor(context.hub.database.db, context.companyId))
}

/** The company whose value is meant; null for the value for all. Throws 403 for who may not change that. */
function ownerOf(caller: Caller, companyId: string, key: SettingKey, level: SettingLevel): string | null {
  const { levels } = definitionOf(key)
  if (levels === 'none') throw invalidField('key', 'not_settable')
  if (level === 'system') {
    if (!caller.actsAsSuperAdmin) throw superAdminOnly()
    return null
  }
  if (levels === 'system') throw invalidField('level', 'one_of', { values: 'system' })
  return companyId
}

/** What the log may have of a value. */
const shown = (isSecret: boolean, value: unknown): unknown => (isSecret ? '(hidden)' : value)

/** What follows from a setting and is kept, by key: of a company, or of all for null. */
const FOLLOWERS: { readonly [K in SettingKey]?: (tx: Tx, owner: string | null) => Promise<void> } = {
  'certificates.warn_days': judgeSoon,
}

/** Writes or removes the value of an owner, with its entry in the audit log. */
async function store(
  context: RouteContext,
  key: SettingKey,
  owner: string | null,
  write: (tx: Tx) => Promise<unknown>,
  fresh: unknown,
): Promise<void> {
  const { hub } = context
  const { isSecret } = definitionOf(key)
  await inTransaction(hub.database.db, async tx => {
    const [before] = await tx.db.execute<{ value: unknown }>(sql`
      select value from setting_values where key = ${key} and company_id is not distinct from ${owner} for update`)
    await write(tx)
    if (!before && fresh === null) return
    const old = before ? shown(isSecret, before.value) : null
    const changes = { value: { old, new: fresh === null ? null : shown(isSecret, fresh) } }
    const action = fresh === null ? 'setting.reset' : 'setting.update'
    const level = { level: { old: null, new: owner === null ? 'system' : 'company' } }
    await auditRequest(tx, context, action, { type: 'setting', id: null, name: key }, { ...changes, ...level })
    await FOLLOWERS[key]?.(tx, owner)
    await tellHubs(tx)
  })
  await hub.state.refresh()
}

/** Sets a value. Throws 422 on `value` outside its domain. */
export async function setSetting(
  context: RouteContext,
  key: SettingKey,
  { value, level }: { readonly value: unknown; readonly level: SettingLevel | undefined },
): Promise<void> {
  const { hub, caller, companyId } = context
  const definition = definitionOf(key)
  // Without a level both would be plausible, and one of them is for every company (decision R-081).
  if (level === undefined && definition.levels === 'both') throw invalidField('level', 'level_needed')
  const owner = ownerOf(caller, companyId, key, level ?? 'system')
  const faults = [...schemaFaults(definition.schema, value).values()]
  const [fault] = faults
  if (fault) throw invalidField('value', fault.key, fault.params)
  if (!definition.accepts(value)) throw invalidField('value', 'setting_domain')
  const sealed = definition.isSecret ? hub.sealer.seal(String(value)) : null
  const plain = sealed === null ? JSON.stringify(value) : null
  await store(
    context,
    key,
    owner,
    tx =>
      tx.db.execute(sql`
        insert into setting_values (key, company_id, value, value_sealed, updated_by)
        values (${key}, ${owner}, ${plain}::text::jsonb, ${sealed}, ${caller.user.id})
        on conflict (key, coalesce(company_id, '00000000-0000-0000-0000-000000000000')) do update set value = excluded.value, value_sealed = excluded.value_sealed,
          updated_by = excluded.updated_by, updated_at = now()`),
    value,
  )
}

/** Takes a value back: of the company unless the level says otherwise. */
export async function resetSetting(
  context: RouteContext,
  key: SettingKey,
  level: SettingLevel | undefined,
): Promise<void> {
  const { caller, companyId } = context
  const meant = level ?? (definitionOf(key).levels === 'both' ? 'company' : 'system')
  const owner = ownerOf(caller, companyId, key, meant)
  await store(
    context,
    key,
    owner,
    tx =>
      tx.db.execute(sql`delete from setting_values where key = ${key} and company_id is not distinct from ${owner}`),
    null,
  )
}
