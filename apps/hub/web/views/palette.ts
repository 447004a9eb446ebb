// What the command palette finds of a company's records by what is typed: servers, open alerts, rules; a few of each.
import { sql } from 'drizzle-orm'
import { type AlertFace, facesWhere } from './alerts.ts'
import type { View, ViewContext } from './view.ts'

const SHOWN = 6

type Named = { readonly id: string; readonly name: string }

export type PaletteView = {
  readonly servers: readonly (Named & { readonly about: string })[]
  readonly alerts: readonly AlertFace[]
  readonly rules: readonly Named[]
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

export const paletteView: View<PaletteView> = {
  permissions: ['monitoring.view'],
  optional: ['servers.view', 'monitoring.manage'],
  params: ['q'],
  async make(context) {
    const typed = context.param('q').trim().toLowerCase()
    if (typed === '') return { servers: [], alerts: [], rules: [] }
    const [servers, alerts, rules] = await Promise.all([
      context.may('servers.view') ? foundServers(context, typed) : [],
      foundAlerts(context, typed),
      context.may('monitoring.manage') ? foundRules(context, typed) : [],
    ])
    return { servers, alerts, rules }
  },
}
