// What the hub does for certificates by the clock: looks at places whose time has come, and says what the dates alone
// have changed.
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { eachAlone } from '../platform/each-alone.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { findRow } from '../resources/resource-rows.ts'
import { certificateKind } from './certificate.ts'
import { deploymentsOf } from './deployments.ts'
import { lookAtCertificate } from './look-at-deployments.ts'
import { storeJudgement } from './store-judgement.ts'

const PLACES_AT_ONCE = 200
const CERTIFICATES_AT_ONCE = 200
/** A hub that dies in the middle leaves its places to be looked at again after this. */
const CLAIM_SECONDS = 300

type Claimed = { id: string; certificate_id: string; company_id: string }

/** Looks at the places that are due. What is planned or retired is left alone (RES-025). */
export async function lookAtDuePlaces(hub: Hub): Promise<void> {
  const { db } = hub.database
  const claimed = await db.execute<Claimed>(sql`
    update certificate_deployments set next_check_at = now() + make_interval(secs => ${CLAIM_SECONDS})
    where id in (
      select d.id from certificate_deployments d join certificates c on c.id = d.certificate_id
      where d.next_check_at <= now() and c.deleted_at is null and c.status not in ('planned', 'retired')
      order by d.next_check_at limit ${PLACES_AT_ONCE} for update of d skip locked)
    returning id, certificate_id, company_id`)
  const due = Map.groupBy(claimed, place => place.certificate_id)
  await Promise.all([...due].map(([id, places]) => lookAtSome(hub, places[0]?.company_id ?? '', id, places)))
}

async function lookAtSome(hub: Hub, companyId: string, id: string, due: readonly Claimed[]): Promise<void> {
  const { db } = hub.database
  const ids = new Set(due.map(place => place.id))
  try {
    const row = await findRow(certificateKind, db, companyId, id)
    const places = await deploymentsOf(db, companyId, [id])
    await lookAtCertificate(
      hub,
      row,
      places.filter(place => ids.has(place.id)),
    )
  } catch (error) {
    // Deleted meanwhile.
    if (!(error instanceof ApiError)) throw error
  }
}

/** Says anew what is wrong with certificates for which a day has come (RES-105): nothing is written on other days. */
export async function judgeDueCertificates(hub: Hub): Promise<void> {
  const { db } = hub.database
  const due = await db.execute<{ id: string; company_id: string }>(sql`
    select id, company_id from certificates where deleted_at is null and judge_at <= now()
    order by judge_at limit ${CERTIFICATES_AT_ONCE}`)
  await eachAlone(hub, 'cannot judge a certificate', due, ({ id, company_id }) =>
    inTransaction(db, tx => storeJudgement(tx, hub, certificateKind.info, company_id, id)),
  )
}
