// Authentication: the user behind a bearer token or a session cookie, that user's permissions, and the company
// (decisions G-02, G-03, G-04, G-12). All of it is read from the database at every request, so a lost permission is
// lost at once.

import { sql } from 'drizzle-orm'
import { LRUCache } from 'lru-cache'
import type { IncomingRequest } from '../../http/http-request.ts'
import type { Executor } from '../platform/db/connect.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { Grouped } from '../platform/group-commit.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { type Caller, type Identity, sessionCookie } from '../platform/http/caller.ts'
import { companyOf } from './company-of-caller.ts'
import { refuseForeign } from './csrf.ts'
import { effectivePermissions, expandPermissions, grantsAll, type Limits } from './permission-keys.ts'
import { isSessionOver } from './session-life.ts'
import { tokenHash } from './token-forms.ts'

/** The columns read about a token's maker when that is not the token's user; null and false otherwise. */
type MakerColumns = {
  maker_id: string | null
  maker_permissions: string[] | null
  maker_own: string[] | null
  maker_roles: string[] | null
  maker_super_admin: boolean
  maker_gone: boolean
  made_at: string
}

type CredentialRow = {
  credential_id: string
  token_permissions: string[] | null
  ip_ranges: string[] | null
  rate_per_minute: number | null
  rate_max: number | null
  is_issued: boolean
  csrf_token: string | null
  expired: boolean
  revoked: boolean
  stale_use: boolean
  user_id: string
  kind: 'person' | 'collector' | 'matcher'
  name: string
  email: string
  company_id: string | null
  super_admin: boolean
  permissions: string[]
  role_permissions: string[] | null
  gone: boolean
}

const unauthenticated = (): ApiError =>
  new ApiError(401, 'unauthorized', words('unauthenticated'), { reason: 'invalid_token' })

const USER_COLUMNS = sql`
  u.id as user_id, u.kind, u.name, u.email, u.company_id, u.super_admin, u.permissions,
  (select array_agg(p) from user_roles ur join roles r on r.id = ur.role_id, unnest(r.permissions) p
    where ur.user_id = u.id) as role_permissions,
  (u.disabled_at is not null or c.deleted_at is not null) as gone`

const NOBODY: MakerColumns = {
  maker_id: null,
  maker_permissions: null,
  maker_own: null,
  maker_roles: null,
  maker_super_admin: false,
  maker_gone: false,
  made_at: '',
}

/**
 * The limits of a credential: the permissions given to the token, those of its maker when it was made, and those of its
 * maker now. The maker has seen the token, so any permission beyond these would be one that the maker could use.
 */
const limitsOf = (row: CredentialRow, maker: MakerColumns): Limits => [
  row.token_permissions,
  ...(maker.maker_id === null
    ? []
    : [maker.maker_permissions, [...(maker.maker_own ?? []), ...(maker.maker_roles ?? [])]]),
]

/**
 * The permissions with which a credential reaches its user's own account. A token made by somebody with fewer
 * permissions than its user reaches nothing of it.
 */
function accountPermissionsOf(ofUser: readonly string[], maker: MakerColumns, limits: Limits): Set<string> | null {
  const narrowing = limits.filter(limit => limit !== null && !grantsAll(limit))
  const [first, ...others] = narrowing
  if (!first) return null
  const allowed = effectivePermissions(first, others)
  if (maker.maker_id === null) return allowed
  const now = expandPermissions([...(maker.maker_own ?? []), ...(maker.maker_roles ?? [])])
  return expandPermissions(ofUser).isSubsetOf(now) ? allowed : new Set()
}

type Reach = Pick<Caller, 'permissions' | 'accountPermissions'> & { readonly isUnrestricted: boolean }

/**
 * What follows from lists of permissions, by those lists, as the database answered them just now. Few of them differ,
 * and their sets would cost a tenth of a short request.
 */
const reaches = new LRUCache<string, Reach>({ max: 1_000 })

function reachOf(row: CredentialRow, maker: MakerColumns): Reach {
  const { maker_id, maker_permissions, maker_own, maker_roles } = maker
  const own = [row.permissions, row.role_permissions, row.token_permissions]
  const key = JSON.stringify([...own, maker_id !== null, maker_permissions, maker_own, maker_roles])
  const known = reaches.get(key)
  if (known) return known
  const ofUser = [...row.permissions, ...(row.role_permissions ?? [])]
  const limits = limitsOf(row, maker)
  const reach = {
    permissions: effectivePermissions(ofUser, limits),
    accountPermissions: accountPermissionsOf(ofUser, maker, limits),
    isUnrestricted: limits.every(limit => limit === null || grantsAll(limit)),
  }
  reaches.set(key, reach)
  return reach
}

function callerOf(row: CredentialRow, kind: 'token' | 'session', maker: MakerColumns = NOBODY): Caller {
  const { permissions, accountPermissions, isUnrestricted } = reachOf(row, maker)
  const superAdmin = row.super_admin && (maker.maker_id === null || maker.maker_super_admin)
  return {
    kind,
    credentialId: row.credential_id,
    user: {
      id: row.user_id,
      kind: row.kind,
      name: row.name,
      email: row.email,
      companyId: row.company_id,
      superAdmin,
    },
    permissions,
    actsAsSuperAdmin: superAdmin && isUnrestricted,
    accountPermissions,
    madeBy:
      maker.maker_id === null ? null : { id: maker.maker_id, superAdmin: maker.maker_super_admin, at: maker.made_at },
    ipRanges: row.ip_ranges,
    ratePerMinute: row.rate_per_minute,
    rateMax: row.rate_max,
    isIssued: row.is_issued,
    csrfToken: row.csrf_token,
  }
}

/** Read only when the maker is another user: most tokens are made by their own user and need nothing more. */
const MAKER_COLUMNS = sql`
  nullif(t.maker_id, t.user_id) as maker_id, t.maker_permissions, m.permissions as maker_own,
  (select array_agg(p) from user_roles ur join roles r on r.id = ur.role_id, unnest(r.permissions) p
    where ur.user_id = m.id) as maker_roles,
  coalesce(m.super_admin, false) as maker_super_admin,
  (t.maker_id <> t.user_id and (m.id is null or m.disabled_at is not null)) is true as maker_gone, t.created_at as made_at`

const CALLER_OF_TOKEN = fixedStatement<'hash'>(
  value => sql`
    select t.id as credential_id, t.permissions as token_permissions, t.ip_ranges,
      t.rate_per_minute, c.token_rate_max as rate_max, t.maker_id is not null as is_issued, null as csrf_token,
      coalesce(t.expires_at <= now(), false) as expired, t.revoked_at is not null as revoked,
      (t.last_used_at is null or t.last_used_at < now() - interval '1 minute') as stale_use, ${MAKER_COLUMNS}, ${USER_COLUMNS}
    from api_tokens t join users u on u.id = t.user_id left join companies c on c.id = u.company_id
      left join users m on m.id = t.maker_id and t.maker_id <> t.user_id
    where t.token_hash = ${value('hash')}`,
)

type TokenRow = CredentialRow & MakerColumns

async function readToken(db: Executor, hash: string): Promise<TokenRow | null> {
  const [row] = await db.execute<TokenRow>(CALLER_OF_TOKEN({ hash }))
  if (row?.stale_use && isUsable(row))
    await db.execute(sql`update api_tokens set last_used_at = now() where id = ${row.credential_id}`)
  return row ?? null
}

const isUsable = ({ gone, revoked, maker_gone, expired }: TokenRow): boolean =>
  !(gone || revoked || maker_gone || expired)

const readingsOf = new WeakMap<Executor, Grouped<string, TokenRow | null>>()

/** Requests with one token that come while it is read for others share the next reading: none sees an older one. */
function readTokenTogether(db: Executor, hash: string): Promise<TokenRow | null> {
  const readings =
    readingsOf.get(db) ??
    new Grouped(
      async (hashes: readonly string[]) => {
        const row = await readToken(db, hashes[0] ?? hash)
        return hashes.map(() => row)
      },
      hashes => hashes.length,
    )
  readingsOf.set(db, readings)
  return readings.run(hash, hash)
}

/**
 * The caller behind a bearer token. Throws 401 when there is none, or it is expired or revoked; a token that somebody
 * made for another person counts as revoked while that somebody is disabled or gone.
 */
export async function authenticateToken(db: Executor, token: string): Promise<Caller> {
  const row = await readTokenTogether(db, tokenHash(token))
  if (!row || row.gone) throw unauthenticated()
  if (row.revoked || row.maker_gone)
    throw new ApiError(401, 'unauthorized', words('token_revoked'), { reason: 'token_revoked' })
  if (row.expired) throw new ApiError(401, 'unauthorized', words('token_expired'), { reason: 'token_expired' })
  return callerOf(row, 'token', row)
}

/**
 * A person as a caller, for work that goes on without a request of theirs: their permissions as they are now, limited
 * to a list. Null for one that is disabled or gone.
 */
export async function callerOfUser(
  db: Executor,
  userId: string,
  permissions: readonly string[],
): Promise<Caller | null> {
  const [row] = await db.execute<CredentialRow>(sql`
    select u.id as credential_id, null as token_permissions, null as ip_ranges, null as rate_per_minute,
      null as rate_max, false as is_issued, null as csrf_token, false as expired, false as revoked, false as stale_use,
      ${USER_COLUMNS}
    from users u left join companies c on c.id = u.company_id where u.id = ${userId} and u.kind = 'person'`)
  return row && !row.gone ? callerOf({ ...row, token_permissions: [...permissions] }, 'token') : null
}

const CALLER_OF_SESSION = fixedStatement<'hash'>(
  value => sql`
    select s.id as credential_id, null as token_permissions, null as ip_ranges, null as rate_per_minute, null as rate_max,
      false as is_issued, s.csrf_token,
      ${isSessionOver} as expired,
      false as revoked, (s.last_seen_at < now() - interval '1 minute') as stale_use, ${USER_COLUMNS}
    from sessions s join users u on u.id = s.user_id left join companies c on c.id = u.company_id
    where s.token_hash = ${value('hash')}`,
)

/** The caller behind a session cookie. Throws 401 when the session is unknown, idle for too long or too old. */
async function authenticateSession(db: Executor, cookie: string): Promise<Caller> {
  const [row] = await db.execute<CredentialRow>(CALLER_OF_SESSION({ hash: tokenHash(cookie) }))
  if (!row || row.gone || row.expired) throw unauthenticated()
  if (row.stale_use) await db.execute(sql`update sessions set last_seen_at = now() where id = ${row.credential_id}`)
  return callerOf(row, 'session')
}

/** The caller of a request, by its Authorization header, else by its session cookie. */
export async function authenticate(db: Executor, request: IncomingRequest): Promise<Caller> {
  const authorization = request.headers.get('authorization')
  if (authorization !== null) {
    const token = /^Bearer +(\S+)$/i.exec(authorization.trim())?.[1]
    if (!token) throw unauthenticated()
    return authenticateToken(db, token)
  }
  const cookie = new RegExp(`(?:^|;\\s*)${sessionCookie}=([^;]+)`).exec(request.headers.get('cookie') ?? '')?.[1]
  if (!cookie) throw unauthenticated()
  const caller = await authenticateSession(db, cookie)
  const changes = request.method !== 'GET' && request.method !== 'HEAD'
  if (changes) refuseForeign(request.headers, caller)
  return caller
}

/** The implementation that the request pipeline uses. */
export const identity: Identity = { authenticate, companyOf }
