// The five usual routes of a kind (resources.md 1.1), and what its further routes share: how an act answers a run, how
// a changed resource is answered with its ETag.

import { type TSchema, Type } from '@sinclair/typebox'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { notFound } from '../platform/http/api-error.ts'
import { collection } from '../platform/http/collection.ts'
import { list } from '../platform/http/list.ts'
import { isKnown, notModified, Reply, versionTag } from '../platform/http/reply.ts'
import { answer } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { takeAct } from './act-rate.ts'
import { csvOptions, csvReply } from './csv-import.ts'
import { type Editor, editorOf } from './editor.ts'
import { bodyOf, type CommonRow, type Kind, type UsualRoute } from './kind.ts'
import { refuseManaged } from './manifest-lock.ts'
import { parseForm } from './resource-form.ts'
import { rowCollection } from './resource-list.ts'
import { listResponse, runResponse, showResponse } from './resource-response.ts'
import { type Found, findRow } from './resource-rows.ts'
import { presentList, presentOne } from './resource-show.ts'
import type { Expected } from './row-version.ts'
import { presentRun, startRun } from './runs.ts'
import { deleteResource, insertResource, restoreResource, updateResource } from './write-resource.ts'
export const expectedOf = (context: RouteContext, body: Unchecked = {}): Expected => ({
  ifMatch: context.header('if-match'),
  version: typeof body.version === 'number' ? body.version : null,
})

/** Answers the resource whole, or 304 to who knows it; `more` are members beside its own, with the tag of all. */
export async function replyUnlessKnown<Row extends CommonRow>(
  kind: Kind<Row>,
  context: RouteContext,
  row: Found<Row>,
  more: { readonly members: Unchecked; readonly tag: string } | null = null,
): Promise<Reply> {
  const tag = more?.tag ?? versionTag(row as Found)
  if (isKnown(context, tag)) return notModified(tag)
  const shown = await presentOne(kind as Kind, context, row as Found)
  return new Reply({ data: { ...shown, ...more?.members } }, { headers: { ETag: tag } })
}

/** The path of one resource: of a kind with parts, also the beginning of theirs. */
export const onePath = <Row extends CommonRow>({ info, parameter }: Kind<Row>): string => `${info.path}/:${parameter}`

const paramOf = (context: RouteContext, name: string): string => context.params[name] ?? ''

/** The parent that the path names; null for a kind that is no part. Throws 404. */
async function parentOf({ parent }: Kind, context: RouteContext): Promise<Found | null> {
  if (!parent) return null
  return resourceOf(parent.of, context)
}

/** The resource of the path, of the parent that the path names. Throws 404. */
export async function resourceOf<Row extends CommonRow>(
  kind: Kind<Row>,
  context: RouteContext,
  which?: 'any',
): Promise<Found<Row>> {
  const parent = await parentOf(kind as Kind, context)
  const { db } = context.hub.database
  const row = await findRow(kind, db, context.companyId, paramOf(context, kind.parameter), which)
  const column = kind.parent?.column
  if (parent && column && (row as Unchecked)[column] !== parent.id) throw notFound()
  return row
}

/** Answers the resource whole, with its ETag. */
export async function replyWith<Row extends CommonRow>(
  kind: Kind<Row>,
  context: RouteContext,
  row: Found<Row>,
  more: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<Reply> {
  const shown = await presentOne(kind as Kind, context, row as Found)
  return new Reply({ data: shown }, { ...more, headers: { ETag: versionTag(row as Found), ...more.headers } })
}

/** Parts belong to the manifest that lists them, by the last word of their path: `records`; so do parts of parts. */
export async function refuseManagedParts(
  context: RouteContext,
  { parent, info }: Kind,
  parentId: string,
): Promise<void> {
  if (!parent) return
  const list = (info.path.split('/').at(-1) ?? '').replaceAll('-', '_')
  await refuseManaged(context, parent.of.info.kind, parentId, list)
  if (!parent.of.parent) return
  const row = await findRow(parent.of, context.hub.database.db, context.companyId, parentId)
  await refuseManagedParts(context, parent.of, parentIdOf(parent.of, row))
}

/** Refuses what a manifest made, and what is part of something that one made. */
export async function refuseManagedRow(context: RouteContext, kind: Kind, row: Found): Promise<void> {
  await refuseManaged(context, kind.info.kind, row.id)
  await refuseManagedParts(context, kind, parentIdOf(kind, row))
}

const parentIdOf = ({ parent }: Kind, row: CommonRow): string =>
  String((row as CommonRow & Unchecked)[parent?.column ?? ''])

const titleOf = ({ info }: Kind) => ({ one: info.title.one.en, many: info.title.many.en })

function listRoute(kind: Kind): Route {
  const { parent, info } = kind
  const response = listResponse(kind)
  const of = collection({
    ...rowCollection(kind),
    response,
    present: () => ({}),
    presentPage: (rows, asker) => presentList(kind, asker, rows as readonly Found[]),
  })
  return list({
    path: info.path,
    tag: kind.group,
    summary: `List ${titleOf(kind).many}`,
    permissions: [info.permissions.view],
    of,
    isFiltered: true,
    ...(parent
      ? {
          resource: (context: RouteContext) => parentOf(kind, context),
          within: ({ resource }: { readonly resource: Found | null }) => ({ parent_id: resource?.id ?? '' }),
        }
      : {}),
  })
}

function createRoute(kind: Kind, shown: TSchema): Route {
  const { info } = kind
  return route({
    method: 'POST',
    path: info.path,
    tag: kind.group,
    summary: `Create ${withArticle(titleOf(kind).one)}`,
    permissions: [info.permissions.manage],
    resource: context => parentOf(kind, context),
    status: 201,
    body: ANY_BODY,
    docBody: bodyOf(kind, true),
    answer: shown,
    ...(kind.csv ? csvOptions(kind) : {}),
    async handle(context) {
      const parent = context.resource
      if (parent) await refuseManagedParts(context, kind, parent.id)
      const reply = kind.csv ? await csvReply(context, kind, parent) : null
      if (reply) return reply
      const values = await parseForm(kind, 'create', context.body)
      const options = parent ? { parentId: parent.id } : {}
      const made = await inTransaction(context.hub.database.db, tx =>
        insertResource(tx, kind, editorOf(context), values, options),
      )
      return replyWith(kind, context, made, { headers: { Location: `${context.url.pathname}/${made.id}` } })
    },
  })
}

function showRoute(kind: Kind, shown: TSchema): Route {
  return route({
    method: 'GET',
    path: onePath(kind),
    tag: kind.group,
    summary: `Show ${withArticle(titleOf(kind).one)}`,
    permissions: [kind.info.permissions.view],
    resource: context => resourceOf(kind, context),
    answer: shown,
    otherResponses: { 304: null },
    handle: context => replyUnlessKnown(kind, context, context.resource),
  })
}

function changeRoute(kind: Kind, shown: TSchema): Route {
  return route({
    method: 'PATCH',
    path: onePath(kind),
    tag: kind.group,
    summary: `Change ${withArticle(titleOf(kind).one)}, or restore a deleted one`,
    permissions: [kind.info.permissions.manage],
    resource: context => resourceOf(kind, context, 'any'),
    body: ANY_BODY,
    docBody: bodyOf(kind, false),
    answer: shown,
    refusals: [409, 412],
    async handle(context) {
      const { resource } = context
      const body: unknown = context.body
      const restores = isObject(body) && body.deleted_at === null
      if (resource.deleted_at !== null && !restores) throw notFound()
      const { deleted_at, version, ...values } = await parseForm(kind, 'change', body)
      const write = resource.deleted_at === null ? writeChange : restoreResource
      const expected = expectedOf(context, { version })
      // A part is drained and enabled by hand whatever made it: manifests do not speak of that.
      const given = Object.entries(kind.fields).filter(([name]) => name in values)
      const isOfManifest = restores || given.some(([, field]) => field.manifest !== false)
      if (kind.parent === null || isOfManifest) await refuseManagedRow(context, kind, resource)
      const row = await inTransaction(context.hub.database.db, tx =>
        write(tx, kind, editorOf(context), resource.id, values, expected),
      )
      return replyWith(kind, context, row)
    },
  })
}

const writeChange = (tx: Tx, kind: Kind, editor: Editor, id: string, values: Unchecked, expected: Expected) =>
  updateResource(tx, kind, editor, id, values, { expected })

function deleteRoute(kind: Kind): Route {
  return route({
    method: 'DELETE',
    path: onePath(kind),
    tag: kind.group,
    summary: `Delete ${withArticle(titleOf(kind).one)}; PATCH with deleted_at null restores`,
    permissions: [kind.info.permissions.manage],
    resource: context => resourceOf(kind, context),
    refusals: [409, 412],
    async handle(context) {
      await refuseManagedRow(context, kind, context.resource)
      await inTransaction(context.hub.database.db, tx =>
        deleteResource(tx, kind, editorOf(context), context.resource.id, expectedOf(context)),
      )
      return undefined
    },
  })
}

/** A body that the handler validates itself, with the schema of the kind. */
const ANY_BODY = Type.Object({})
const withArticle = (noun: string): string => `${/^[aeiou]/i.test(noun) ? 'an' : 'a'} ${noun}`

/** The schema of an answer with one resource. */
export const answerOf = <Row extends CommonRow>(kind: Kind<Row>) => {
  const known = shownOf.get(kind.info.kind) ?? answer(showResponse(kind))
  shownOf.set(kind.info.kind, known)
  return known
}
const shownOf = new Map<string, TSchema>()

/** The usual routes of a kind, without those that the catalogue does not have. */
export function usualRoutes<Row extends CommonRow>(typed: Kind<Row>): readonly Route[] {
  // Routes know rows by their columns, whose types a kind states for its hooks.
  const kind = typed as Kind
  const shown = answerOf(kind)
  const all: Readonly<Record<UsualRoute, () => Route>> = {
    list: () => listRoute(kind),
    create: () => createRoute(kind, shown),
    show: () => showRoute(kind, shown),
    change: () => changeRoute(kind, shown),
    delete: () => deleteRoute(kind),
  }
  return Object.entries(all)
    .filter(([name]) => !kind.without.includes(name as UsualRoute))
    .map(([, make]) => ({ ...make(), tagText: kind.groupText ?? null }))
}

type ActDefinition = {
  readonly summary: string
  readonly permission?: string
}

/** POST of an act that leaves the hub: answers 202 with its run, of which there is one at a time. */
export function runRoute<Row extends CommonRow>(
  typed: Kind<Row>,
  action: string,
  { summary, permission }: ActDefinition,
): Route {
  const kind = typed as Kind
  return route({
    method: 'POST',
    path: `${onePath(kind)}/${action}`,
    tag: kind.group,
    summary,
    permissions: [permission ?? kind.info.permissions.manage],
    resource: context => resourceOf(kind, context),
    status: 202,
    body: ANY_BODY,
    answer: answer(runResponse),
    async handle(context) {
      takeAct(context.hub, context.companyId)
      const run = await inTransaction(context.hub.database.db, tx =>
        startRun(tx, editorOf(context), kind, context.resource, action, context.body),
      )
      return { data: presentRun(run) }
    },
  })
}
