// Files of a company (decision R-074): what they are is told from their content, which lies sealed in the database.
import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { asc, desc, eq, sql } from 'drizzle-orm'
import { recorded, UNCHANGED } from '../audit/change-with-audit.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { files } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { collection, equals, filter, ofCompany, search } from '../platform/http/collection.ts'
import { flag, flagOf, oneOf, text, uuid } from '../platform/http/request-schema.ts'
import { amount, id, listed, named, nullable, reference, string, time } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { checkVersion } from '../resources/row-version.ts'
import { fileTypeOf } from './file-type.ts'
import { deleteObject, ObjectWriter } from './stored-objects.ts'

export const FILE_BYTES_MAX = 20 * 1024 * 1024
const FILES_MAX = 10_000
const REFERRERS_SHOWN = 20

const referrer = Type.Object({ kind: string(), id: id(), name: string(), field: string() })
type Referrer = { kind: string; id: string; name: string; field: string }

const fileResponse = named('File', {
  id: id(),
  company_id: id(),
  name: string(),
  description: nullable(string()),
  type: string(),
  size: amount(),
  sha256: string(),
  uploaded_by: nullable(reference),
  attached_to: listed(referrer),
  version: amount(),
  created_at: time(),
  updated_at: time(),
})

export type FileRow = {
  readonly file: typeof files.$inferSelect
  readonly uploader: { readonly id: string; readonly name: string } | null
  /** The first of what refers to it. */
  readonly attached: readonly Referrer[]
}

const REFERRERS = sql<readonly Referrer[]>`(
  select coalesce(jsonb_agg(jsonb_build_object('kind', r.kind, 'id', r.id, 'name', r.name, 'field', r.field)), '[]')
  from (select kind, id, name, field from file_referrers where file_id = ${files.id} order by kind, id
    limit ${REFERRERS_SHOWN}) r)`

const sorts = {
  size: [asc(files.bytes), asc(files.id)],
  '-size': [desc(files.bytes), desc(files.id)],
  name: [asc(files.name), asc(files.id)],
  '-name': [desc(files.name), desc(files.id)],
  created_at: [asc(files.createdAt), asc(files.id)],
  '-created_at': [desc(files.createdAt), desc(files.id)],
}

export const fileCollection = collection({
  table: files,
  scope: ofCompany(files.companyId),
  filters: {
    search: search(files.name),
    type: equals(files.type, text(64)),
    uploaded_by: equals(files.uploadedBy, uuid()),
    attached: filter(flag(), value => {
      const has = sql`exists (select 1 from file_referrers r where r.file_id = ${files.id})`
      return flagOf(value) ? has : sql`not ${has}`
    }),
    sort: filter(oneOf(Object.keys(sorts)), () => undefined),
  },
  sorts,
  select: (db: Executor) =>
    db
      .select({ file: files, uploader: { id: users.id, name: users.name }, attached: REFERRERS })
      .from(files)
      .leftJoin(users, eq(users.id, files.uploadedBy)),
  order: [desc(files.createdAt), desc(files.id)],
  // What refers to them is asked of the files of the page alone.
  pageBy: 'ids',
  response: fileResponse,
  present: ({ file, uploader, attached }: FileRow) => ({
    id: file.id,
    company_id: file.companyId,
    name: file.name,
    description: file.description,
    type: file.type,
    size: file.bytes,
    sha256: file.sha256,
    uploaded_by: uploader,
    attached_to: attached,
    version: file.version,
    created_at: file.createdAt,
    updated_at: file.updatedAt,
  }),
})

const changes = recorded({
  type: 'file',
  of: fileCollection,
  named: ({ file }: FileRow) => ({ id: file.id, name: file.name }),
})

type NewFile = {
  readonly name: string
  readonly description?: string | null | undefined
  readonly content: Uint8Array
}

const REFUSALS = {
  executable: 'file_executable',
  markup: 'file_markup',
  private_key: 'file_private_key',
  unknown: 'file_unknown',
} as const

/** Writes a file of a company, under its lock. Throws 422 for a type that is refused, and over the company's limits. */
async function insertFile(
  hub: Hub,
  tx: Tx,
  owner: { readonly companyId: string; readonly uploadedBy: string | null },
  id: string,
  { name, description, content }: NewFile,
): Promise<void> {
  if (content.byteLength === 0) throw invalidField('file', 'file_empty')
  if (content.byteLength > FILE_BYTES_MAX)
    throw new ApiError(413, 'too_large', words('too_large', { limit: FILE_BYTES_MAX }))
  const type = fileTypeOf(content)
  if (typeof type === 'object') throw invalidField('file', REFUSALS[type.refused])
  await lockCompany(tx, owner.companyId)
  const [kept] = await tx.db.execute<{ bytes: string; count: number }>(
    sql`select coalesce(sum(bytes), 0) as bytes, count(*)::int as count from files where company_id = ${owner.companyId}`,
  )
  const bytesMax = hub.state.valueOf('files.company_bytes')
  const bytes = Number(kept?.bytes ?? 0) + content.byteLength
  const over =
    bytes > bytesMax
      ? words('files_bytes', { max: bytesMax, count: bytes })
      : (kept?.count ?? 0) >= FILES_MAX
        ? words('limit_files', { max: FILES_MAX })
        : null
  if (over)
    throw new ApiError(422, 'limit_exceeded', words('invalid'), { errors: { limit: [over] }, reason: 'company_quota' })
  const writer = await ObjectWriter.begin(hub, tx.db, owner.companyId, false)
  await writer.add(content)
  const stored = await writer.finish()
  await tx.db.insert(files).values({
    id,
    companyId: owner.companyId,
    name,
    description: description ?? null,
    type,
    ...stored,
    objectId: writer.id,
    uploadedBy: owner.uploadedBy,
  })
}

export const createFile = (context: RouteContext, given: NewFile): Promise<FileRow> =>
  changes.create(context, (tx, id) =>
    insertFile(context.hub, tx, { companyId: context.companyId, uploadedBy: context.caller.user.id }, id, given),
  )

type FileChange = {
  readonly name?: string | undefined
  readonly description?: string | null | undefined
  readonly version?: number | null | undefined
}

export async function changeFile(
  context: RouteContext,
  row: FileRow,
  { version, ...given }: FileChange,
): Promise<FileRow> {
  return changes.change(context, row.file.id, async (tx, { file }) => {
    checkVersion(file, { ifMatch: context.header('if-match'), version: version ?? null })
    const name = given.name ?? file.name
    const description = given.description === undefined ? file.description : given.description
    if (name === file.name && description === file.description) return UNCHANGED
    return tx.db
      .update(files)
      .set({ name, description, version: sql`${files.version} + 1`, updatedAt: new Date(context.hub.now()) })
      .where(eq(files.id, file.id))
  })
}

/** Throws 409 with what refers to it. */
export const deleteFile = (context: RouteContext, { file }: FileRow): Promise<void> =>
  changes.delete(context, file.id, async (tx, { file: locked }) => {
    checkVersion(locked, { ifMatch: context.header('if-match') })
    const referrers = await tx.db.execute<Referrer>(
      sql`select kind, id, name, field from file_referrers where file_id = ${locked.id} order by kind, id`,
    )
    if (referrers.length > 0)
      throw new ApiError(409, 'in_use', words('referred_to', { count: referrers.length }), {
        reason: 'in_use',
        members: { referrers: referrers.slice(0, REFERRERS_SHOWN), referrers_total: referrers.length },
      })
    await tx.db.delete(files).where(eq(files.id, locked.id))
    await deleteObject(tx.db, locked.objectId)
  })

/**
 * Files of a company by their ids, locked so that none is deleted before the transaction has ended: for whoever is
 * about to refer to them. Ids that are of no file of the company are missing in the result.
 */
export async function filesToAttach(
  tx: Tx,
  companyId: string,
  ids: readonly string[],
): Promise<{ id: string; name: string; bytes: number; sha256: string }[]> {
  const rows = await tx.db.execute<{ id: string; name: string; bytes: string; sha256: string }>(sql`
    select id, name, bytes, sha256 from files where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])
    order by id for share`)
  return rows.map(row => ({ ...row, bytes: Number(row.bytes) }))
}

/** A file that the hub itself writes for somebody. Returns its id. */
export async function insertReport(hub: Hub, tx: Tx, companyId: string, file: NewFile): Promise<string> {
  const id = randomUUID()
  await insertFile(hub, tx, { companyId, uploadedBy: null }, id, file)
  return id
}
