// The way of the hub into the collector, /internal/v1: which paths there are. What a call does stands in the file named
// after it.
import { reloadFeeds, reloadPath } from '../../../core/admin-api/calls.ts'
import { collectorStatusPath } from '../../../core/admin-api/status.ts'
import { type AdminRoute, createAdminApp } from '../../admin-api/admin-app.ts'
import { errorResponse } from '../../admin-api/admin-error.ts'
import { RedisAway } from '../store/redis/redis-client.ts'
import { SamplesUnavailable } from '../worker/samples/samples-client.ts'
import { pushAgent, revokeAgent } from './agents.ts'
import type { AdminDeps } from './deps.ts'
import { purgeData } from './purge.ts'
import { reloadFeed } from './reload.ts'
import { seriesByMetric, seriesList, serverSeries } from './series.ts'
import { collectorStatus, companySummary, companyValues, serverAlerting, serverStatus } from './status.ts'

const routesOf = (deps: AdminDeps): readonly AdminRoute[] => [
  { method: 'PUT', path: '/agents/:agent_id', act: call => pushAgent(deps, call) },
  { method: 'DELETE', path: '/agents/:agent_id', act: call => revokeAgent(deps, call) },
  ...reloadFeeds.map(feed => ({ method: 'POST' as const, path: reloadPath(feed), act: () => reloadFeed(deps, feed) })),
  { method: 'GET', path: '/servers/:server_id/status', act: call => serverStatus(deps, call) },
  { method: 'GET', path: '/servers/:server_id/series', act: call => serverSeries(deps, call) },
  { method: 'GET', path: '/servers/:server_id/series/by-metric', act: call => seriesByMetric(deps, call) },
  { method: 'GET', path: '/servers/:server_id/metrics', act: call => seriesList(deps, call) },
  { method: 'GET', path: '/servers/:server_id/alerting', act: call => serverAlerting(deps, call) },
  { method: 'GET', path: '/companies/:company_id/summary', act: call => companySummary(deps, call) },
  { method: 'GET', path: '/companies/:company_id/values', act: call => companyValues(deps, call) },
  { method: 'DELETE', path: '/companies/:company_id/data', act: call => purgeData(deps, call, 'company') },
  { method: 'DELETE', path: '/servers/:server_id/data', act: call => purgeData(deps, call, 'server') },
  { method: 'GET', path: collectorStatusPath, act: () => collectorStatus(deps) },
]

/** The admin API as an application; main.ts gives it a listener. */
export const createCollectorAdmin = (deps: AdminDeps) =>
  createAdminApp({
    tokens: deps.tokens,
    routes: routesOf(deps),
    onRequest: deps.onRequest,
    onError: deps.onError,
    faultOf: error => {
      if (error instanceof SamplesUnavailable) return errorResponse('unavailable', 'the samples store does not answer')
      return error instanceof RedisAway ? errorResponse('unavailable', 'Redis does not answer') : null
    },
  })
