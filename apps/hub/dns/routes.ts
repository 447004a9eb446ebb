// REST: /dns/zones, their records, files and synchronisation, and /dns/servers (group "DNS").
import { Type } from '@sinclair/typebox'
import { writeZoneFile } from '../../../core/dns/zone-file.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { Reply } from '../platform/http/reply.ts'
import { boolean, flag, flagOf, listOf, oneOf, text } from '../platform/http/request-schema.ts'
import { amount, answer, listed, named, string } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { takeAct } from '../resources/act-rate.ts'
import { csvOptions, csvReply } from '../resources/csv-import.ts'
import { editorOf } from '../resources/editor.ts'
import { bodyOf, type Kind } from '../resources/kind.ts'
import { answerOf, refuseManagedParts, replyWith, resourceOf } from '../resources/kind-routes.ts'
import { parseForm } from '../resources/resource-form.ts'
import { runResponse, showResponse } from '../resources/resource-response.ts'
import { findRow, rowsOfIds } from '../resources/resource-rows.ts'
import { presentOne } from '../resources/resource-show.ts'
import { presentRun, startRun } from '../resources/runs.ts'
import { insertResource } from '../resources/write-resource.ts'
import { dnsRecordKind } from './dns-record.ts'
import { dnsZoneKind } from './dns-zone.ts'
import { publisherOf } from './powerdns-api.ts'
import { addRecords, publishedRecords, usualNameServers } from './zone-content.ts'
import { importZoneFile } from './zone-import.ts'
import { FILE_BODY_BYTES_MAX, FILE_CHARACTERS_MAX, RECORDS_AT_ONCE, RECORDS_WITH_ZONE } from './zone-limits.ts'

const TAG = 'DNS'
const VIEW = ['dns.view']
const MANAGE = ['dns.manage']
const zoneOf = (context: RouteContext) => resourceOf(dnsZoneKind, context)

const recordsMember = (max: number, min = 0) => listOf(Type.Object(bodyOf(dnsRecordKind, true).properties), max, min)

const createZone = route({
  method: 'POST',
  path: dnsZoneKind.info.path,
  tag: TAG,
  summary: 'Create a zone, with its records',
  permissions: MANAGE,
  status: 201,
  body: Type.Object({ records: Type.Optional(Type.Array(Type.Unknown(), { maxItems: RECORDS_WITH_ZONE })) }),
  docBody: Type.Object({
    ...bodyOf(dnsZoneKind, true).properties,
    records: Type.Optional(recordsMember(RECORDS_WITH_ZONE)),
  }),
  bodyBytesMax: FILE_BODY_BYTES_MAX,
  answer: answerOf(dnsZoneKind),
  ...csvOptions(dnsZoneKind),
  async handle(context) {
    const reply = await csvReply(context, dnsZoneKind as Kind, null)
    if (reply) return reply
    const { records = [], ...body } = context.body as Unchecked & { readonly records?: readonly unknown[] }
    const values = await parseForm(dnsZoneKind, 'create', body)
    const editor = editorOf(context)
    const id = await inTransaction(context.hub.database.db, async tx => {
      const zone = await insertResource(tx, dnsZoneKind, editor, values)
      await addRecords(tx, editor, zone, records, 'records')
      await addRecords(tx, editor, zone, await usualNameServers(tx, editor, zone, records), 'server_ids')
      return zone.id
    })
    const made = await findRow(dnsZoneKind, context.hub.database.db, context.companyId, id)
    return replyWith(dnsZoneKind, context, made, { headers: { Location: `${context.url.pathname}/${id}` } })
  },
})

const recordShown = showResponse(dnsRecordKind)

/** One record, or a list of them. */
const createRecords = route({
  method: 'POST',
  path: dnsRecordKind.info.path,
  tag: TAG,
  summary: 'Create a record, or up to 500 of them, all or none',
  permissions: MANAGE,
  resource: zoneOf,
  status: 201,
  body: Type.Object({ records: Type.Optional(Type.Array(Type.Unknown(), { minItems: 1, maxItems: RECORDS_AT_ONCE })) }),
  docBody: Type.Object({
    ...Type.Partial(bodyOf(dnsRecordKind, true)).properties,
    records: Type.Optional(recordsMember(RECORDS_AT_ONCE, 1)),
  }),
  answer: Type.Object({ data: Type.Union([recordShown, listed(recordShown)]) }),
  ...csvOptions(dnsRecordKind),
  refusals: [409],
  async handle(context) {
    const { hub, companyId, resource: zone } = context
    await refuseManagedParts(context, dnsRecordKind as Kind, zone.id)
    const reply = await csvReply(context, dnsRecordKind as Kind, zone)
    if (reply) return reply
    const { records } = context.body
    const editor = editorOf(context)
    if (records === undefined) {
      const values = await parseForm(dnsRecordKind, 'create', context.body)
      const made = await inTransaction(hub.database.db, tx =>
        insertResource(tx, dnsRecordKind, editor, values, { parentId: zone.id }),
      )
      return replyWith(dnsRecordKind, context, made, { headers: { Location: `${context.url.pathname}/${made.id}` } })
    }
    const ids = await inTransaction(hub.database.db, tx => addRecords(tx, editor, zone, records, 'records'))
    const rows = new Map((await rowsOfIds(dnsRecordKind, hub.database.db, companyId, ids)).map(row => [row.id, row]))
    const shown = []
    for (const id of ids) {
      const row = rows.get(id)
      if (row) shown.push(await presentOne(dnsRecordKind, context, row))
    }
    return new Reply({ data: shown }, {})
  },
})

const exportFile = route({
  method: 'GET',
  path: `${dnsZoneKind.info.path}/:zone/export`,
  tag: TAG,
  summary: 'The zone as a master file (RFC 1035)',
  permissions: VIEW,
  query: Type.Object({ disabled: flag() }),
  resource: zoneOf,
  answer: Type.Unsafe<Response>({ type: 'string' }),
  answerType: 'text/dns',
  async handle({ hub, companyId, resource: zone, query }) {
    const records = await publishedRecords(hub.database.db, companyId, zone.id, flagOf(query.disabled) === true)
    const file = writeZoneFile(zone.name, { ...zone.soa, serial: zone.serial }, zone.default_ttl, records)
    return new Response(file, {
      headers: {
        'Content-Type': 'text/dns; charset=utf-8',
        'Content-Disposition': `attachment; filename="${zone.name}.zone"`,
        'X-Content-Type-Options': 'nosniff',
      },
    })
  },
})

const importResponse = named('ZoneImport', {
  created: amount(),
  updated: amount(),
  deleted: amount(),
  unchanged: amount(),
  skipped: listed(named('SkippedZoneLine', { line: amount(), text: string(), reason: string() })),
})

const importFile = route({
  method: 'POST',
  path: `${dnsZoneKind.info.path}/:zone/import`,
  tag: TAG,
  summary: 'Read records from a master file: merge them, or replace all; each lives for 30 seconds to a week',
  permissions: MANAGE,
  resource: zoneOf,
  query: Type.Object({ dry_run: flag(), mode: Type.Optional(oneOf(['merge', 'replace'])) }),
  body: Type.Object({
    content: text(FILE_CHARACTERS_MAX),
    mode: Type.Optional(oneOf(['merge', 'replace'])),
    dry_run: Type.Optional(boolean()),
  }),
  bodyBytesMax: FILE_BODY_BYTES_MAX,
  textBody: { type: 'text/dns', member: 'content' },
  refusals: [409],
  answer: answer(importResponse),
  async handle(context) {
    const { resource: zone, body, query, hub } = context
    const mode = body.mode ?? query.mode ?? 'merge'
    const isDryRun = body.dry_run ?? flagOf(query.dry_run) ?? false
    if (!isDryRun) await refuseManagedParts(context, dnsRecordKind as Kind, zone.id)
    const data = await inTransaction(hub.database.db, tx =>
      importZoneFile(tx, editorOf(context), zone, { content: body.content, mode, isDryRun }),
    )
    return { data }
  },
})

const syncZoneRoute = route({
  method: 'POST',
  path: `${dnsZoneKind.info.path}/:zone/sync`,
  tag: TAG,
  summary: 'Verify a zone at its name servers, publish it, or read what they have',
  permissions: MANAGE,
  resource: zoneOf,
  status: 202,
  body: Type.Object({
    mode: Type.Optional(oneOf(['verify', 'publish', 'read'])),
    dry_run: Type.Optional(boolean()),
    force: Type.Optional(boolean()),
  }),
  answer: answer(runResponse),
  async handle(context) {
    const { hub, resource: zone, companyId } = context
    const { mode = 'verify', dry_run = false, force = false } = context.body
    const editor = editorOf(context)
    if (mode !== 'verify' && (await publisherOf(editor, zone)) === null) throw invalidField('mode', 'dns_sync_mode')
    if (mode === 'read' && !dry_run) await refuseManagedParts(context, dnsRecordKind as Kind, zone.id)
    takeAct(hub, companyId)
    const run = await inTransaction(hub.database.db, tx =>
      startRun(tx, editor, dnsZoneKind, zone, 'sync', { mode, dry_run, force }),
    )
    return { data: presentRun(run) }
  },
})

export const dnsRoutes: readonly Route[] = [createZone, createRecords, exportFile, importFile, syncZoneRoute]
