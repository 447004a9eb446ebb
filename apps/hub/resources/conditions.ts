// What the hub itself finds wrong with a resource: one open row for each resource and code. They decide the
// health of the resource (resource-health.ts), and the hub tells of them (tell-conditions.ts).
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import type { Language } from '../platform/http/api-texts.ts'
import type { ConditionSeverity, KindInfo } from './kind-info.ts'
import { refreshHealth } from './resource-health.ts'

/** A probed condition opens after this many failed probes in a row (RES-027); a computed one at once. */
const FAILURES_TO_OPEN = 2

export type Finding = {
  readonly code: string
  /** Fills the text of the condition, and tells programs what it is about. */
  readonly detail?: Unchecked
  /** Instead of the severity that the code has. */
  readonly severity?: ConditionSeverity
  readonly isProbed?: boolean
  /** How far it has come, such as the days that are left: people are told again at each other stage. */
  readonly stage?: string
}

/**
 * Says what is wrong with resources of a kind now, for the given codes: opens what is new, brings up to date what is
 * open, ends the others. A resource that `found` does not have has none of the codes.
 */
export async function setConditions(
  tx: Tx,
  info: KindInfo,
  companyId: string,
  resourceIds: readonly string[],
  codes: readonly string[],
  found: ReadonlyMap<string, readonly Finding[]>,
): Promise<void> {
  if (resourceIds.length === 0) return
  const rows = [...found].flatMap(([resourceId, findings]) =>
    findings.map(
      ({
        code,
        detail = {},
        severity = info.conditions[code]?.severity ?? 'warning',
        isProbed = false,
        stage = null,
      }) => ({
        id: randomUUID(),
        resource_id: resourceId,
        code,
        severity,
        detail,
        stage,
        failures_to_open: isProbed ? FAILURES_TO_OPEN : 1,
      }),
    ),
  )
  await tx.db.execute(sql`
    insert into resource_conditions (id, company_id, kind, resource_id, code, severity, detail, stage, failures, since)
    select x.id, ${companyId}::uuid, ${info.kind}::text, x.resource_id, x.code, x.severity, x.detail, x.stage, 1,
      case when x.failures_to_open <= 1 then now() end
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as x (id uuid, resource_id uuid, code text, severity text,
      detail jsonb, stage text, failures_to_open int)
    on conflict (kind, resource_id, code) where resolved_at is null do update set
      severity = excluded.severity, detail = excluded.detail, stage = excluded.stage, failures = resource_conditions.failures + 1,
      since = coalesce(resource_conditions.since, now())`)
  const open = rows.map(({ resource_id, code }) => ({ resource_id, code }))
  const ended = sql`company_id = ${companyId} and kind = ${info.kind} and resolved_at is null
    and resource_id = any(${uuidList(resourceIds)}::uuid[]) and code in (
      select jsonb_array_elements_text(${JSON.stringify(codes)}::jsonb))
    and (resource_id, code) not in (
      select x.resource_id, x.code from jsonb_to_recordset(${JSON.stringify(open)}::jsonb) as x (resource_id uuid, code text))`
  // One that never opened leaves no trace.
  await tx.db.execute(sql`delete from resource_conditions where since is null and ${ended}`)
  await tx.db.execute(sql`update resource_conditions set resolved_at = now() where ${ended}`)
  await refreshHealth(tx, info, companyId, resourceIds)
}

type ConditionRow = {
  resource_id: string
  code: string
  severity: ConditionSeverity
  detail: Unchecked
  since: Date | string
}

/**
 * The text of a condition; what its detail does not say stays empty, and what stands in brackets around it is left out.
 */
export function conditionText({ conditions }: KindInfo, code: string, detail: Unchecked, language: Language): string {
  const text = conditions[code]?.text[language] ?? code
  const said = (name: string): string => {
    const value = detail[name]
    return Array.isArray(value) ? value.join(', ') : String(value ?? '')
  }
  return text
    .replace(/\[([^\]]*\{([a-z_]+)\}[^\]]*)\]/g, (_, part: string, name: string) => (said(name) === '' ? '' : part))
    .replace(/\{([a-z_]+)\}/g, (_, name: string) => said(name))
}

/** The open conditions of resources by their ids, worst first. */
export async function conditionsOf(
  db: Executor,
  info: KindInfo,
  companyId: string,
  resourceIds: readonly string[],
  language: Language,
) {
  if (resourceIds.length === 0) return new Map<string, never[]>()
  const rows = await db.execute<ConditionRow>(sql`
    select resource_id, code, severity, detail, since from resource_conditions
    where company_id = ${companyId} and kind = ${info.kind} and resource_id = any(${uuidList(resourceIds)}::uuid[])
      and since is not null and resolved_at is null
    order by array_position(array['critical', 'warning', 'info'], severity), since, code`)
  const shown = rows.map(row => ({
    id: row.resource_id,
    condition: {
      code: row.code,
      severity: row.severity,
      message: conditionText(info, row.code, row.detail, language),
      since: new Date(row.since),
    },
  }))
  return new Map([...Map.groupBy(shown, ({ id }) => id)].map(([id, of]) => [id, of.map(({ condition }) => condition)]))
}
