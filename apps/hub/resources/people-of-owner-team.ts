// Who is told of a resource: its owner team, else everybody who may view it.
import { sql } from 'drizzle-orm'
import type { ChannelPreferences } from '../notifications/deliveries.ts'
import type { Recipient } from '../notifications/recipients.ts'
import type { Tx } from '../platform/db/transaction.ts'

/** The members of teams, by team. */
export async function membersOf(tx: Tx, teamIds: readonly string[]): Promise<Map<string, Set<string>>> {
  const rows = await tx.db.execute<{ team_id: string; user_id: string }>(sql`
    select team_id, user_id from team_members
    where team_id in (select jsonb_array_elements_text(${JSON.stringify(teamIds)}::jsonb)::uuid)`)
  const byTeam = Map.groupBy(rows, row => row.team_id)
  return new Map([...byTeam].map(([team, members]) => [team, new Set(members.map(row => row.user_id))]))
}

/** Those of the owner team who may view the kind; all who may where there is none of them. */
export function peopleFor(voices: ChannelPreferences, members: ReadonlySet<string> | undefined): readonly Recipient[] {
  const own = voices.recipients.filter(person => members?.has(person.id))
  return own.length > 0 ? own : voices.recipients
}
