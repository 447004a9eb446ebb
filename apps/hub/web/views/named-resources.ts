// The names of what resources name by its id, as far as the viewer may see its kind; and what a field may name.

import { sql } from 'drizzle-orm'
import { uuidList } from '../../platform/db/transaction.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { RESOURCE_KEYS } from './infrastructure.ts'
import type { NamedResource, ResourceChoicesView } from './resource-pages.ts'
import type { View, ViewContext } from './view.ts'

/** Keys that decide about names: of kinds of resources, and of what they name beside each other. */
export const NAME_KEYS = [...new Set([...RESOURCE_KEYS, 'servers.view', 'monitoring.view', 'identity.view'])]

const CHOICES_MAX = 30

type Reference = { readonly kind: string; readonly id: string }

/** Those of the company that are there; of a kind that the viewer may not see none. */
export async function namesOf(
  { hub, companyId, may }: Pick<ViewContext, 'hub' | 'companyId' | 'may'>,
  references: readonly Reference[],
): Promise<readonly NamedResource[]> {
  const found: NamedResource[] = []
  for (const [kind, some] of Map.groupBy(references, reference => reference.kind)) {
    const info = hub.kinds.get(kind)
    const ids = new Set(some.map(({ id }) => id).filter(isUuid))
    if (info === undefined || ids.size === 0 || !may(info.permissions.view)) continue
    const rows = await hub.database.db.execute<{ id: string; name: string }>(sql`
      select id, ${sql.identifier(info.nameColumn)}::text as name from ${sql.identifier(info.table)}
      where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])`)
    for (const { id, name } of rows) found.push({ id, kind, name })
  }
  return found
}

/** What a field of a form may name: the first ones by name that hold what was typed. */
export const resourceChoicesView: View<ResourceChoicesView> = {
  permissions: [],
  optional: NAME_KEYS,
  params: ['kind', 'search'],
  // A form that is open keeps asking, and a text that few names hold is looked for in all of them.
  ageMs: 30_000,
  async make({ hub, companyId, may, param }) {
    const info = hub.kinds.get(param('kind'))
    if (info === undefined || !may(info.permissions.view)) return { choices: [] }
    const name = sql`${sql.identifier(info.nameColumn)}::text`
    const isKept = info.isResource || info.kind === 'server' ? sql`and deleted_at is null` : sql``
    const rows = await hub.database.db.execute<{ id: string; name: string }>(sql`
      select id, ${name} as name from ${sql.identifier(info.table)}
      where company_id = ${companyId} and position(lower(${param('search')}) in lower(${name})) > 0 ${isKept}
      order by lower(${name}), id limit ${CHOICES_MAX}`)
    return { choices: rows.map(({ id, name: text }) => ({ id, kind: info.kind, name: text })) }
  },
}
