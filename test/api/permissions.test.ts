// The permissions of every route, as the catalogue of routes has them: without each of them the answer is 403, with
// exactly them it is not. And people at the web interface are asked for the same, and told the same.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { assignablePermissions } from '../../apps/hub/identity/permission-keys.ts'
import type { Route } from '../../apps/hub/platform/http/route.ts'
import { apiRoutes } from '../../apps/hub/routes.ts'
import { logIn, newPerson, type Session } from '../web/visitor.ts'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
let session: Session

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000 })
  tenant = await hub.tenant()
  session = await logIn(hub.url, (await newPerson(hub, tenant.companyId)).email)
})
afterAll(() => hub.stop())

const callers = new Map<string, Call>()
/** A user with these permissions and no others. */
async function holderOf(permissions: readonly string[]): Promise<Call> {
  const key = [...permissions].sort().join(' ')
  const known = callers.get(key) ?? (await hub.user(tenant.companyId, [...permissions])).call
  callers.set(key, known)
  return known
}

const pathOf = (route: Route): string => route.path.replace(/:[a-z_]+/g, () => randomUUID())
const isOfUsers = (route: Route): boolean =>
  !/^\/(monitoring\/collector|security\/matcher)\//.test(route.path) && !route.superAdmin
const what = (route: Route): string => `${route.method} ${route.path}`

describe('permissions', () => {
  const guarded = apiRoutes.filter(route => isOfUsers(route) && route.permissions.length > 0)

  test('[HUB-039] without one of its permissions every route answers 403, whatever else one may do and whatever is sent', async () => {
    for (const route of guarded)
      for (const missing of route.permissions) {
        const call = await holderOf(assignablePermissions.filter(permission => permission !== missing))
        const { status, body } = await call(route.method, pathOf(route), route.bodySchema ? { name: 1 } : undefined)
        expect([status, body.reason], `${what(route)} without ${missing}`).toEqual([403, 'permission_denied'])
        expect(body.message).toContain(missing)
      }
  })

  test('with its permissions alone no route is forbidden', async () => {
    for (const route of guarded) {
      const { status } = await (await holderOf(route.permissions))(
        route.method,
        pathOf(route),
        route.bodySchema ? { name: 1 } : undefined,
      )
      expect([401, 403, 500], what(route)).not.toContain(status)
    }
  })

  test('[HUB-057] [COL-066] [SEC-001] routes of collectors, matchers and super administrators are closed to administrators of a company', async () => {
    for (const route of apiRoutes.filter(each => !isOfUsers(each))) {
      const { status } = await tenant.call(route.method, pathOf(route), route.bodySchema ? {} : undefined)
      expect(status, what(route)).toBe(403)
    }
  })

  test('a change needs more than a permission to read', () => {
    const own = ['/me', '/mobile', '/notifications']
    // A request for an exception changes no finding before somebody else approves it.
    // A look at where a certificate is served changes nothing that people keep, and a comment no decision: whoever
    // asked for a change may explain it.
    const asking = ['/security/exceptions', '/certificates/:certificate/check', '/approvals/tickets/:ticket/comments']
    const asks = (route: (typeof apiRoutes)[number]) => route.method === 'POST' && asking.includes(route.path)
    for (const route of apiRoutes) {
      if (
        route.method === 'GET' ||
        route.superAdmin ||
        asks(route) ||
        own.some(prefix => route.path.startsWith(prefix) && route.permissions.length === 0)
      )
        continue
      expect(
        route.permissions.some(permission => !permission.endsWith('.view')),
        what(route),
      ).toBe(true)
    }
  })
})

describe('the web interface', () => {
  test('[HUB-006] a session is told the same as a token, for everything that is wrong', async () => {
    const wrong: readonly [method: string, path: string, body: Json][] = [
      ['POST', '/servers', { name: '', ip_address: 'x', cpu_cores: -1, tags: 'web' }],
      ['POST', '/monitoring/licenses', { max_uses: 1001, expires_at: '2020-01-01T00:00:00Z' }],
      ['POST', '/monitoring/rules', { name: 'x', scope: {}, severity: 'bad', metric: 'nope', operator: '~' }],
      ['POST', '/monitoring/silences', { scope: { all: true }, ends_at: 'tomorrow', reason: '' }],
      ['POST', '/monitoring/checks', { name: 'x', type: 'port', target: { port: 0 }, scope: { all: true } }],
      ['PATCH', '/monitoring/settings', { default_interval: 1, group_down_ratio: 2 }],
      ['GET', '/monitoring/alerts?state=gone&opened_from=x', undefined],
      ['POST', '/monitoring/alerts/x/acknowledge', { comment: 1 }],
      ['POST', '/users', { email: 'nobody', name: '', permissions: ['monitoring.collector'] }],
    ]
    for (const [method, path, body] of wrong)
      for (const language of ['en', 'vi']) {
        const headers = { 'Accept-Language': language }
        const byToken = await tenant.call(method, path, body, headers)
        const bySession = await fetch(`${hub.url}/api/v1${path}`, {
          method,
          headers: {
            ...headers,
            Cookie: session.cookie,
            'X-CSRF-Token': session.csrfToken,
            'Content-Type': 'application/json',
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        expect([bySession.status, await bySession.json()], `${method} ${path}`).toEqual([byToken.status, byToken.body])
        expect([404, 422], `${method} ${path}`).toContain(byToken.status)
      }
  })
})
