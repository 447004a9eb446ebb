// What the command palette finds of a company's records by what is typed: servers, open alerts, rules, checks,
// resources, people; a few of each.
import { sql } from 'drizzle-orm'
import { allKinds, kinds } from '../../kinds.ts'
import { likePattern } from '../../platform/db/page-of-rows.ts'
import { plannedAnew } from '../../platform/db/prepared.ts'
import type { BothLanguages } from '../../resources/kind-info.ts'
import { type AlertFace, facesWhere } from './alerts.ts'
import type { View, ViewContext } from './view.ts'

const SHOWN = 6
/** Of each kind that search knows, so that one of them does not hide the others. */
const SHOWN_OF_KIND = 3
const CANDIDATES_MAX = 300
/** Of fewer letters the index of search says nothing. */
const CHARS_MIN = 3

/** The kinds that are found by the documents of search. */
const documented = [...kinds.map(({ info }) => info), ...['check', 'user'].flatMap(kind => allKinds.get(kind) ?? [])]

type Named = { readonly id: string; readonly name: string }

export type PaletteView = {
  readonly servers: readonly (Named & { readonly about: string })[]
  readonly alerts: readonly AlertFace[]
  readonly rules: readonly Named[]
  readonly others: readonly (Named & {
    readonly kind: string
    readonly title: BothLanguages
    readonly about: string | null
  })[]
}

/** Those whose name begins with what is typed stand before those that hold it elsewhere. */
async function foundServers({ companyId, fleets }: ViewContext, typed: string): Promise<PaletteView['servers']> {
  const found: { readonly rank: number; readonly server: PaletteView['servers'][number] }[] = []
  for (const { id, name, hostname, address, role, datacenter } of await fleets.of(companyId)) {
    const at = name.toLowerCase().indexOf(typed)
    const isElsewhere = hostname?.toLowerCase().includes(typed) || address?.includes(typed)
    if (at < 0 && !isElsewhere) continue
    const about = [address, role, datacenter].filter(text => text !== null).join(' · ')
    found.push({ rank: at < 0 ? 2 : Math.min(at, 1), server: { id, name, about } })
  }
  return found
    .sort((one, other) => one.rank - other.rank)
    .slice(0, SHOWN)
    .map(({ server }) => server)
}

const foundAlerts = ({ hub, companyId }: ViewContext, typed: string): Promise<AlertFace[]> =>
  facesWhere(
    hub,
    companyId,
    sql`x.state in ('open', 'acknowledged')
      and position(${typed} in lower(concat_ws(' ', r.name, s.name, x.series_key))) > 0`,
    SHOWN,
  )

async function foundRules({ hub, companyId }: ViewContext, typed: string): Promise<Named[]> {
  const rows = await hub.database.db.execute<{ id: string; name: string }>(sql`
    select id, name from monitoring_rules
    where company_id = ${companyId} and deleted_at is null and position(${typed} in lower(name)) > 0
    order by lower(name), id limit ${SHOWN}`)
  return [...rows]
}

/** Whose name or words hold what is typed, or which has it as its address; names that begin with it first. */
async function foundOthers({ hub, companyId, may }: ViewContext, typed: string): Promise<PaletteView['others']> {
  const seen = documented.filter(({ permissions }) => may(permissions.view)).map(({ kind }) => kind)
  if (typed.length < CHARS_MIN || seen.length === 0) return []
  const rows = await hub.database.db.execute<Named & { kind: string; about: string | null }>(sql`${plannedAnew}
    with found as materialized (
      select kind, resource_id as id, name, subtitle as about from search_documents
      where company_id = ${companyId} and (text like ${likePattern(typed)} or exact @> array[${typed}]::text[])
        and kind in (select jsonb_array_elements_text(${JSON.stringify(seen)}::jsonb))
      limit ${CANDIDATES_MAX}),
    ranked as (
      select kind, id, name, about, position(${typed} in lower(name)) <> 1 as is_elsewhere,
        row_number() over (partition by kind order by position(${typed} in lower(name)) <> 1, lower(name), id) as place
      from found)
    select kind, id, name, about from ranked where place <= ${SHOWN_OF_KIND}
    order by is_elsewhere, lower(name), id limit ${2 * SHOWN}`)
  return rows.flatMap(({ kind, about, ...named }) => {
    const title = allKinds.get(kind)?.title.one
    return title ? [{ ...named, kind, title, about: about === named.name.toLowerCase() ? null : about }] : []
  })
}

export const paletteView: View<PaletteView> = {
  permissions: ['monitoring.view'],
  optional: ['servers.view', 'monitoring.manage', ...new Set(documented.map(({ permissions }) => permissions.view))],
  params: ['q'],
  async make(context) {
    const typed = context.param('q').trim().toLowerCase()
    if (typed === '') return { servers: [], alerts: [], rules: [], others: [] }
    const [servers, alerts, rules, others] = await Promise.all([
      context.may('servers.view') ? foundServers(context, typed) : [],
      foundAlerts(context, typed),
      context.may('monitoring.manage') ? foundRules(context, typed) : [],
      foundOthers(context, typed),
    ])
    return { servers, alerts, rules, others }
  },
}
