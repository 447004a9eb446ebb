// The way of the hub into the matcher, /internal/v1 (MAT section 10; document 3 "Security matcher API called by the
// hub"): which paths there are.
import { type AdminRoute, createAdminApp } from '../../admin-api/admin-app.ts'
import type { MatcherAdminDeps } from './admin-deps.ts'
import { companySummary, purge, resync, searchPackages, serverPackages } from './packages.ts'

const updateDatabase = async ({ updateDatabase }: MatcherAdminDeps): Promise<Response> => {
  updateDatabase()
  return Response.json({ data: { update: 'db', accepted: true } }, { status: 202 })
}

const routesOf = (deps: MatcherAdminDeps): readonly AdminRoute[] => [
  { method: 'GET', path: '/servers/:server_id/packages', act: call => serverPackages(deps, call) },
  { method: 'GET', path: '/companies/:company_id/packages/search', act: call => searchPackages(deps, call) },
  { method: 'GET', path: '/companies/:company_id/summary', act: call => companySummary(deps, call) },
  { method: 'DELETE', path: '/servers/:server_id/data', act: call => purge(deps, call, 'server') },
  { method: 'DELETE', path: '/companies/:company_id/data', act: call => purge(deps, call, 'company') },
  { method: 'POST', path: '/resync', act: call => resync(deps, call) },
  { method: 'POST', path: '/db/update', act: () => updateDatabase(deps) },
  { method: 'GET', path: '/status', act: async () => deps.status() },
]

/** The internal API as an application, for a listener. */
export const createMatcherAdmin = (deps: MatcherAdminDeps) => createAdminApp({ ...deps, routes: routesOf(deps) })
