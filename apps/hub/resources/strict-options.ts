// Strict option lists: a field that belongs to one takes only values of its items. What stands already stays.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import type { Fields } from './field.ts'
import type { Change } from './references.ts'

/** The list of each field, by the name of the field and of its column. */
type OptionFields = Readonly<Record<string, string>>

export const optionFieldsOf = (fields: Fields): OptionFields =>
  Object.fromEntries(Object.entries(fields).flatMap(([name, { options }]) => (options ? [[name, options]] : [])))

const textsOf = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter(each => typeof each === 'string')

/** The faults of values that changed and that a strict list does not have, by field, of each row. */
export async function optionFaultsOf(
  tx: Tx,
  companyId: string,
  fields: OptionFields,
  changes: readonly Change[],
): Promise<Map<string, Words>[]> {
  const given = changes.map(({ before, next }) =>
    Object.entries(fields).flatMap(([field, list]) => {
      const had = textsOf(before?.[field])
      return textsOf(next[field]).flatMap(value => (had.includes(value) ? [] : [{ field, list, value }]))
    }),
  )
  const asked = new Map(given.flat().map(({ list, value }) => [JSON.stringify([list, value]), { list, value }]))
  if (asked.size === 0) return given.map(() => new Map())
  const rows = await tx.db.execute<{ list: string; value: string }>(sql`
    select x.list, x.value from jsonb_to_recordset(${JSON.stringify([...asked.values()])}::jsonb) as x (list text, value text)
    join option_lists l on l.company_id = ${companyId} and l.list = x.list and l.strict
    where not exists (select 1 from option_items i where i.company_id = ${companyId} and i.list = x.list
      and i.value = x.value and i.enabled)`)
  const refused = new Set(rows.map(({ list, value }) => JSON.stringify([list, value])))
  return given.map(
    of =>
      new Map(
        of.flatMap(({ field, list, value }) =>
          refused.has(JSON.stringify([list, value])) ? [[field, words('option_unknown', { list })] as const] : [],
        ),
      ),
  )
}

/** The same of one row. */
export const optionFaults = async (
  tx: Tx,
  companyId: string,
  fields: OptionFields,
  before: Unchecked | null,
  next: Unchecked,
): Promise<Map<string, Words>> =>
  (await optionFaultsOf(tx, companyId, fields, [{ before, next }]))[0] ?? new Map<string, Words>()
