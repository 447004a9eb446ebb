// Packages of a server, and servers that have a package (MAT-200 to MAT-206).
import { PACKAGE_SYSTEMS } from '../../../core/matching/report-schema.ts'
import { isValidVersion } from '../../../core/matching/version.ts'
import { AdminError, badField } from '../../admin-api/admin-error.ts'
import { type AdminCall, uuidOf } from '../../admin-api/call.ts'
import type { MatcherAdminDeps } from './admin-deps.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 500
const Q_CHARS_MAX = 128
const NAME_CHARS_MAX = 256
/** A search that has found some of its rows by then answers them with a cursor (MAT-205). */
const SEARCH_DEADLINE_MS = 4_000

function limitOf(query: URLSearchParams): number {
  const given = query.get('limit')
  if (given === null) return LIMIT_DEFAULT
  const limit = /^\d{1,4}$/.test(given) ? Number(given) : 0
  if (limit < 1 || limit > LIMIT_MAX) throw badField('limit', `must be a whole number, 1 to ${LIMIT_MAX}`)
  return limit
}

/** A parameter of 1 to `charsMax` characters; null when it is not given. */
function textOf(query: URLSearchParams, field: string, charsMax: number): string | null {
  const given = query.get(field)
  if (given === null) return null
  if (given === '' || given.length > charsMax) throw badField(field, `must have 1 to ${charsMax} characters`)
  return given
}

const companyOf = ({ params, query }: AdminCall): string =>
  uuidOf('company_id', params.company_id ?? query.get('company_id'))

export async function serverPackages({ state, cursors }: MatcherAdminDeps, call: AdminCall) {
  const companyId = companyOf(call)
  const serverId = uuidOf('server_id', call.params.server_id)
  const limit = limitOf(call.query)
  const q = textOf(call.query, 'q', Q_CHARS_MAX)
  const question = ['packages', companyId, serverId, q]
  const [name, arch, version] = cursors.open(question, call.query.get('cursor'), 3) ?? []
  const after = name === undefined || arch === undefined || version === undefined ? null : { name, arch, version }
  const page = state.packages(companyId, serverId, { q, after, limit })
  if (page === null) throw new AdminError('not_found', 'this server has no inventory')
  const { items, next } = page
  return { items, next_cursor: next && cursors.seal(question, [next.name, next.arch, next.version]) }
}

export async function searchPackages({ state, cursors }: MatcherAdminDeps, call: AdminCall) {
  const companyId = companyOf(call)
  const limit = limitOf(call.query)
  const name = textOf(call.query, 'name', NAME_CHARS_MAX)
  if (name === null) throw badField('name', 'is required')
  const versionGte = textOf(call.query, 'version_gte', NAME_CHARS_MAX)
  const versionLt = textOf(call.query, 'version_lt', NAME_CHARS_MAX)
  const ecosystem = textOf(call.query, 'ecosystem', Q_CHARS_MAX)
  const question = ['search', companyId, name, versionGte, versionLt, ecosystem]
  const [after = null] = cursors.open(question, call.query.get('cursor'), 1) ?? []
  const search = { name, versionGte, versionLt, ecosystem, after, limit, deadlineMs: SEARCH_DEADLINE_MS }
  const found = await state.search(companyId, search)
  if (found === 'invalid_bound') {
    const isFromFaulty = versionGte !== null && !PACKAGE_SYSTEMS.some(system => isValidVersion(system, versionGte))
    const field = isFromFaulty || versionLt === null ? 'version_gte' : 'version_lt'
    throw badField(field, 'is no version that can be compared')
  }
  return { items: found.items, next_cursor: found.nextAfter && cursors.seal(question, [found.nextAfter]) }
}

export const companySummary = async ({ state }: MatcherAdminDeps, call: AdminCall) => state.summary(companyOf(call))

/** The events that a resync will make. */
export const resync = async ({ state }: MatcherAdminDeps, call: AdminCall) => ({
  events: await state.resync(companyOf(call)),
})

/** Deletes the data of a company, or of one server of it; what is on its way to the hub has ended when it answers. */
export async function purge(deps: MatcherAdminDeps, call: AdminCall, of: 'company' | 'server'): Promise<Response> {
  const companyId = companyOf(call)
  const serverId = of === 'server' ? uuidOf('server_id', call.params.server_id) : null
  await deps.state.purge(companyId, serverId)
  await deps.untilUnsent(companyId)
  return new Response(null, { status: 204 })
}
