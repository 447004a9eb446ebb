// REST: /connections (group "Connections").
import { Type } from '@sinclair/typebox'
import { directions } from '../../../core/network/dependency-graph.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { list } from '../platform/http/list.ts'
import { integer, oneOf, optional } from '../platform/http/request-schema.ts'
import { resourceRoutes } from '../platform/http/resource.ts'
import { answer, id, named, string } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { takeAct } from '../resources/act-rate.ts'
import { editorOf } from '../resources/editor.ts'
import { onePath, resourceOf } from '../resources/kind-routes.ts'
import { refuseManaged } from '../resources/manifest-lock.ts'
import { runResponse } from '../resources/resource-response.ts'
import { type Found, findRow } from '../resources/resource-rows.ts'
import { presentRun, startRun } from '../resources/runs.ts'
import { deleteResource } from '../resources/write-resource.ts'
import { connectionKind } from './connection.ts'
import type { Connection } from './connection-fields.ts'
import { connectionHistory } from './connection-history.ts'
import { refuseTest, testers } from './connection-test.ts'
import { connectionGraph, graphResponse } from './graph.ts'
import { DEPTH_MAX, DEPTH_USUAL, NODES_MAX, NODES_USUAL } from './graph-limits.ts'
import { nodeKey } from './node.ts'

const { view, manage } = connectionKind.info.permissions
const TAG = connectionKind.group
const PATH = connectionKind.info.path
const IDS_MAX = 1_000
const connectionOf = (context: RouteContext): Promise<Found<Connection>> => resourceOf(connectionKind, context)

const graph = route({
  method: 'GET',
  path: `${PATH}/graph`,
  tag: TAG,
  summary: 'Who needs whom: around a root, or all; with cycles, and what fails with the root',
  permissions: [view],
  query: Type.Object({
    root: Type.Optional(nodeKey()),
    direction: Type.Optional(oneOf(directions)),
    depth: Type.Optional(integer(1, DEPTH_MAX)),
    criticality: Type.Optional(oneOf(['hard', 'soft'])),
    max_nodes: Type.Optional(integer(1, NODES_MAX)),
  }),
  answer: answer(graphResponse),
  may404: true,
  async handle(context) {
    const { direction = 'both', depth = DEPTH_USUAL, max_nodes = NODES_USUAL, ...rest } = context.query
    return { data: await connectionGraph(context, { ...rest, direction, depth, max_nodes }) }
  },
})

const test = route({
  method: 'POST',
  path: `${onePath(connectionKind)}/test`,
  tag: TAG,
  summary: 'Test a connection from the hub, or read what the agent saw last',
  permissions: [manage],
  resource: connectionOf,
  status: 202,
  body: Type.Object({ by: optional(oneOf(testers)) }),
  answer: answer(runResponse),
  async handle(context) {
    const { hub, companyId, resource, body } = context
    const editor = editorOf(context)
    await refuseTest(editor, resource, body.by)
    takeAct(hub, companyId)
    const run = await inTransaction(hub.database.db, tx =>
      startRun(tx, editor, connectionKind, resource, 'test', { by: body.by ?? null }),
    )
    return { data: presentRun(run) }
  },
})

const history = list({
  path: `${onePath(connectionKind)}/history`,
  tag: TAG,
  summary: 'What happened to a connection, newest first: changes, tests, states',
  permissions: [view],
  resource: connectionOf,
  of: connectionHistory,
  isFiltered: true,
  within: ({ resource }) => ({ id: resource.id }),
})

const many = resourceRoutes({
  path: PATH,
  parameter: connectionKind.parameter,
  tag: TAG,
  of: {
    response: named('DeletedConnection', { id: id(), name: string() }),
    present: (row: Found<Connection>) => ({ id: row.id, name: row.name }),
  },
  find: (context, connectionId) => findRow(connectionKind, context.hub.database.db, context.companyId, connectionId),
})

const deleteMany = many.bulk('delete', {
  summary: 'Delete many connections; those that cannot be are named',
  permissions: [manage],
  ids: 'ids',
  idsMax: IDS_MAX,
  async act(context, connectionId) {
    const { hub, companyId } = context
    const row = await findRow(connectionKind, hub.database.db, companyId, connectionId)
    await refuseManaged(context, connectionKind.info.kind, connectionId)
    await inTransaction(hub.database.db, tx => deleteResource(tx, connectionKind, editorOf(context), connectionId))
    return row
  },
})

export const connectionRoutes: readonly Route[] = [graph, test, history, deleteMany]
