// A pool of a load balancer: the members that answer for what is sent to it, and how many of them must be up.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { jsonb, text as textColumn, uuid as uuidColumn } from 'drizzle-orm/pg-core'
import { isCheckPath } from '../../../core/load-balancing/config-text.ts'
import { poolStates } from '../../../core/load-balancing/state-names.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { filter } from '../platform/http/collection.ts'
import { integer, oneOf, text, uuid } from '../platform/http/request-schema.ts'
import { amount, id, listed, named, reference, wordOf } from '../platform/http/response-schema.ts'
import { setConditions } from '../resources/conditions.ts'
import type { Editor } from '../resources/editor.ts'
import {
  choiceField,
  columnField,
  compositeField,
  integerField,
  internalField,
  type Values,
} from '../resources/field.ts'
import { defineKind, type RowOf, type Write } from '../resources/kind.ts'
import type { KindInfo } from '../resources/kind-info.ts'
import { loadBalancerKind } from './load-balancer.ts'
import { isInState } from './member-states.ts'
import { countsOf, poolStatesSql, poolsNow } from './pool-states.ts'

export const protocols = ['http', 'https', 'tcp', 'udp'] as const
const algorithms = ['round_robin', 'least_connections', 'source_hash', 'random'] as const

const healthCheck = Type.Object({
  type: Type.Optional(oneOf(['none', 'tcp', 'http', 'https'])),
  path: Type.Optional(text(1024)),
  expect_status: Type.Optional(integer(100, 599)),
  interval_seconds: Type.Optional(integer(5, 3600)),
  timeout_seconds: Type.Optional(integer(1, 60)),
})
type HealthCheck = {
  readonly type: 'none' | 'tcp' | 'http' | 'https'
  readonly path: string
  readonly expect_status: number
  readonly interval_seconds: number
  readonly timeout_seconds: number
}
const USUAL_CHECK: HealthCheck = {
  type: 'none',
  path: '/',
  expect_status: 200,
  interval_seconds: 10,
  timeout_seconds: 5,
}
/** A path goes into the text of a configuration, where a space, a quote or a `#` would end it. */
const checkFaults = ({ path }: Partial<HealthCheck>): ReadonlyMap<string, Words> | null =>
  path === undefined || isCheckPath(path) ? null : new Map([['path', words('lb_path')]])

const fields = {
  protocol: choiceField(protocols, { fallback: 'tcp', filter: true }),
  algorithm: choiceField(algorithms, { fallback: 'round_robin' }),
  health_check: compositeField<{ readonly health_check: HealthCheck }>({
    value: healthCheck,
    fallback: USUAL_CHECK,
    columns: { health_check: jsonb('health_check').notNull() },
    response: Type.Required(healthCheck),
    check: checkFaults,
    store: value => ({ health_check: value }),
    show: row => row.health_check,
  }),
  persistence: choiceField(['none', 'source_ip', 'cookie'], { fallback: 'none' }),
  min_up: integerField(1, 200, { fallback: 1 }),
  warn_below_percent: integerField(0, 100, { fallback: 50 }),
  device_id: columnField<string>(name => uuidColumn(name), uuid(), id(), {
    required: true,
    readOnly: true,
    manifest: false,
  }),
  judged_state: internalField<string | null>(name => textColumn(name), null),
} as const

export type LbPool = RowOf<typeof fields>

async function beforeWrite({ before, next, given }: Write<LbPool>): Promise<void> {
  if (before?.status !== next.status) next.judged_state = null
  // A change names some members; the others stay.
  if (before === null || given.has('health_check'))
    next.health_check = { ...USUAL_CHECK, ...before?.health_check, ...next.health_check }
}

export const poolCounts = named('LbPoolCounts', {
  total: amount(),
  up: amount(),
  draining: amount(),
  disabled: amount(),
  down: amount(),
  unknown: amount(),
})

async function derivePools(
  db: Executor,
  { hub }: Pick<Editor, 'hub' | 'companyId'>,
  rows: readonly LbPool[],
  isShow: boolean,
): Promise<Map<string, Values>> {
  const ids = uuidList(rows.map(row => row.id))
  // A deleted pool has no members to be counted.
  const none = { state: 'empty', counts: { total: 0, up: 0, draining: 0, disabled: 0, down: 0, unknown: 0 } }
  const now = new Map((await poolsNow(db, hub, sql`q.id = any(${ids}::uuid[])`)).map(pool => [pool.id, pool]))
  const users = isShow ? await usersOf(db, rows[0]?.id ?? '') : []
  return new Map(
    rows.map(({ id: poolId }) => {
      const pool = now.get(poolId)
      const shown = pool ? { state: pool.state, counts: countsOf(pool) } : none
      return [poolId, isShow ? { ...shown, used_by: users } : shown]
    }),
  )
}

/** The virtual servers that lead to a pool, by themselves or by a rule. */
async function usersOf(db: Executor, poolId: string) {
  return [
    ...(await db.execute<{ id: string; name: string }>(sql`
      select id, name from virtual_servers where deleted_at is null and (pool_id = ${poolId} or rule_pool_ids && ${uuidList([poolId])}::uuid[])
      order by lower(name), id`)),
  ]
}

type Judged = {
  id: string
  state: string
  up: number
  min_up: number
  total: number
  down: number
  /** Nobody is told of what is planned, or no longer meant to serve. */
  is_meant: boolean
}
const POOL_CONDITIONS = ['pool_down', 'pool_degraded'] as const

/**
 * Opens and ends the conditions of pools by their states now; of all pools of a company, those whose state is another
 * one than it was.
 */
export async function judgePools(
  tx: Tx,
  editor: Pick<Editor, 'hub' | 'companyId'>,
  info: KindInfo,
  poolIds: readonly string[] | null,
) {
  const { hub, companyId } = editor
  const which = poolIds === null ? sql`true` : sql`q.id = any(${uuidList(poolIds)}::uuid[])`
  const pools = await tx.db.execute<Judged>(sql`
    select s.id, s.state, s.up + s.unknown as up, p.min_up, s.total, s.down,
      p.status not in ('planned', 'retired') and d.status not in ('planned', 'retired') as is_meant
    from (${poolStatesSql(hub, sql`q.company_id = ${companyId} and ${which}`)}) s join lb_pools p on p.id = s.id
    join load_balancers d on d.id = p.device_id
    where s.state is distinct from p.judged_state`)
  if (pools.length === 0) return
  const found = new Map(
    pools.flatMap(({ id: poolId, state, is_meant, ...detail }) => {
      if (!is_meant || (state !== 'down' && state !== 'degraded')) return []
      return [[poolId, [{ code: `pool_${state}`, detail }]] as const]
    }),
  )
  await setConditions(
    tx,
    info,
    companyId,
    pools.map(pool => pool.id),
    POOL_CONDITIONS,
    found,
  )
  const states = JSON.stringify(pools.map(pool => ({ id: pool.id, state: pool.state })))
  await tx.db.execute(sql`
    update lb_pools p set judged_state = x.state from jsonb_to_recordset(${states}::jsonb) as x (id uuid, state text)
    where p.company_id = ${companyId} and p.id = x.id`)
}

export const lbPoolKind = defineKind({
  kind: 'lb_pool',
  title: { one: { en: 'pool', vi: 'nhóm máy chủ' }, many: { en: 'pools', vi: 'nhóm máy chủ' } },
  group: loadBalancerKind.group,
  path: '/load-balancers/:device/pools',
  parameter: 'pool',
  table: 'lb_pools',
  schemaName: 'LbPool',
  fields,
  parent: { of: loadBalancerKind, column: 'device_id' },
  limit: 200,
  permissions: loadBalancerKind.info.permissions,
  filters: () => ({
    state: filter(oneOf(poolStates), (value, { hub }) => isInState(poolStatesSql(hub, sql`q.id = lb_pools.id`), value)),
  }),
  derived: {
    list: { state: wordOf(poolStates), counts: poolCounts },
    show: { used_by: listed(reference) },
  },
  conditions: {
    pool_down: {
      severity: 'critical',
      text: {
        en: '{up} of {total} members are up, {min_up} are needed',
        vi: '{up} trên {total} thành viên hoạt động, cần {min_up}',
      },
    },
    pool_degraded: {
      severity: 'warning',
      text: {
        en: '{up} of {total} members are up, {down} are down',
        vi: '{up} trên {total} thành viên hoạt động, {down} ngừng',
      },
    },
  },
  iac: null,
  csv: null,
  hooks: {
    beforeWrite,
    afterWrite: async ({ tx, editor, after }) => {
      if (after) await judgePools(tx, editor, lbPoolKind.info, [after.id])
    },
    derive: derivePools,
  },
})
