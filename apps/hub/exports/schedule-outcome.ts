// What the end of an export means for the schedule that it came of (decision R-072): its people are told of a link and
// never sent the file; a schedule that fails three times in a row is disabled.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { ringLater } from '../notifications/bell.ts'
import { addBellRows, type BellRow } from '../notifications/bell-rows.ts'
import { languageOf } from '../notifications/templates.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'

const FAILURES_MAX = 3

const texts = {
  en: (name: string, rows: number) => ({ title: `Export ready: ${name}`, body: `${rows} rows. It can be downloaded.` }),
  vi: (name: string, rows: number) => ({
    title: `Bản xuất đã sẵn sàng: ${name}`,
    body: `${rows} dòng. Có thể tải về.`,
  }),
} as const

type Ended = {
  state: string
  company_id: string
  schedule_id: string
  name: string
  row_count: number
  recipients: string[]
  requested_by: string | null
}

async function tellReady(hub: Hub, tx: Tx, exportId: string, ended: Ended): Promise<void> {
  const ids = [...new Set([...ended.recipients, ...(ended.requested_by ? [ended.requested_by] : [])])]
  const people = await tx.db.execute<{ id: string; language: string }>(sql`
    select id, language from users where id = any(${uuidList(ids)}::uuid[]) and company_id = ${ended.company_id}
      and disabled_at is null`)
  const rows: BellRow[] = people.map(({ id, language }) => ({
    id: randomUUID(),
    user_id: id,
    company_id: ended.company_id,
    type: 'export.ready',
    ...texts[languageOf(language)](ended.name, ended.row_count),
    link: `/exports/${exportId}`,
    created_at: new Date(hub.now()).toISOString(),
  }))
  await addBellRows(tx, rows)
  await ringLater(
    tx,
    rows.map(row => ({ id: row.id, userId: row.user_id })),
  )
}

/** Called in the transaction that ends an export. */
export async function noteOutcome(hub: Hub, tx: Tx, exportId: string): Promise<void> {
  const [ended] = await tx.db.execute<Ended>(sql`
    select e.state, e.company_id, e.schedule_id, s.name, e.row_count, e.recipients, e.requested_by
    from exports e join export_schedules s on s.id = e.schedule_id where e.id = ${exportId}`)
  if (!ended) return
  if (ended.state === 'ready') {
    await tx.db.execute(sql`update export_schedules set failures_in_a_row = 0 where id = ${ended.schedule_id}`)
    await tellReady(hub, tx, exportId, ended)
  } else
    await tx.db.execute(sql`
      update export_schedules set failures_in_a_row = failures_in_a_row + 1,
        enabled = enabled and failures_in_a_row + 1 < ${FAILURES_MAX},
        disabled_reason = case when failures_in_a_row + 1 < ${FAILURES_MAX} then disabled_reason else 'failures' end
      where id = ${ended.schedule_id}`)
}
