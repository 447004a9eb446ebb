// Finds rows of a company by ids or names.
import { type AnyColumn, or, type SQL, sql } from 'drizzle-orm'
import { isAnyOf } from '../../platform/db/transaction.ts'
import type { Asked } from './manifest-kind.ts'

/** True for rows that have one of the ids or, regardless of case, of the names. */
export const isAsked = (id: AnyColumn, name: AnyColumn, { ids, names }: Asked): SQL =>
  or(
    isAnyOf(id, ids),
    sql`lower(${name}) in (select jsonb_array_elements_text(${JSON.stringify(names.map(each => each.toLowerCase()))}::jsonb))`,
  ) as SQL
