// The filter of silences as a condition of the database, which alone knows all of them: the same language as everywhere
// (address/filter-language.ts), over monitoring_silences and users `u`, who made them.
import { type SQL, sql } from 'drizzle-orm'
import { silences } from '../../platform/db/schema.ts'
import { ofStatus } from '../../silences/silence-list.ts'
import { silenceStatuses } from '../../silences/silence-response.ts'
import { type FilterTerm, parseFilter } from '../address/filter-language.ts'

const NOTHING = sql`false`

const isAll = sql`coalesce((${silences.scope} ->> 'all')::boolean, false)`

const hasRule = (companyId: string, meets: SQL): SQL => sql`exists (select 1 from monitoring_rules r
  where r.company_id = ${companyId} and r.id = any(${silences.ruleIds}) and ${meets})`

/** Members of the scope, by the keys of the filter. */
const scopeMembers: Readonly<Record<string, string>> = {
  tag: 'tags',
  env: 'environments',
  role: 'roles',
  dc: 'datacenters',
}

const comparisons: Readonly<Record<FilterTerm['operator'], SQL>> = {
  '=': sql`=`,
  '>': sql`>`,
  '<': sql`<`,
  '>=': sql`>=`,
  '<=': sql`<=`,
}

function hasCount({ operator, value }: FilterTerm): SQL {
  const limit = Number(value)
  if (!Number.isFinite(limit)) return NOTHING
  return sql`(not ${isAll} and cardinality(${silences.resolvedServerIds}) ${comparisons[operator]} ${limit}::float8)`
}

function hasWord(companyId: string, wanted: string): SQL {
  const isIn = (text: SQL): SQL => sql`strpos(lower(${text}), ${wanted}) > 0`
  const ofRule = hasRule(companyId, isIn(sql`r.name`))
  return sql`(${isIn(sql`${silences.reason}`)} or ${isIn(sql`coalesce(u.name, '')`)} or ${ofRule})`
}

function hasTerm(companyId: string, term: FilterTerm): SQL {
  const wanted = term.value.toLowerCase()
  switch (term.key) {
    case null:
      return hasWord(companyId, wanted)
    case 'state': {
      const status = silenceStatuses.find(known => known === wanted)
      return status === undefined ? NOTHING : ofStatus[status]
    }
    case 'server':
      return sql`exists (select 1 from servers s where s.company_id = ${companyId} and lower(s.name) = ${wanted}
        and (${isAll} or s.id = any(${silences.resolvedServerIds})))`
    case 'rule':
      return hasRule(companyId, sql`lower(r.name) = ${wanted}`)
    case 'by':
      return sql`lower(coalesce(u.name, '')) = ${wanted}`
    case 'servers':
      return hasCount(term)
    case 'repeat':
      return sql`coalesce(${silences.recurrence} ->> 'frequency', '') = ${wanted}`
    default: {
      const member = Object.hasOwn(scopeMembers, term.key) ? scopeMembers[term.key] : undefined
      if (member === undefined) return NOTHING
      return sql`exists (select 1 from jsonb_array_elements_text(${silences.scope} -> ${member}::text) as e (value)
        where lower(e.value) = ${wanted})`
    }
  }
}

const joined = (conditions: readonly SQL[], by: SQL): SQL => sql`(${sql.join([...conditions], by)})`

/** Everything that the terms ask for; terms of the same key that do not exclude are alternatives. */
export function silencesMeeting(companyId: string, filter: string): SQL {
  const all: SQL[] = [sql`true`]
  const chosen = new Map<string, SQL[]>()
  for (const term of parseFilter(filter)) {
    const has = hasTerm(companyId, term)
    if (term.isExcluded) all.push(sql`not ${has}`)
    else if (term.key === null || term.operator !== '=') all.push(has)
    else chosen.set(term.key, [...(chosen.get(term.key) ?? []), has])
  }
  for (const alternatives of chosen.values()) all.push(joined(alternatives, sql` or `))
  return joined(all, sql` and `)
}
