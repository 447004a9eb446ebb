// Whom it may be told: the users of a company with a permission, and from which severity on each channel they want it
// (decision G-104).
import { type SQL, sql } from 'drizzle-orm'
import { grantersOf } from '../identity/permission-keys.ts'
import type { Executor } from '../platform/db/connect.ts'
import { uuidList } from '../platform/db/transaction.ts'
import { DEFAULT_LEVELS } from './default-levels.ts'
import { languageOf } from './templates.ts'

type RecipientRow = {
  id: string
  email: string
  language: string
  address_unconfirmed: boolean
  bell: string | null
  email_level: string | null
}

export type Recipient = {
  readonly id: string
  readonly email: string
  readonly language: 'en' | 'vi'
  /** Another user entered the address. */
  readonly isUnconfirmed: boolean
  readonly bellFrom: string
  readonly emailFrom: string
}

/** A condition on user `u`: holds the permission, by themselves or by a role. */
export function holds(permission: string): SQL {
  const granters = `{${grantersOf(permission).join(',')}}`
  return sql`(u.permissions && ${granters}::text[] or u.id in (
    select ur.user_id from user_roles ur join roles r on r.id = ur.role_id where r.permissions && ${granters}::text[]))`
}

/** Everybody who holds a permission, or some people. */
type Chosen = string | { readonly userIds: readonly string[] }

/**
 * The users of a company that are chosen, with their preferences. A company can have many users, of which few are
 * notified.
 */
export async function recipientsOf(db: Executor, companyId: string, chosen: Chosen): Promise<Recipient[]> {
  const isChosen = typeof chosen === 'string' ? holds(chosen) : sql`u.id = any(${uuidList(chosen.userIds)}::uuid[])`
  const rows = await db.execute<RecipientRow>(sql`
    select u.id, u.email, u.language, u.address_unconfirmed,
      (select min_severity from notification_preferences n where n.user_id = u.id and n.channel = 'bell') as bell,
      (select min_severity from notification_preferences n where n.user_id = u.id and n.channel = 'email') as email_level
    from users u where u.company_id = ${companyId} and u.kind = 'person' and u.disabled_at is null and ${isChosen}`)
  return rows.map(row => ({
    id: row.id,
    email: row.email,
    language: languageOf(row.language),
    isUnconfirmed: row.address_unconfirmed,
    bellFrom: row.bell ?? DEFAULT_LEVELS.bell,
    emailFrom: row.email_level ?? DEFAULT_LEVELS.email,
  }))
}
