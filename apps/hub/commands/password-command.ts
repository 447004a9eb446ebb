// `hub user password`: the way back in for a person without a password, or who has lost it (decision G-01).
import type { Command } from 'commander'
import { and, eq, sql } from 'drizzle-orm'
import { auditByHub } from '../audit/audit.ts'
import { isLogin } from '../identity/accounts.ts'
import { PASSWORD_CHARS_MIN } from '../identity/password-length.ts'
import { sessions, users } from '../platform/db/schema-identity.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { Run } from './output.ts'

/** What was piped in, without the end of its line. Throws for what is too short for a password. */
export async function readPassword(): Promise<string> {
  const password = (await Bun.stdin.text()).replace(/\r?\n$/, '')
  if (password.length < PASSWORD_CHARS_MIN)
    throw new Error(`the password on standard input must have ${PASSWORD_CHARS_MIN} characters or more`)
  return password
}

/** The person of an address or an id. Of several with one address it is the one that can log in. */
export async function personOf(tx: Tx, emailOrId: string) {
  const found = await tx.db
    .select({
      id: users.id,
      email: users.email,
      name: users.name,
      companyId: users.companyId,
      canLogIn: sql<boolean>`${users.passwordHash} is not null`,
    })
    .from(users)
    .where(
      and(
        eq(users.kind, 'person'),
        isUuid(emailOrId) ? eq(users.id, emailOrId) : sql`lower(${users.email}) = lower(${emailOrId})`,
      ),
    )
  const person = found.length === 1 ? found[0] : found.find(each => each.canLogIn)
  if (person) return person
  if (found.length === 0) throw new Error(`there is no user ${emailOrId}`)
  throw new Error(`${found.length} companies have a user ${emailOrId}: give the id of the user instead`)
}

/** Adds `password EMAIL` to the commands of people: the new password comes on standard input, open sessions end. */
export function addPasswordCommand(user: Command, run: Run): void {
  user
    .command('password')
    .description('set the password, read from standard input; ends the sessions of the person')
    .argument('<email>', 'whose password; the id of a user where several companies have the address')
    .action((email: string, _options: unknown, command: Command) =>
      run(command, async (hub, print) => {
        const password = await readPassword()
        const passwordHash = await Bun.password.hash(password, 'argon2id')
        const changed = await inTransaction(hub.database.db, async tx => {
          const person = await personOf(tx, email)
          if (await isLogin(tx.db, person.email.toLowerCase(), person.id))
            throw new Error(`${person.email} already logs in to another company: an address opens one account`)
          await tx.db.update(users).set({ passwordHash }).where(eq(users.id, person.id))
          await tx.db.delete(sessions).where(eq(sessions.userId, person.id))
          const subject = { type: 'user', id: person.id, name: person.name }
          await auditByHub(tx, person.companyId, 'user.password_set', subject)
          return person
        })
        print({ user_id: changed.id, email: changed.email })
      }),
    )
}
