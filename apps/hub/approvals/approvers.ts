// Who belongs to the approvers of a step now (resources.md R-044): named persons, a role, a team of the company.
// Who of them may decide, and how many must: core/lifecycle/may-decide-on-ticket.ts.
import { type SQL, sql } from 'drizzle-orm'
import type { Approvers, StepPeople } from '../../../core/lifecycle/approval-ticket.ts'
import { holds } from '../notifications/recipients.ts'
import type { Executor } from '../platform/db/connect.ts'
import { uuidList } from '../platform/db/transaction.ts'

const belongsTo = ({ users, role, team }: Approvers): SQL => sql`(u.id = any(${uuidList(users)}::uuid[])
  or u.id in (select ur.user_id from user_roles ur where ur.role_id = ${role}::uuid)
  or u.id in (select tm.user_id from team_members tm where tm.team_id = ${team}::uuid))`

/** The people of any of the groups; `also` are looked up beside them, such as delegates. */
async function stepPeople(
  db: Executor,
  companyId: string,
  groups: readonly Approvers[],
  also: readonly string[],
): Promise<StepPeople> {
  const named = groups.reduce((all, group) => sql`${all} or ${belongsTo(group)}`, sql`false`)
  const rows = await db.execute<{ id: string; named: boolean; able: boolean }>(sql`
    select x.id, x.named, x.able from (
      select u.id, (${named}) as named, (u.disabled_at is null and ${holds('approvals.decide')}) as able
      from users u where u.company_id = ${companyId} and u.kind = 'person') x
    where x.named or x.id = any(${uuidList(also)}::uuid[]) order by x.id`)
  return {
    // Who is gone for good is named all the same: a manager may hand on their say.
    named: [...new Set([...rows.filter(row => row.named).map(row => row.id), ...groups.flatMap(group => group.users)])],
    able: new Set(rows.filter(row => row.able).map(row => row.id)),
  }
}

/** Whether a person of the company may decide at all. */
export async function canDecide(db: Executor, companyId: string, userId: string): Promise<boolean> {
  const { able } = await stepPeople(db, companyId, [], [userId])
  return able.has(userId)
}

/** The same groups are looked up once. */
export class PeopleLookup {
  private readonly known = new Map<string, Promise<StepPeople>>()

  constructor(
    private readonly db: Executor,
    private readonly companyId: string,
  ) {}

  of(groups: readonly Approvers[], also: readonly string[]): Promise<StepPeople> {
    const key = JSON.stringify([groups, also])
    const known = this.known.get(key) ?? stepPeople(this.db, this.companyId, groups, also)
    this.known.set(key, known)
    return known
  }
}
