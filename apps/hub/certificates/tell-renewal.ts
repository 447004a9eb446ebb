// The owner of a certificate, and webhooks, are told that a renewal was asked for.
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { loadChannelPreferences } from '../notifications/deliveries.ts'
import { tellMessages } from '../notifications/messages.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import type { Editor } from '../resources/editor.ts'
import { membersOf, peopleFor } from '../resources/people-of-owner-team.ts'
import { type Certificate, certificateKind } from './certificate.ts'
import { presentRenewal } from './renewal.ts'

/** Tells of the renewal that was just opened. The result of its run. */
export async function tellRenewal({ hub, companyId }: Editor, row: Certificate): Promise<Unchecked> {
  const { info } = certificateKind
  const { renewal } = row
  if (renewal === null) return { told: 0 }
  const { remaining_deployments: _, ...shown } = presentRenewal(renewal, row.fingerprint_sha256, [])
  return inTransaction(hub.database.db, async tx => {
    // A run whose hub died is taken up again: who was told is not told twice.
    const [untold] = await tx.db.execute(sql`
      update certificates set renewal = renewal || jsonb_build_object('told_at', now())
      where company_id = ${companyId} and id = ${row.id} and renewal ->> 'requested_at' = ${renewal.requested_at}
        and renewal ->> 'told_at' is null
      returning id`)
    if (!untold) return { told: 0 }
    const voices = await loadChannelPreferences(tx.db, companyId, info.permissions.view)
    const members = await membersOf(tx, row.owner_team_id === null ? [] : [row.owner_team_id])
    const people = peopleFor(voices, members.get(row.owner_team_id ?? ''))
    const values = {
      name: row.name,
      due_on: renewal.due_at?.slice(0, 10) ?? '',
      note: renewal.note ?? '',
      owner: '',
    }
    const message = {
      type: 'certificate.renewal_requested' as const,
      severity: 'warning' as const,
      path: `${info.path}/${row.id}`,
      values: (language: 'en' | 'vi') => ({ ...values, kind: info.title.one[language] }),
      people,
      isForGroups: true,
      servers: [],
      items: [
        {
          servers: [],
          data: {
            certificate: {
              id: row.id,
              name: row.name,
              subject: row.subject,
              serial: row.serial,
              fingerprint_sha256: row.fingerprint_sha256,
              not_after: row.not_after?.toISOString() ?? null,
              hostnames: row.hostnames,
            },
            renewal: shown,
          },
        },
      ],
    }
    await tellMessages(hub, tx, companyId, [{ voices, message }])
    return { told: people.length }
  })
}
