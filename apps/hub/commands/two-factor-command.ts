// `hub user reset-two-factor`: the way back in for a person who has lost both the app and the recovery codes of their
// second factor (decision G-02).
import type { Command } from 'commander'
import { eq } from 'drizzle-orm'
import { auditByHub } from '../audit/audit.ts'
import { removeSecondFactor } from '../identity/second-factor.ts'
import { sessions } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import type { Run } from './output.ts'
import { personOf } from './password-command.ts'

/** Adds `reset-two-factor EMAIL` to the commands of people: the password alone signs in again, open sessions end. */
export function addTwoFactorCommand(user: Command, run: Run): void {
  user
    .command('reset-two-factor')
    .description('turn off the second factor of a person who has lost it; ends their sessions')
    .argument('<email>', 'whose; the id of a user where several companies have the address')
    .action((email: string, _options: unknown, command: Command) =>
      run(command, async (hub, print) => {
        const changed = await inTransaction(hub.database.db, async tx => {
          const person = await personOf(tx, email)
          if (!(await removeSecondFactor(tx, person.id))) throw new Error(`${person.email} has no second factor`)
          await tx.db.delete(sessions).where(eq(sessions.userId, person.id))
          const subject = { type: 'user', id: person.id, name: person.name }
          await auditByHub(tx, person.companyId, 'user.two_factor_off', subject)
          return person
        })
        print({ user_id: changed.id, email: changed.email })
      }),
    )
}
