// The second factor of a person's login (decision G-02): a code that an app makes by the clock (RFC 6238), or one of
// ten recovery codes. Each is good once. It guards the login of the web interface; API tokens work without it.
import { randomBytes } from 'node:crypto'
import { and, eq, lt, ne, sql } from 'drizzle-orm'
import { Secret, TOTP } from 'otpauth'
import { type AuditEntry, writeAudit } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import { userSecondFactors as factors, sessions } from '../platform/db/schema-identity.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import type { Caller } from '../platform/http/caller.ts'
import { tokenHash } from './token-forms.ts'

const PERIOD_MS = 30_000
/** Clocks of phones differ: a code of the half minute before or after is taken too. */
const TOLERATED_STEPS = 1
const SECRET_BYTES = 20
const OFFERED_MS = 15 * 60_000
const RECOVERY_CODES = 10
/** 80 bits, so that the hash of a code tells nothing of it. */
const RECOVERY_CHARS = 16
/** Without i, l, o and u, which are read for others. Their number divides 256. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const FAILURES_MAX = 10
const FAILURES_MS = 15 * 60_000

type Person = { readonly id: string; readonly email: string }
type Act = Pick<AuditEntry, 'ip' | 'userAgent'>

const appOf = (secret: string, email = ''): TOTP =>
  new TOTP({
    issuer: 'Server monitoring',
    label: email,
    secret,
    algorithm: 'SHA1',
    digits: 6,
    period: PERIOD_MS / 1000,
  })

/** The half minute whose code this is; null for a code of none near now. */
function stepOf(secret: string, given: string, nowMs: number): number | null {
  const token = given.replace(/\s/g, '')
  if (!/^\d{6}$/.test(token)) return null
  const delta = appOf(secret).validate({ token, timestamp: nowMs, window: TOLERATED_STEPS })
  return delta === null ? null : Math.floor(nowMs / PERIOD_MS) + delta
}

/** A secret that a person may take as their second factor: nothing is kept of it until they confirm it with a code. */
export type Offer = { readonly secret: string; readonly link: string; readonly sealed: string }

const placeOf = (person: Person): string => `second factor offered to ${person.id}`
const linkOf = (secret: string, { email }: Person): string => appOf(secret, email).toString()

export function newOffer(hub: Hub, person: Person): Offer {
  const { base32: secret } = new Secret({ size: SECRET_BYTES })
  const content = JSON.stringify({ secret, untilMs: hub.now() + OFFERED_MS })
  const sealed = Buffer.from(hub.sealer.sealBytes(Buffer.from(content), placeOf(person))).toString('base64url')
  return { secret, link: linkOf(secret, person), sealed }
}

/** The offer that a form brings back; null when it is too old, or was made to somebody else. */
export function offerOf(hub: Hub, person: Person, sealed: string): Offer | null {
  const content = hub.sealer.openBytes(Buffer.from(sealed, 'base64url'), placeOf(person))
  if (content === null) return null
  const { secret, untilMs }: { secret: string; untilMs: number } = JSON.parse(Buffer.from(content).toString())
  return untilMs > hub.now() ? { secret, link: linkOf(secret, person), sealed } : null
}

function newRecoveryCode(): string {
  const chars = [...randomBytes(RECOVERY_CHARS)].map(byte => ALPHABET[byte % ALPHABET.length]).join('')
  return chars.replace(/.{4}(?=.)/g, '$&-')
}

const newRecoveryCodes = (): string[] => Array.from({ length: RECOVERY_CODES }, newRecoveryCode)
const recoveryHash = (code: string): string => tokenHash(code.toLowerCase().replace(/[\s-]/g, ''))

const auditOf = ({ user }: Caller, action: string, act: Act): AuditEntry => ({
  companyId: user.companyId,
  actor: { type: 'user', id: user.id, name: user.name },
  action,
  subject: { type: 'user', id: user.id, name: user.name },
  ...act,
})

/** How many recovery codes a person has left; null without a second factor. */
export async function recoveryCodesLeft(hub: Hub, userId: string): Promise<number | null> {
  const [row] = await hub.database.db
    .select({ left: sql<number>`cardinality(${factors.recoveryHashes})` })
    .from(factors)
    .where(eq(factors.userId, userId))
  return row?.left ?? null
}

/**
 * Turns the second factor on when the code is one of the secret, and ends the person's other sessions, which began
 * without it. Returns the recovery codes, which are kept as hashes only; null for a wrong code, or when it is on
 * already.
 */
export async function turnOn(
  hub: Hub,
  caller: Caller,
  secret: string,
  code: string,
  act: Act,
): Promise<string[] | null> {
  const step = stepOf(secret, code, hub.now())
  if (step === null) return null
  const codes = newRecoveryCodes()
  return inTransaction(hub.database.db, async tx => {
    const made = await tx.db
      .insert(factors)
      .values({
        userId: caller.user.id,
        secretSealed: hub.sealer.seal(secret),
        confirmedAt: new Date(hub.now()),
        lastStep: step,
        recoveryHashes: codes.map(recoveryHash),
      })
      .onConflictDoNothing()
      .returning({ userId: factors.userId })
    if (made.length === 0) return null
    await tx.db.delete(sessions).where(and(eq(sessions.userId, caller.user.id), ne(sessions.id, caller.credentialId)))
    await writeAudit(tx, auditOf(caller, 'user.two_factor_on', act))
    return codes
  })
}

/** `wrong`: no code of this person, or one that was used. */
type Taken =
  | { readonly taken: true }
  | { readonly refused: 'wrong' }
  | { readonly refused: 'limited'; readonly retryAfterSeconds: number }

type FactorRow = typeof factors.$inferSelect

/** Uses up the code, if it is one: by conditional updates, so that of two hubs only one takes it. */
async function use(hub: Hub, tx: Tx, row: FactorRow, given: string): Promise<boolean> {
  const secret = hub.sealer.open(row.secretSealed)
  if (secret === null) hub.log.error({ user_id: row.userId }, 'no key opens the second factor of a person')
  const step = secret === null ? null : stepOf(secret, given, hub.now())
  const isOf = eq(factors.userId, row.userId)
  const returned = { userId: factors.userId }
  if (step !== null) {
    const newer = and(isOf, lt(factors.lastStep, step))
    return (await tx.db.update(factors).set({ lastStep: step }).where(newer).returning(returned)).length > 0
  }
  const hash = recoveryHash(given)
  const used = await tx.db
    .update(factors)
    .set({ recoveryHashes: sql`array_remove(${factors.recoveryHashes}, ${hash})` })
    .where(and(isOf, sql`${hash} = any (${factors.recoveryHashes})`))
    .returning(returned)
  return used.length > 0
}

/** One more wrong code. The tenth within a quarter of an hour is followed by another in which none is looked at. */
async function countFailure(hub: Hub, tx: Tx, row: FactorRow): Promise<void> {
  const nowMs = hub.now()
  const isSame = row.failuresSince !== null && row.failuresSince.getTime() > nowMs - FAILURES_MS
  const failures = isSame ? row.failures + 1 : 1
  await tx.db
    .update(factors)
    .set(
      failures >= FAILURES_MAX
        ? { failures: 0, failuresSince: null, refusedUntil: new Date(nowMs + FAILURES_MS) }
        : { failures, failuresSince: isSame ? row.failuresSince : new Date(nowMs) },
    )
    .where(eq(factors.userId, row.userId))
}

/** Takes a code of a person, and then acts. The row is locked: codes that come at once are counted one by one. */
export async function takeCode(
  hub: Hub,
  userId: string,
  given: string,
  act: (tx: Tx) => Promise<void> = async () => {},
): Promise<Taken> {
  return inTransaction(hub.database.db, async (tx): Promise<Taken> => {
    const [row] = await tx.db.select().from(factors).where(eq(factors.userId, userId)).for('update')
    if (!row) return { refused: 'wrong' }
    const waitMs = (row.refusedUntil?.getTime() ?? 0) - hub.now()
    if (waitMs > 0) return { refused: 'limited', retryAfterSeconds: Math.ceil(waitMs / 1000) }
    if (!(await use(hub, tx, row, given))) {
      await countFailure(hub, tx, row)
      return { refused: 'wrong' }
    }
    await act(tx)
    return { taken: true }
  })
}

export const turnOff = (hub: Hub, caller: Caller, code: string, act: Act): Promise<Taken> =>
  takeCode(hub, caller.user.id, code, async tx => {
    await removeSecondFactor(tx, caller.user.id)
    await writeAudit(tx, auditOf(caller, 'user.two_factor_off', act))
  })

/** Ten new recovery codes; the old ones are no longer good. */
export async function renewRecoveryCodes(
  hub: Hub,
  caller: Caller,
  code: string,
  act: Act,
): Promise<{ readonly codes: readonly string[] } | Exclude<Taken, { taken: true }>> {
  const codes = newRecoveryCodes()
  const answer = await takeCode(hub, caller.user.id, code, async tx => {
    const recoveryHashes = codes.map(recoveryHash)
    await tx.db.update(factors).set({ recoveryHashes }).where(eq(factors.userId, caller.user.id))
    await writeAudit(tx, auditOf(caller, 'user.two_factor_codes', act))
  })
  return 'refused' in answer ? answer : { codes }
}

/** Returns whether there was one. */
export async function removeSecondFactor(tx: Tx, userId: string): Promise<boolean> {
  const removed = await tx.db.delete(factors).where(eq(factors.userId, userId)).returning({ userId: factors.userId })
  return removed.length > 0
}
