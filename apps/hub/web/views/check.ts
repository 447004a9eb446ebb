// A check on each of its servers: the newest result, and the last 24 hours hour by hour. An hour without a result is
// not known, and nothing else: neither well nor failed.
import { sql } from 'drizzle-orm'
import { findCheck } from '../../checks/check-list.ts'
import type { CheckType } from '../../platform/db/schema.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { resolveScope } from '../../scopes/scope.ts'
import { type CheckDay, dayOf, metricsOfCheck, readDay } from './check-day.ts'
import { targetText } from './checks.ts'
import type { View } from './view.ts'

/** Each costs a call of its collector. */
const SERVERS_SHOWN = 15
const AGE_MS = 20_000

export type CheckOfServer = CheckDay & {
  readonly id: string
  readonly name: string
  /** Its collector does not answer. */
  readonly isSilent: boolean
}

export type CheckView = {
  readonly id: string
  readonly name: string
  readonly type: CheckType
  readonly target: string
  readonly isEnabled: boolean
  readonly intervalSeconds: number
  readonly servers: number
  /** Those that tell of it. */
  readonly rules: readonly { readonly id: string; readonly name: string }[]
  readonly rows: readonly CheckOfServer[]
}

export const checkView: View<CheckView> = {
  permissions: ['monitoring.view', 'servers.view'],
  params: ['check'],
  ageMs: AGE_MS,
  async make({ hub, companyId, param }) {
    const { db } = hub.database
    if (!isUuid(param('check'))) throw notFound()
    const { check } = await findCheck(db, companyId, param('check'))
    const ids = await resolveScope(db, companyId, check.scope)
    const servers = await db.execute<{ id: string; name: string }>(sql`
      select id, name from servers where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])
      order by lower(name), id limit ${SERVERS_SHOWN}`)
    const rules = await db.execute<{ id: string; name: string }>(sql`
      select id, name from monitoring_rules where company_id = ${companyId} and check_id = ${check.id}
        and deleted_at is null order by created_at, id`)
    const ofServer = async ({ id, name }: { id: string; name: string }): Promise<CheckOfServer> => {
      const read = await readDay(hub, companyId, id, metricsOfCheck(check))
      return { id, name, isSilent: read === null, ...dayOf(read, check, hub.now()) }
    }
    return {
      ...{ id: check.id, name: check.name, type: check.type, target: targetText(check.type, check.target) },
      ...{ isEnabled: check.enabled, servers: ids.length, intervalSeconds: check.intervalSeconds },
      rules: rules.map(({ id, name }) => ({ id, name })),
      rows: await Promise.all(servers.map(ofServer)),
    }
  },
}
