// GET /connections/graph: nodes with all edges between them, the cycles, and what fails with the root. All
// connections of a company are at most 20,000, so that the walk is made here and not in the database.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import {
  affectedBy,
  allNodes,
  cyclesOf,
  type Dependency,
  type Direction,
  nodesAround,
} from '../../../core/network/dependency-graph.ts'
import { notFound } from '../platform/http/api-error.ts'
import { amount, id, listed, named, nullable, string } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { CYCLES_MAX, PATH_KEYS_MAX } from './graph-limits.ts'
import { type Node, nodeOfKey } from './node.ts'
import { isNodeOf } from './node-lookup.ts'
import { nodeInfos } from './node-state.ts'

export const graphResponse = named('ConnectionGraph', {
  nodes: listed(
    named('ConnectionNode', {
      key: string(),
      kind: string(),
      id: nullable(id()),
      name: string(),
      state: string(),
      open_alerts: amount(),
      depth: nullable(amount()),
    }),
  ),
  edges: listed(
    named('ConnectionEdge', {
      id: id(),
      source: string(),
      target: string(),
      type: string(),
      protocol: string(),
      port: nullable(Type.Integer()),
      criticality: string(),
      state: string(),
    }),
  ),
  cycles: listed(listed(string())),
  impact: nullable(
    named('ConnectionImpact', {
      affected: listed(
        named('AffectedNode', { key: string(), name: string(), path: listed(string()), hard: Type.Boolean() }),
      ),
      total: amount(),
    }),
  ),
  truncated: Type.Boolean(),
})

type EdgeRow = {
  id: string
  source: string
  target: string
  source_name: string | null
  target_name: string | null
  type: string
  protocol: string
  port: number | null
  criticality: string
  state: string
}
type Edge = EdgeRow & Dependency

type GraphQuery = {
  readonly root?: string | undefined
  readonly direction: Direction
  readonly depth: number
  readonly criticality?: string | undefined
  readonly max_nodes: number
}

async function edgesOf({ hub, companyId }: RouteContext, criticality: string | null): Promise<Edge[]> {
  const rows = await hub.database.db.execute<EdgeRow>(sql`
    select id, source_key as source, target_key as target, source_name, target_name, type, protocol, port, criticality,
      state
    from connections where company_id = ${companyId} and deleted_at is null
      and (${criticality}::text is null or criticality = ${criticality}) order by id`)
  return rows.map(row => ({ ...row, isHard: row.criticality === 'hard' }))
}

/** The names of services and external hosts, by key. */
const givenNames = (edges: readonly Edge[]): ReadonlyMap<string, string | null> =>
  new Map(edges.flatMap(edge => [[edge.source, edge.source_name] as const, [edge.target, edge.target_name] as const]))

function nodeOf(key: string, name: string | null): Node {
  const at = key.indexOf(':')
  return { kind: key.slice(0, at), id: name === null ? key.slice(at + 1) : null, name, key }
}

const presentEdge = ({
  source_name,
  target_name,
  isHard,
  ...edge
}: Edge): Omit<EdgeRow, 'source_name' | 'target_name'> => edge

function impactOf(edges: readonly Edge[], root: string, nodesMax: number) {
  const all = affectedBy(edges, root)
  let keys = 0
  const affected = all.slice(0, nodesMax).filter(({ depth }) => {
    keys += depth + 1
    return keys <= PATH_KEYS_MAX
  })
  return { affected, total: all.length }
}

/** The graph around a root, or of all. Throws 404 for a root that the company does not have, 422. */
export async function connectionGraph(context: RouteContext, query: GraphQuery) {
  const { hub, companyId } = context
  const { db } = hub.database
  const root = query.root === undefined ? null : nodeOfKey('root', query.root)
  if (root && !(await isNodeOf({ kinds: hub.kinds, db, companyId }, root))) throw notFound()
  const edges = await edgesOf(context, query.criticality ?? null)
  const { depths, isTruncated } = root
    ? nodesAround(edges, root.key, query.direction, query.depth, query.max_nodes)
    : allNodes(edges, query.max_nodes)
  const shown = edges.filter(edge => depths.has(edge.source) && depths.has(edge.target))
  const impact = root && impactOf(edges, root.key, query.max_nodes)
  const names = givenNames(edges)
  const keys = new Set([...depths.keys(), ...(impact?.affected.map(({ key }) => key) ?? [])])
  const nodes = [...keys].map(key => (key === root?.key ? root : nodeOf(key, names.get(key) ?? null)))
  const infos = await nodeInfos(context, nodes)
  const nameOf = (key: string): string => infos.get(key)?.name ?? ''
  return {
    nodes: nodes.flatMap(({ key, kind, id: nodeId }) => {
      const depth = depths.get(key)
      if (depth === undefined) return []
      const { name = '', state = 'unknown', openAlerts = 0 } = infos.get(key) ?? {}
      return [{ key, kind, id: nodeId, name, state, open_alerts: openAlerts, depth }]
    }),
    edges: shown.map(presentEdge),
    cycles: cyclesOf(shown, CYCLES_MAX),
    impact: impact && {
      affected: impact.affected.map(({ key, path, isHard }) => ({
        key,
        name: nameOf(key),
        path: path(),
        hard: isHard,
      })),
      total: impact.total,
    },
    truncated: isTruncated,
  }
}
