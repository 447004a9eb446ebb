// The caller itself: profile, snapshot, sessions.
import { and, desc, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { isOverIn } from '../identity/session-life.ts'
import { companies, sessions, users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { notFound } from '../platform/http/api-error.ts'
import { collection, ofCaller } from '../platform/http/collection.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { sessionResponse } from './account-response.ts'

const profileColumns = {
  id: users.id,
  email: users.email,
  name: users.name,
  language: users.language,
  time_zone: users.timeZone,
  avatar: users.avatar,
  super_admin: users.superAdmin,
  created_at: users.createdAt,
}

export async function profile({ hub, caller, companyId }: RouteContext) {
  const { db } = hub.database
  const [[user], [company]] = await Promise.all([
    db.select(profileColumns).from(users).where(eq(users.id, caller.user.id)),
    db
      .select({ id: companies.id, name: companies.name, slug: companies.slug })
      .from(companies)
      .where(eq(companies.id, companyId)),
  ])
  if (!user) throw notFound()
  return { ...user, company: company ?? null, permissions: [...caller.permissions].sort() }
}

type OwnChange = {
  readonly name?: string | undefined
  readonly language?: string | undefined
  readonly time_zone?: string | undefined
  readonly avatar?: string | null | undefined
}
type Columns = Partial<typeof users.$inferInsert>

const columnsOf = ({ name, language, time_zone, avatar }: OwnChange): Columns => ({
  ...(name === undefined ? {} : { name }),
  ...(language === undefined ? {} : { language }),
  ...(time_zone === undefined ? {} : { timeZone: time_zone }),
  ...(avatar === undefined ? {} : { avatar }),
})

/** What the audit log shows: a snapshot is not written into it. */
const shown = (row: Columns) => ({
  name: row.name,
  language: row.language,
  time_zone: row.timeZone,
  avatar: row.avatar ? 'a snapshot' : null,
})

/** Changes the caller's own record, audited. */
export async function changeOwn(context: RouteContext, change: OwnChange): Promise<void> {
  const { hub, caller } = context
  const set = columnsOf(change)
  if (Object.keys(set).length === 0) return
  await inTransaction(hub.database.db, async tx => {
    const [before] = await tx.db
      .select({ name: users.name, language: users.language, timeZone: users.timeZone, avatar: users.avatar })
      .from(users)
      .where(eq(users.id, caller.user.id))
      .for('update')
    await tx.db.update(users).set(set).where(eq(users.id, caller.user.id))
    const changes = changesBetween(shown(before ?? {}), shown({ ...before, ...set }))
    const subject = { type: 'user', id: caller.user.id, name: caller.user.name }
    await auditRequest(tx, context, 'user.update', subject, changes)
  })
}

export const sessionCollection = collection({
  table: sessions,
  scope: ofCaller(sessions.userId),
  // Those that are over go with the clean-up, days later.
  always: () => sql`not ${isOverIn(sql`${sessions}`)}`,
  select: db =>
    db
      .select({
        id: sessions.id,
        ip: sessions.ip,
        user_agent: sessions.userAgent,
        created_at: sessions.createdAt,
        last_seen_at: sessions.lastSeenAt,
      })
      .from(sessions),
  order: [desc(sessions.lastSeenAt), desc(sessions.id)],
  response: sessionResponse,
  present: (row, { caller }) => ({ ...row, current: row.id === caller.credentialId }),
})

export async function endOwnSession(context: RouteContext, id: string): Promise<void> {
  const { hub, caller } = context
  if (!isUuid(id)) throw notFound()
  await inTransaction(hub.database.db, async tx => {
    const ended = await tx.db
      .delete(sessions)
      .where(and(eq(sessions.id, id), eq(sessions.userId, caller.user.id)))
      .returning({ id: sessions.id })
    if (ended.length === 0) throw notFound()
    await auditRequest(tx, context, 'session.end', { type: 'user', id: caller.user.id, name: caller.user.name })
  })
}
