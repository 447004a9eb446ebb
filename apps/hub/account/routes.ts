// REST: /me (group "My account"): the caller itself. Tokens and passwords are managed elsewhere, on purpose.

import { Type } from '@sinclair/typebox'
import { and, desc, eq } from 'drizzle-orm'
import { auditRequest, changesBetween } from '../audit/audit.ts'
import { auditEntryAnswer, listAudit, presentAuditEntry } from '../audit/audit-list.ts'
import { usableCompanies } from '../identity/authenticate.ts'
import { companies, sessions, users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { paged, pageOf, pageQuery } from '../platform/http/paging.ts'
import { isUuid, oneOf, text, timeZone } from '../platform/http/request-schema.ts'
import {
  answer,
  answerList,
  answerPage,
  id,
  listed,
  named,
  nullable,
  reference,
  string,
  time,
} from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { languages } from '../platform/http/texts.ts'

const TAG = 'My account'

const profileAnswer = named('Profile', {
  id: id(),
  email: string(),
  name: string(),
  language: string(),
  time_zone: string(),
  avatar: nullable(string()),
  super_admin: Type.Boolean(),
  company: nullable(Type.Object({ id: id(), name: string(), slug: string() })),
  permissions: listed(string()),
  created_at: time(),
})

const sessionAnswer = named('Session', {
  id: id(),
  ip: nullable(string()),
  user_agent: nullable(string()),
  created_at: time(),
  last_seen_at: time(),
  current: Type.Boolean(),
})

async function profile({ hub, caller, companyId }: RouteContext) {
  const { db } = hub.database
  const [[user], [company]] = await Promise.all([
    db.select().from(users).where(eq(users.id, caller.user.id)),
    db
      .select({ id: companies.id, name: companies.name, slug: companies.slug })
      .from(companies)
      .where(eq(companies.id, companyId)),
  ])
  if (!user) throw notFound()
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    language: user.language,
    time_zone: user.timeZone,
    avatar: user.avatar,
    super_admin: user.superAdmin,
    company: company ?? null,
    permissions: [...caller.permissions].sort(),
    created_at: user.createdAt,
  }
}

const AVATAR_BYTES_MAX = 128 * 1024
const AVATAR_EXAMPLE = 'data:image/png;base64,iVBORw0KGgo='
/** How the bytes of a picture begin; RIFF is what WebP is wrapped in. */
const SIGNATURES = { png: '89504e470d0a1a0a', jpeg: 'ffd8ff', webp: '52494646' } as const

/** A data URL of a small picture whose bytes are what it says. Throws 422. */
function checkedImage(image: string): string {
  const [, type, base64 = ''] = /^data:image\/(png|jpeg|webp);base64,([A-Za-z0-9+/]+={0,2})$/.exec(image) ?? []
  if (type !== 'png' && type !== 'jpeg' && type !== 'webp') throw invalidField('image', 'image')
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.length > AVATAR_BYTES_MAX) throw invalidField('image', 'image_size', { max: AVATAR_BYTES_MAX })
  if (!bytes.toString('hex', 0, 8).startsWith(SIGNATURES[type])) throw invalidField('image', 'image')
  return image
}

/** Changes the caller's own record, audited. A picture is not written into the log. */
async function changeOwn(context: RouteContext, set: Partial<typeof users.$inferInsert>): Promise<void> {
  const { hub, caller } = context
  if (Object.keys(set).length === 0) return
  await inTransaction(hub.database.db, async tx => {
    const [before] = await tx.db.select().from(users).where(eq(users.id, caller.user.id)).for('update')
    await tx.db.update(users).set(set).where(eq(users.id, caller.user.id))
    const shown = (row: Partial<typeof users.$inferInsert>) => ({
      name: row.name,
      language: row.language,
      time_zone: row.timeZone,
      avatar: row.avatar ? 'a picture' : null,
    })
    const changes = changesBetween(shown(before ?? {}), shown({ ...before, ...set }))
    await auditRequest(
      tx,
      context,
      'user.update',
      { type: 'user', id: caller.user.id, name: caller.user.name },
      changes,
    )
  })
}

export const accountRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/me',
    tag: TAG,
    summary: 'Profile, company, permissions',
    answer: answer(profileAnswer),
    handle: async context => ({ data: await profile(context) }),
  }),
  route({
    method: 'PATCH',
    path: '/me',
    accountPermission: 'identity.manage',
    tag: TAG,
    summary: 'Change name, language, time zone',
    body: Type.Object({
      name: Type.Optional(text(255)),
      language: Type.Optional(oneOf(languages)),
      time_zone: Type.Optional(timeZone()),
    }),
    answer: answer(profileAnswer),
    async handle(context) {
      const { name, language, time_zone } = context.body
      const set = {
        ...(name === undefined ? {} : { name }),
        ...(language === undefined ? {} : { language }),
        ...(time_zone === undefined ? {} : { timeZone: time_zone }),
      }
      await changeOwn(context, set)
      return { data: await profile(context) }
    },
  }),
  route({
    method: 'PUT',
    path: '/me/avatar',
    accountPermission: 'identity.manage',
    tag: TAG,
    summary: 'Set the picture',
    body: Type.Object({ image: Type.String({ maxLength: 4 * AVATAR_BYTES_MAX, examples: [AVATAR_EXAMPLE] }) }),
    answer: answer(profileAnswer),
    async handle(context) {
      await changeOwn(context, { avatar: checkedImage(context.body.image) })
      return { data: await profile(context) }
    },
  }),
  route({
    method: 'DELETE',
    path: '/me/avatar',
    accountPermission: 'identity.manage',
    tag: TAG,
    summary: 'Remove the picture',
    async handle(context) {
      await changeOwn(context, { avatar: null })
      return undefined
    },
  }),
  route({
    method: 'GET',
    path: '/me/permissions',
    tag: TAG,
    summary: 'Effective permissions of this token',
    answer: answerList(string()),
    handle: async ({ caller }) => ({ data: [...caller.permissions].sort() }),
  }),
  route({
    method: 'GET',
    path: '/me/companies',
    tag: TAG,
    summary: 'Companies usable in X-Company-Id',
    answer: answerList(reference),
    handle: async ({ hub, caller }) => ({ data: await usableCompanies(hub.database.db, caller) }),
  }),
  route({
    method: 'GET',
    path: '/me/sessions',
    accountPermission: 'identity.view',
    tag: TAG,
    summary: 'Sessions of the caller',
    query: Type.Object(pageQuery),
    answer: answerPage(sessionAnswer),
    async handle({ hub, caller, query, url }) {
      const page = pageOf(query)
      const { db } = hub.database
      const where = eq(sessions.userId, caller.user.id)
      const [rows, total] = await Promise.all([
        db
          .select()
          .from(sessions)
          .where(where)
          .orderBy(desc(sessions.lastSeenAt))
          .limit(page.limit)
          .offset(page.offset),
        db.$count(sessions, where),
      ])
      const data = rows.map(row => ({
        id: row.id,
        ip: row.ip,
        user_agent: row.userAgent,
        created_at: row.createdAt,
        last_seen_at: row.lastSeenAt,
        current: row.id === caller.credentialId,
      }))
      return paged(url, page, total, data)
    },
  }),
  route({
    method: 'DELETE',
    path: '/me/sessions/:session',
    accountPermission: 'identity.manage',
    tag: TAG,
    summary: 'End a session',
    async handle(context) {
      const { hub, caller, params } = context
      const id = params.session ?? ''
      if (!isUuid(id)) throw notFound()
      await inTransaction(hub.database.db, async tx => {
        const ended = await tx.db
          .delete(sessions)
          .where(and(eq(sessions.id, id), eq(sessions.userId, caller.user.id)))
          .returning({ id: sessions.id })
        if (ended.length === 0) throw notFound()
        await auditRequest(tx, context, 'session.end', { type: 'user', id: caller.user.id, name: caller.user.name })
      })
      return undefined
    },
  }),
  route({
    method: 'GET',
    path: '/me/activity',
    accountPermission: 'audit.view',
    tag: TAG,
    summary: 'Audit entries of the caller',
    query: Type.Object(pageQuery),
    answer: answerPage(auditEntryAnswer),
    async handle({ hub, caller, companyId, query, url }) {
      const page = pageOf(query)
      const { rows, total } = await listAudit(hub.database.db, companyId, { actorId: caller.user.id }, page)
      return paged(url, page, total, rows.map(presentAuditEntry))
    },
  }),
]
