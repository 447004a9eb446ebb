// Strict option lists: a field that belongs to one takes only values of its items. What stands already stays.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import type { Fields } from './field.ts'

/** The list of each field, by the name of the field and of its column. */
type OptionFields = Readonly<Record<string, string>>

export const optionFieldsOf = (fields: Fields): OptionFields =>
  Object.fromEntries(Object.entries(fields).flatMap(([name, { options }]) => (options ? [[name, options]] : [])))

/** The faults of values that changed and that a strict list does not have, by field. */
export async function optionFaults(
  tx: Tx,
  companyId: string,
  fields: OptionFields,
  before: Unchecked | null,
  next: Unchecked,
): Promise<Map<string, Words>> {
  const asked = Object.entries(fields).flatMap(([field, list]) => {
    const value = next[field]
    return typeof value === 'string' && before?.[field] !== value ? [{ field, list, value }] : []
  })
  if (asked.length === 0) return new Map()
  const rows = await tx.db.execute<{ field: string; list: string }>(sql`
    select x.field, x.list from jsonb_to_recordset(${JSON.stringify(asked)}::jsonb) as x (field text, list text, value text)
    join option_lists l on l.company_id = ${companyId} and l.list = x.list and l.strict
    where not exists (select 1 from option_items i where i.company_id = ${companyId} and i.list = x.list
      and i.value = x.value and i.enabled)`)
  return new Map(rows.map(({ field, list }) => [field, words('option_unknown', { list })]))
}
