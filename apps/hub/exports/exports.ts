// Exports (decisions ): asked for, shown to who asked, downloaded, removed. The job that writes one stands
// in write-export.ts.
import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { desc, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { download } from '../files/download.ts'
import { deleteObject } from '../files/stored-objects.ts'
import type { Executor } from '../platform/db/connect.ts'
import { exports } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { ApiError, invalid, invalidField, notFound, permissionDenied } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import type { Caller } from '../platform/http/caller.ts'
import { type Asker, collection, equals, ofCompany } from '../platform/http/collection.ts'
import { oneOf, schemaFaults } from '../platform/http/request-schema.ts'
import { columnsOf } from '../platform/http/response-columns.ts'
import {
  amount,
  anyObject,
  id,
  listed,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { columnsFor } from './export-columns.ts'
import { type ExportFormat, type ExportOptions, exportFormats, MEDIA_TYPES } from './export-format.ts'
import { linkOf } from './export-links.ts'
import {
  type ExportFilters,
  type ExportResource,
  exportResourceOf,
  exportResources,
  filterSchema,
} from './export-resources.ts'

/** What a company may have under way and ready at a time, beside those of its schedules. */
const EXPORTS_MAX = 100
const exportStates = ['queued', 'running', 'ready', 'failed', 'expired'] as const

const exportResponse = named('Export', {
  id: id(),
  company_id: id(),
  resource: string(),
  format: wordOf(exportFormats),
  filters: anyObject(),
  columns: nullable(listed(string())),
  state: wordOf(exportStates),
  rows: amount(),
  bytes: nullable(amount()),
  sha256: nullable(string()),
  progress: Type.Object({ rows: amount() }),
  error: nullable(string()),
  schedule_id: nullable(id()),
  requested_by: nullable(reference),
  created_at: time(),
  finished_at: nullable(time()),
  expires_at: nullable(time()),
  download_url: nullable(string()),
})

export const exportResourceResponse = named('ExportResource', {
  resource: string(),
  permission: string(),
  columns: listed(string()),
  filters: listed(string()),
  rows_estimate: amount(),
})

type ExportRow = {
  readonly row: typeof exports.$inferSelect
  readonly starter: { readonly id: string; readonly name: string } | null
}

const select = (db: Executor) =>
  db
    .select({ row: exports, starter: { id: users.id, name: users.name } })
    .from(exports)
    .leftJoin(users, eq(users.id, exports.requestedBy))

/** Whoever started it, or is told of it, knows of an export; who reads the audit log knows of all (RES-277). */
const knows = ({ user, permissions }: Caller, { row }: ExportRow): boolean =>
  permissions.has('audit.view') || row.requestedBy === user.id || row.recipients.includes(user.id)

export const presentExport = ({ row, starter }: ExportRow, context: Asker) => ({
  id: row.id,
  company_id: row.companyId,
  resource: row.resource,
  format: row.format,
  filters: row.filters,
  columns: row.columns,
  state: row.state,
  rows: row.rowCount,
  bytes: row.bytes,
  sha256: row.sha256,
  progress: { rows: row.rowCount },
  error: row.error,
  schedule_id: row.scheduleId,
  requested_by: starter,
  created_at: row.createdAt,
  finished_at: row.finishedAt,
  expires_at: row.expiresAt,
  download_url:
    row.state === 'ready' && context.caller.permissions.has(exportResourceOf(row.resource)?.permission ?? '')
      ? linkOf(context, row.id)
      : null,
})

export const exportCollection = collection({
  table: exports,
  scope: ofCompany(exports.companyId),
  filters: {
    state: equals(exports.state, oneOf(exportStates)),
    resource: equals(exports.resource, oneOf(exportResources.map(({ name }) => name))),
  },
  always: (_given, { caller }) =>
    caller.permissions.has('audit.view')
      ? undefined
      : sql`(${exports.requestedBy} = ${caller.user.id} or ${caller.user.id}::uuid = any(${exports.recipients}))`,
  select,
  order: [desc(exports.createdAt), desc(exports.id)],
  pageBy: 'ids',
  response: exportResponse,
  present: presentExport,
})

/** An export that the caller may know of. Throws 404. */
export async function findExport(context: RouteContext, exportId: string): Promise<ExportRow> {
  const found = await exportCollection.find(context.hub.database.db, context.companyId, exportId)
  if (!knows(context.caller, found)) throw notFound()
  return found
}

type WhatToExport = {
  readonly resource: string
  readonly format?: ExportFormat | undefined
  readonly filters?: ExportFilters | null | undefined
  readonly columns?: readonly string[] | null | undefined
}

/** Texts of a query become what filters are; what is given as JSON stays. */
const asText = (value: unknown): unknown => (typeof value === 'boolean' ? (value ? '1' : '0') : value)
/** Filters as they are kept. */
export const filterTexts = (filters: object): ExportFilters =>
  Object.fromEntries(Object.entries(filters).map(([name, value]) => [name, asText(value)]))

/**
 * What is asked for, held to the resource. Throws 422 by field, and 403 for a caller without the permission of the
 * resource; null where nobody asks yet.
 */
export function checkedExport(caller: Caller | null, given: WhatToExport) {
  const resource = exportResourceOf(given.resource)
  if (!resource)
    throw invalidField('resource', 'one_of', { values: exportResources.map(({ name }) => name).join(', ') })
  if (caller && !caller.permissions.has(resource.permission)) throw permissionDenied(resource.permission)
  const filters = filterTexts(given.filters ?? {})
  const faults: Record<string, Words> = {}
  for (const [field, fault] of schemaFaults(filterSchema(resource), filters)) faults[`filters.${field}`] = fault
  const known = new Set(columnsOf(resource.response))
  for (const [index, column] of (given.columns ?? []).entries())
    if (!known.has(column)) faults[`columns.${index}`] = words('one_of', { values: [...known].join(', ') })
  if (Object.keys(faults).length > 0) throw invalid(faults)
  return { resource, filters, columns: given.columns ?? null, format: given.format ?? ('csv' as const) }
}

type NewExport = ReturnType<typeof checkedExport> & {
  readonly companyId: string
  readonly userId: string
  /** By which keys at most it is read. */
  readonly permissions: readonly string[]
  readonly options: ExportOptions
  readonly scheduleId?: string
  readonly recipients?: readonly string[]
}

/** Writes an export and its job. Returns its id. */
export async function insertExport(
  hub: Asker['hub'],
  tx: Tx,
  { resource, format, filters, columns, ...given }: NewExport,
): Promise<string> {
  const exportId = randomUUID()
  await tx.db.insert(exports).values({
    id: exportId,
    companyId: given.companyId,
    resource: resource.name,
    format,
    filters,
    columns: columns === null ? null : [...columns],
    options: given.options,
    requestedBy: given.userId,
    permissions: [...given.permissions],
    scheduleId: given.scheduleId ?? null,
    recipients: [...(given.recipients ?? [])],
    createdAt: new Date(hub.now()),
  })
  hub.jobs.enqueue(tx, [{ queue: 'exports', payload: { export_id: exportId }, group: given.companyId }])
  return exportId
}

const subjectOf = (exportId: string, resource: string) => ({ type: 'export', id: exportId, name: resource })

export async function requestExport(
  context: RouteContext,
  given: WhatToExport & { readonly [K in keyof ExportOptions]?: ExportOptions[K] | undefined },
): Promise<ExportRow> {
  const { hub, companyId, caller } = context
  const checked = checkedExport(caller, given)
  const options = { delimiter: given.delimiter ?? ',', bom: given.bom ?? false, raw: given.raw ?? false }
  const exportId = await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const [kept] = await tx.db.execute<{ count: number }>(sql`
      select count(*)::int as count from exports
      where company_id = ${companyId} and schedule_id is null and state in ('queued', 'running', 'ready')`)
    if ((kept?.count ?? 0) >= EXPORTS_MAX) throw invalidField('limit', 'exports_kept', { max: EXPORTS_MAX })
    const made = await insertExport(hub, tx, {
      ...checked,
      companyId,
      userId: caller.user.id,
      permissions: [...caller.permissions],
      options,
    })
    await auditRequest(tx, context, 'export.create', subjectOf(made, checked.resource.name))
    return made
  })
  return findExport(context, exportId)
}

export async function deleteExport(context: RouteContext, { row }: ExportRow): Promise<void> {
  await inTransaction(context.hub.database.db, async tx => {
    const { row: locked } = await exportCollection.lock(tx, context.companyId, row.id)
    await tx.db.delete(exports).where(eq(exports.id, locked.id))
    if (locked.objectId) await deleteObject(tx.db, locked.objectId)
    await auditRequest(tx, context, 'export.delete', subjectOf(locked.id, locked.resource))
  })
}

/** Sends an export that is ready. Throws 404 after its end, 409 before it, 403 without the permission. */
export function downloadExport(context: RouteContext, { row }: ExportRow): Response {
  const { permission = '' } = exportResourceOf(row.resource) ?? {}
  if (!context.caller.permissions.has(permission)) throw permissionDenied(permission)
  const isOver = row.state === 'expired' || (row.expiresAt !== null && row.expiresAt.getTime() <= context.hub.now())
  if (isOver) throw notFound()
  if (row.state !== 'ready' || row.objectId === null || row.bytes === null || row.sha256 === null)
    throw new ApiError(409, 'conflict', words('export_not_ready', { state: row.state }))
  const name = `${row.resource}-${row.createdAt.toISOString().slice(0, 10)}.${row.format}`
  const { objectId, bytes, sha256, format } = row
  return download(context.hub, { objectId, bytes, sha256, type: MEDIA_TYPES[format], name }, context.header)
}

/** What the caller may export. */
export async function listExportResources(context: RouteContext) {
  const allowed = exportResources.filter(({ permission }) => context.caller.permissions.has(permission))
  const present = async (resource: ExportResource) => ({
    resource: resource.name,
    permission: resource.permission,
    columns: columnsFor(resource, context.caller),
    filters: Object.keys(resource.filters),
    rows_estimate: await resource.estimate(context),
  })
  return Promise.all(allowed.map(present))
}
