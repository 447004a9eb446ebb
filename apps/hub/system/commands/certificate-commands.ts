// The command that looks at every place where a company's certificates are served (R-065).
import { sql } from 'drizzle-orm'
import { certificateKind } from '../../certificates/certificate.ts'
import { deploymentsOf, placeOf } from '../../certificates/deployments.ts'
import { lookAtCertificate } from '../../certificates/look-at-deployments.ts'
import { rowsOfIds } from '../../resources/resource-rows.ts'
import type { CommandTask } from './command-task.ts'

const CERTIFICATES_AT_ONCE = 20

/** Looks at the places of all certificates that are not planned or retired, and says what is not well. */
export async function verifyCertificates(task: CommandTask): Promise<void> {
  const { hub, companyId } = task
  const { db } = hub.database
  const found = await db.execute<{ id: string }>(sql`
    select id from certificates c where company_id = ${companyId} and deleted_at is null
      and status not in ('planned', 'retired')
      and exists (select 1 from certificate_deployments d where d.certificate_id = c.id) order by id`)
  const ids = found.map(row => row.id)
  let places = 0
  for (let at = 0; at < ids.length; at += CERTIFICATES_AT_ONCE) {
    await task.reached(at, ids.length)
    const rows = await rowsOfIds(certificateKind, db, companyId, ids.slice(at, at + CERTIFICATES_AT_ONCE))
    const looked = await Promise.all(
      rows.map(async row => {
        await lookAtCertificate(hub, row, await deploymentsOf(db, companyId, [row.id]))
        return { row, deployments: await deploymentsOf(db, companyId, [row.id]) }
      }),
    )
    for (const { row, deployments } of looked) {
      places += deployments.length
      for (const place of deployments.filter(({ state }) => state !== 'ok'))
        task.say(`${row.name} at ${placeOf(place)}: ${place.state}${place.error === null ? '' : ` (${place.error})`}`)
    }
  }
  await task.reached(ids.length, ids.length)
  task.say(`${ids.length} certificates, ${places} places`)
}
