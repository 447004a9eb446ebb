// Exports of findings (decision G-176): asked for, written by a job in parts of bounded size, kept for a day, and sent
// part by part, so that neither side ever has the whole in memory.
import { randomUUID } from 'node:crypto'
import { and, asc, eq, gt, inArray, ne, type SQL, sql } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import { sentInChunks } from '../../../http/http-response.ts'
import { auditRequest } from '../../audit/audit.ts'
import type { Hub } from '../../hub-context.ts'
import type { Executor } from '../../platform/db/connect.ts'
import { securityExportParts, securityExports } from '../../platform/db/schema-security.ts'
import { inTransaction, lockCompany } from '../../platform/db/transaction.ts'
import { invalidField, notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { amount, anyObject, id, named, nullable, string, time, wordOf } from '../../platform/http/response-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'
import type { JobPayload } from '../../platform/jobs/jobs.ts'
import { type FindingFilter, findingConditions } from '../findings/finding-filter.ts'
import { findingsByIds, presentFinding } from '../findings/finding-list.ts'
import { FINDING_ORDER } from '../findings/finding-page.ts'
import { hiddenKinds } from '../findings/hidden-kinds.ts'
import { type ExportFormat, exportFormats, headOf, lineOf } from './export-lines.ts'

const QUEUE = 'security.export'
const KEPT_MS = 24 * 3_600_000
const ROWS_MAX = 1_000_000
const ROWS_AT_ONCE = 500
/** A part before it is compressed. */
const PART_CHARS = 1_000_000
/** What a company may have lying here at a time. */
const EXPORTS_MAX = 20

type ExportRow = typeof securityExports.$inferSelect

export const exportResponse = named('SecurityExport', {
  id: id(),
  format: wordOf(exportFormats),
  filters: anyObject(),
  status: wordOf(['queued', 'running', 'ready', 'failed']),
  row_count: nullable(amount()),
  created_at: time(),
  finished_at: nullable(time()),
  expires_at: time(),
  /** Where it is downloaded once it is ready, below the address of the hub. */
  download: string(),
})

export function presentExport(row: ExportRow) {
  const { hidden_kinds: _hidden, ...filters } = row.filters
  return {
    id: row.id,
    format: row.format,
    filters,
    status: row.status,
    row_count: row.rowCount,
    created_at: row.createdAt,
    finished_at: row.finishedAt,
    expires_at: row.expiresAt,
    download: `/api/v1/security/exports/${row.id}/download`,
  }
}

type ExportRequest = { readonly format: ExportFormat; readonly filters?: FindingFilter | null | undefined }

export async function requestExport(context: RouteContext, { format, filters }: ExportRequest): Promise<ExportRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const [kept] = await tx.db.execute<{ count: number }>(
      sql`select count(*)::int as count from security_exports where company_id = ${companyId} and status <> 'failed'`,
    )
    if ((kept?.count ?? 0) >= EXPORTS_MAX) throw invalidField('format', 'exports_max', { max: EXPORTS_MAX })
    const now = hub.now()
    const [row] = await tx.db
      .insert(securityExports)
      .values({
        id: randomUUID(),
        companyId,
        format,
        filters: { ...filters, hidden_kinds: hiddenKinds(context.caller) },
        requestedBy: context.caller.user.id,
        createdAt: new Date(now),
        expiresAt: new Date(now + KEPT_MS),
      })
      .returning()
    if (!row) throw new Error('cannot store an export')
    hub.jobs.enqueue(tx, [{ queue: QUEUE, payload: { export_id: row.id }, group: companyId }])
    await auditRequest(tx, context, 'security.export.request', { type: 'security_export', id: row.id, name: format })
    return row
  })
}

/** Another try has taken the export over, or it is gone. */
class ExportTaken extends Error {}

const isOf = (attempt: string): SQL => sql`(attempt = ${attempt} and status = 'running')`

/** Collects lines and stores them as compressed parts, as long as the try is the one that counts. */
class Parts {
  private text: string
  private count = 0

  constructor(
    private readonly db: Executor,
    private readonly exportId: string,
    private readonly attempt: string,
    head: string,
  ) {
    this.text = head
  }

  async add(line: string): Promise<void> {
    this.text += line
    if (this.text.length >= PART_CHARS) await this.store()
  }

  async store(): Promise<void> {
    if (this.text === '') return
    const content = Bun.gzipSync(Buffer.from(this.text, 'utf8'), { level: 3 })
    const stored = await this.db.execute(sql`
      insert into security_export_parts (export_id, part, content)
      select id, ${this.count++}, ${content} from security_exports where id = ${this.exportId} and ${isOf(this.attempt)}
      for share returning part`)
    if (stored.length === 0) throw new ExportTaken()
    this.text = ''
  }
}

/** The findings of one moment, in the order of the list. Returns how many there were. */
async function writeFindings(hub: Hub, row: ExportRow, attempt: string): Promise<number> {
  const { db, client } = hub.database
  const filter: FindingFilter = row.filters
  const query = new PgDialect().sqlToQuery(sql`
    select id from security_findings where ${findingConditions(row.companyId, filter)}
    order by ${FINDING_ORDER} limit ${ROWS_MAX}`)
  const parts = new Parts(db, row.id, attempt, headOf(row.format))
  let count = 0
  await client.begin('read only', async reader => {
    await reader`set local statement_timeout = 0`
    const cursor = reader.unsafe<{ id: string }[]>(query.sql, query.params as string[]).cursor(ROWS_AT_ONCE)
    for await (const found of cursor) {
      const findings = await findingsByIds(
        db,
        row.companyId,
        found.map(({ id }) => id),
      )
      for (const finding of findings) await parts.add(lineOf(row.format, presentFinding(finding)))
      count += findings.length
    }
  })
  await parts.store()
  return count
}

/** Takes the export over for a try; null when there is nothing to do. What an earlier try has left goes. */
function begin(hub: Hub, exportId: string, attempt: string): Promise<ExportRow | null> {
  return inTransaction(hub.database.db, async ({ db }) => {
    const [row] = await db
      .update(securityExports)
      .set({ status: 'running', attempt })
      .where(and(eq(securityExports.id, exportId), inArray(securityExports.status, ['queued', 'running'])))
      .returning()
    if (row) await db.delete(securityExportParts).where(eq(securityExportParts.exportId, exportId))
    return row ?? null
  })
}

async function writeExport(hub: Hub, payload: JobPayload): Promise<void> {
  const attempt = randomUUID()
  const row = await begin(hub, String(payload.export_id), attempt)
  if (!row) return
  try {
    const rowCount = await writeFindings(hub, row, attempt)
    const now = hub.now()
    await hub.database.db
      .update(securityExports)
      .set({ status: 'ready', rowCount, finishedAt: new Date(now), expiresAt: new Date(now + KEPT_MS) })
      .where(and(eq(securityExports.id, row.id), isOf(attempt)))
  } catch (error) {
    if (!(error instanceof ExportTaken)) throw error
  }
}

async function giveUpExport(hub: Hub, payload: JobPayload): Promise<void> {
  const exportId = String(payload.export_id)
  await inTransaction(hub.database.db, async ({ db }) => {
    const given = await db
      .update(securityExports)
      .set({
        status: 'failed',
        error: 'the export could not be written',
        finishedAt: new Date(hub.now()),
        attempt: null,
      })
      .where(and(eq(securityExports.id, exportId), ne(securityExports.status, 'ready')))
      .returning({ id: securityExports.id })
    if (given.length > 0) await db.delete(securityExportParts).where(eq(securityExportParts.exportId, exportId))
  })
}

type Seen = Pick<RouteContext, 'hub' | 'companyId' | 'params'> & {
  readonly caller: Parameters<typeof hiddenKinds>[0]
}

/** An export whose findings the caller may all see. Throws 404. */
export async function findExport({ hub, companyId, caller, params }: Seen): Promise<ExportRow> {
  const id = params.export ?? ''
  const [row] = isUuid(id)
    ? await hub.database.db
        .select()
        .from(securityExports)
        .where(
          and(
            eq(securityExports.companyId, companyId),
            eq(securityExports.id, id),
            gt(securityExports.expiresAt, new Date(hub.now())),
          ),
        )
    : []
  const filter: FindingFilter = row?.filters ?? {}
  if (!row || !hiddenKinds(caller).every(kind => filter.hidden_kinds?.includes(kind))) throw notFound()
  return row
}

const TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8',
  jsonl: 'application/jsonl; charset=utf-8',
}

/** Sends the parts one after the other. Throws 422 while it is not ready. */
export function downloadExport(hub: Hub, row: ExportRow): Response {
  if (row.status !== 'ready') throw invalidField('status', 'state_refused', { state: row.status })
  let part = -1
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const [next] = await hub.database.db
        .select({ part: securityExportParts.part, content: securityExportParts.content })
        .from(securityExportParts)
        .where(and(eq(securityExportParts.exportId, row.id), gt(securityExportParts.part, part)))
        .orderBy(asc(securityExportParts.part))
        .limit(1)
      if (!next) {
        controller.close()
        return
      }
      part = next.part
      controller.enqueue(Bun.gunzipSync(Buffer.from(next.content)))
    },
  })
  return new Response(body, {
    headers: {
      ...sentInChunks,
      'Content-Type': TYPES[row.format],
      'Content-Disposition': `attachment; filename="findings-${row.createdAt.toISOString().slice(0, 10)}.${row.format}"`,
      'X-Content-Type-Options': 'nosniff',
    },
  })
}

/** Exports whose day is over, with their parts. */
export async function deleteOldExports(hub: Hub): Promise<void> {
  await hub.database.db.execute(
    sql`delete from security_exports where expires_at <= ${new Date(hub.now()).toISOString()}::timestamptz`,
  )
}

export function registerExportJobs(hub: Hub): void {
  hub.jobs.register(QUEUE, {
    handle: payload => writeExport(hub, payload),
    onFailed: payload => giveUpExport(hub, payload),
  })
}
