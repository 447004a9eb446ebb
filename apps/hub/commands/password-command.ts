// `hub user password`: the way back in for a person without a password, or who has lost it (decision G-01).
import type { Command } from 'commander'
import { eq, sql } from 'drizzle-orm'
import { auditByHub } from '../audit/audit.ts'
import { sessions, users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { PASSWORD_CHARS_MIN } from '../web/invitation.ts'
import type { Run } from './output.ts'

/** What was piped in, without the end of its line. */
export const readPassword = async (): Promise<string> => (await Bun.stdin.text()).replace(/\r?\n$/, '')

/** Adds `password EMAIL` to the commands of people: the new password comes on standard input, open sessions end. */
export function addPasswordCommand(user: Command, run: Run): void {
  user
    .command('password')
    .description('set the password, read from standard input; ends the sessions of the person')
    .argument('<email>', 'whose password')
    .action((email: string, _options: unknown, command: Command) =>
      run(command, async (hub, print) => {
        const password = await readPassword()
        if (password.length < PASSWORD_CHARS_MIN)
          throw new Error(`the password on standard input must have ${PASSWORD_CHARS_MIN} characters or more`)
        const passwordHash = await Bun.password.hash(password, 'argon2id')
        const changed = await inTransaction(hub.database.db, async tx => {
          const [person] = await tx.db
            .update(users)
            .set({ passwordHash })
            .where(sql`lower(${users.email}) = lower(${email}) and ${users.kind} = 'person'`)
            .returning({ id: users.id, email: users.email, name: users.name, companyId: users.companyId })
          if (!person) throw new Error(`there is no user ${email}`)
          await tx.db.delete(sessions).where(eq(sessions.userId, person.id))
          const subject = { type: 'user', id: person.id, name: person.name }
          await auditByHub(tx, person.companyId, 'user.password_set', subject)
          return person
        })
        print({ user_id: changed.id, email: changed.email })
      }),
    )
}
