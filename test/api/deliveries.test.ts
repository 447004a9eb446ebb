// What leaves the hub: webhooks at a receiver that answers, fails, hangs and redirects; e-mail at a real SMTP server.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createSealer } from '../../apps/hub/identity/sealer.ts'
import { tellLeftOver } from '../../apps/hub/notifications/outbox.ts'
import { tellEndedSuppressions } from '../../apps/hub/notifications/suppression-end.ts'
import { type Mail, type MailServer, startMailServer } from '../support/mail-server.ts'
import { alertEvent as event, notificationsIdle } from './alert-event.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

type Hook = { headers: Headers; path: string; text: string; body: Json }
let hub: TestHub
let collector: Awaited<ReturnType<TestHub['collector']>>
let receiver: ReturnType<typeof Bun.serve>
let mailServer: MailServer
const hooks: Hook[] = []
let answerHook: (path: string, gone: AbortSignal) => Response | Promise<Response> = () => new Response()

beforeAll(async () => {
  receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const text = await request.text()
      const path = new URL(request.url).pathname
      hooks.push({ headers: request.headers, path, text, body: JSON.parse(text) })
      return answerHook(path, request.signal)
    },
  })
  mailServer = await startMailServer()
  hub = await TestHub.start({
    'webhooks.allow_private': true,
    'webhooks.timeout': '2s',
    'smtp.url': mailServer.url,
    'mail.from': 'Hub <hub@example.test>',
    public_url: 'https://hub.example.test',
  })
  collector = await hub.collector()
})
afterAll(async () => {
  await receiver.stop(true)
  await mailServer.stop()
  await hub.stop()
})
afterEach(() => {
  hooks.length = 0
  mailServer.mails.length = 0
  mailServer.refuse(0)
  answerHook = () => new Response()
})

let names = 0
const send = async (...events: Json[]) => (await collector.call('POST', '/events', { events })).body.data
const server = async (by: Tenant, body: Json = {}): Promise<string> =>
  (await by.call('POST', '/servers', { name: `web-${++names}`, ...body })).body.data.id
const idle = () => notificationsIdle(hub)
const failing = (status: number) => () => new Response('', { status })
const webhook = async (by: Tenant, more: Json = {}, path = '/x') =>
  (await by.call('POST', '/webhooks', { name: 'hook', url: `http://127.0.0.1:${receiver.port}${path}`, ...more })).body
const deliveries = async (by: Tenant, filter = ''): Promise<Json[]> =>
  (await by.call('GET', `/notifications/deliveries${filter}`)).body.data
/** Mail to the people of a company only where a test asks for it. */
const quietTenant = async (): Promise<Tenant> => {
  const own = await hub.tenant()
  await own.call('PUT', '/notifications/preferences', { email: { min_severity: 'off' } })
  return own
}

describe('webhooks', () => {
  test('without the right to see webhooks a delivery names the origin of its receiver, and no more', async () => {
    const own = await quietTenant()
    await webhook(own, { events: ['alert.opened'] }, '/services/secret-path?token=secret')
    await send(event(own, await server(own), 'alert.opened'))
    await idle()
    const targets = async (permissions: string[]): Promise<string[]> => {
      const reader = await hub.user(own.companyId, permissions)
      return (await reader.call('GET', '/notifications/deliveries')).body.data.map((each: Json) => each.target)
    }
    const origin = `http://127.0.0.1:${receiver.port}`
    expect(await targets(['notifications.view'])).toEqual([origin])
    expect(await targets(['notifications.view', 'webhooks.view'])).toEqual([
      `${origin}/services/secret-path?token=secret`,
    ])
  })

  test('[NTF-006] [NTF-008] a webhook gets the alert, signed with its secret', async () => {
    const own = await quietTenant()
    const id = await server(own)
    const { data, secret } = await webhook(own, { events: ['alert.opened'] })
    expect(secret).toMatch(/^whs_[0-9A-Za-z]{40}$/)
    await send(event(own, id, 'alert.opened'))
    await send(event(own, id, 'alert.resolved'))
    await idle()
    expect(hooks).toHaveLength(1)
    const [{ headers, text, body }] = hooks as [Hook]
    const timestamp = headers.get('x-hub-timestamp')
    const signature = createHmac('sha256', secret).update(`${timestamp}.${text}`).digest('hex')
    expect(headers.get('x-hub-signature')).toBe(`sha256=${signature}`)
    expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(60)
    expect([headers.get('x-hub-event'), headers.get('x-hub-delivery')]).toEqual(['alert.opened', body.id])
    expect(body).toMatchObject({
      type: 'alert.opened',
      company_id: own.companyId,
      data: { alert: { server: { id }, state: 'open', last_value: 95 } },
    })
    const { body: list } = await own.call('GET', `/webhooks/${data.id}/deliveries`)
    expect(list.data[0]).toMatchObject({ id: body.id, state: 'delivered', tries: 1, response_code: 200 })
    expect(JSON.stringify((await own.call('GET', `/webhooks/${data.id}`)).body)).not.toContain(secret)
  })

  test('ids of alerts, their events, deliveries, notifications and audit entries are random: version 4', async () => {
    const own = await quietTenant()
    await webhook(own)
    await send(event(own, await server(own), 'alert.opened'))
    await idle()
    const alert = (await own.call('GET', '/monitoring/alerts')).body.data[0]
    const paths = [`/monitoring/alerts/${alert.id}/events`, '/notifications/deliveries', '/notifications', '/audit-log']
    const lists = await Promise.all(paths.map(async path => (await own.call('GET', path)).body.data))
    for (const list of [[alert], ...lists]) {
      expect(list.length).toBeGreaterThan(0)
      for (const { id } of list)
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
  })

  test('a failing webhook is tried six times with the same delivery id, then the delivery has failed', async () => {
    const own = await quietTenant()
    const { data } = await webhook(own)
    answerHook = failing(500)
    const { body } = await own.call('POST', `/webhooks/${data.id}/test`)
    const failed = await until('the delivery failed', async () => {
      const [delivery] = (await own.call('GET', `/webhooks/${data.id}/deliveries`)).body.data
      return delivery.state === 'failed' ? delivery : null
    })
    expect(failed).toMatchObject({ id: body.data.delivery_id, tries: 6, response_code: 500 })
    expect(new Set(hooks.map(hook => hook.headers.get('x-hub-delivery')))).toEqual(new Set([failed.id]))
    const shown = await until('it is counted', async () => {
      const { body } = await own.call('GET', `/webhooks/${data.id}`)
      return body.data.failures_in_a_row > 0 && body.data
    })
    expect(shown).toMatchObject({ enabled: true, failures_in_a_row: 1 })
    answerHook = () => new Response()
    await own.call('POST', `/webhooks/${data.id}/deliveries/${failed.id}/redeliver`)
    await idle()
    expect((await deliveries(own))[0]).toMatchObject({ id: failed.id, state: 'delivered', tries: 7 })
    expect((await own.call('GET', `/webhooks/${data.id}`)).body.data.failures_in_a_row).toBe(0)
  })

  test('a hub that cannot open the secret of a webhook tries as often as after any other failure', async () => {
    const own = await quietTenant()
    const { data } = await webhook(own)
    const { client } = hub.hub.database
    const [kept] = await client`select secret_sealed as text from webhooks where id = ${data.id}`
    const foreign = createSealer(['of another hub']).seal('whs_x')
    await client`update webhooks set secret_sealed = ${foreign} where id = ${data.id}`
    const { body } = await own.call('POST', `/webhooks/${data.id}/test`)
    const failed = await until('the delivery failed', async () => {
      const [delivery] = (await own.call('GET', `/webhooks/${data.id}/deliveries`)).body.data
      return delivery.state === 'failed' ? delivery : null
    })
    expect(failed).toMatchObject({ tries: 6, last_error: "the hub lacks the key that opens the webhook's secret" })
    await client`update webhooks set secret_sealed = ${String(kept?.text)} where id = ${data.id}`
    await own.call('POST', `/webhooks/${data.id}/deliveries/${failed.id}/redeliver`)
    await idle()
    expect(hooks.map(hook => hook.headers.get('x-hub-delivery'))).toEqual([body.data.delivery_id])
  })

  test('a delivery that was sent again and came does not come once more when its next try is due', async () => {
    const own = await quietTenant()
    const { data } = await webhook(own)
    const [first, second] = [Promise.withResolvers<Response>(), Promise.withResolvers<Response>()]
    const answers = [first.promise, second.promise]
    answerHook = () => answers[hooks.length - 1] ?? new Response()
    const id = (await own.call('POST', `/webhooks/${data.id}/test`)).body.data.delivery_id
    await until('the first try came', async () => hooks.length === 1)
    await own.call('POST', `/webhooks/${data.id}/deliveries/${id}/redeliver`)
    await until('the second try came', async () => hooks.length === 2)
    second.resolve(new Response())
    await until('it is delivered', async () => (await deliveries(own, '?state=delivered')).length === 1)
    first.resolve(new Response('', { status: 500 }))
    await idle()
    expect(hooks).toHaveLength(2)
    expect((await deliveries(own))[0]).toMatchObject({ state: 'delivered' })
  })

  test('[NTF-006] a webhook is disabled after fifty failed deliveries in a row', async () => {
    const own = await quietTenant()
    const { data } = await webhook(own)
    await hub.hub.database.client`update webhooks set failures_in_a_row = 49 where id = ${data.id}`
    // Tries do not count while one of them still brings it.
    answerHook = () => new Response('', { status: hooks.length < 6 ? 500 : 200 })
    await own.call('POST', `/webhooks/${data.id}/test`)
    await idle()
    expect(hooks).toHaveLength(6)
    const after = (await own.call('GET', `/webhooks/${data.id}`)).body.data
    expect(after).toMatchObject({ enabled: true, failures_in_a_row: 0 })
    await hub.hub.database.client`update webhooks set failures_in_a_row = 49 where id = ${data.id}`
    answerHook = failing(500)
    await own.call('POST', `/webhooks/${data.id}/test`)
    const off = await until('it is disabled', async () => {
      const shown = (await own.call('GET', `/webhooks/${data.id}`)).body.data
      return shown.enabled ? null : shown
    })
    expect(off.disabled_reason).toContain('too many')
    const [entry] = (await own.call('GET', `/audit-log/subjects/webhook/${data.id}`)).body.data
    expect([entry.actor, entry.action, entry.changes.enabled]).toEqual([
      { type: 'system', id: null, name: 'hub' },
      'webhook.update',
      { old: true, new: false },
    ])
    await idle()
    // It is called for what happens no more, until somebody enables it.
    hooks.length = 0
    await send(event(own, await server(own), 'alert.opened'))
    await idle()
    expect(hooks).toHaveLength(0)
  })

  test('a redirect is a failure and is not followed', async () => {
    const own = await quietTenant()
    const { data } = await webhook(own, {}, '/from')
    answerHook = path =>
      path === '/from' ? Response.redirect(`http://127.0.0.1:${receiver.port}/to`, 307) : new Response()
    await own.call('POST', `/webhooks/${data.id}/test`)
    const [tried] = await until('it was tried', async () => {
      const found = await deliveries(own)
      return found[0]?.tries > 0 ? found : null
    })
    expect([tried?.response_code, tried?.last_error]).toEqual([307, 'answered 307'])
    expect(hooks.some(hook => hook.path === '/to')).toBe(false)
    answerHook = () => new Response()
    await idle()
  })

  test('receivers that hang hold up neither each other nor those that answer', async () => {
    const own = await quietTenant()
    const hanging = Promise.withResolvers<void>()
    let [open, mostOpen] = [0, 0]
    answerHook = async (path, gone) => {
      if (path !== '/hangs') return new Response()
      mostOpen = Math.max(mostOpen, ++open)
      // The hub gives one up at its time limit and tries another.
      await Promise.race([hanging.promise, once(gone, 'abort')])
      open -= 1
      return new Response()
    }
    await webhook(own, {}, '/hangs')
    await webhook(own)
    const id = await server(own)
    // More of each than a hub tries at once, written in one transaction.
    await send(...Array.from({ length: 70 }, (_, at) => event(own, id, 'alert.opened', { series_key: `disk_${at}` })))
    const came = (path: string) => new Set(hooks.filter(hook => hook.path === path).map(hook => hook.body.id)).size
    await until('the other got all of its own', async () => came('/x') === 70)
    expect(mostOpen).toBeLessThanOrEqual(2)
    expect(came('/hangs')).toBeLessThan(70)
    hanging.resolve()
    await idle()
    expect(came('/hangs')).toBe(70)
  })

  test('[NTF-006] a webhook is told of the servers of its scope, and begins anew when it is enabled', async () => {
    const own = await quietTenant()
    const [inside, outside] = [await server(own, { tags: ['hooked'] }), await server(own)]
    const { data } = await webhook(own, { scope: { tags: ['hooked'] } })
    expect(data.scope).toMatchObject({ all: false, tags: ['hooked'] })
    await send(event(own, inside, 'alert.opened'), event(own, outside, 'alert.opened'))
    await idle()
    expect(hooks.map(hook => hook.body.data.alert.server.id)).toEqual([inside])
    await hub.hub.database.client`update webhooks set failures_in_a_row = 50, enabled = false where id = ${data.id}`
    const enabled = await own.call('PATCH', `/webhooks/${data.id}`, { enabled: true, scope: { all: true } })
    expect(enabled.body.data).toMatchObject({ enabled: true, failures_in_a_row: 0, scope: { all: true } })
  })
})

describe('e-mail', () => {
  test('[HUB-043] the scope of a webhook or a group address names servers of the company, and the audit says what changed', async () => {
    const [own, other] = [await quietTenant(), await hub.tenant()]
    const foreign = await server(other)
    const url = `http://127.0.0.1:${receiver.port}/x`
    const made = {
      '/webhooks': { name: 'x', url },
      '/notifications/channels': { name: 'x', address: 'x@example.test' },
    }
    for (const [path, body] of Object.entries(made)) {
      for (const scope of [{ server_ids: [foreign] }, {}]) {
        const refused = await own.call('POST', path, { ...body, scope })
        expect([path, refused.status, Object.keys(refused.body.errors)[0]?.startsWith('scope')]).toEqual([
          path,
          422,
          true,
        ])
      }
      const { data } = (await own.call('POST', path, body)).body
      expect((await own.call('PATCH', `${path}/${data.id}`, { scope: { server_ids: [foreign] } })).status).toBe(422)
      await own.call('PATCH', `${path}/${data.id}`, { min_severity: 'critical' })
      const type = path === '/webhooks' ? 'webhook' : 'channel'
      const log = await own.call('GET', `/audit-log?action=${type}.update`)
      expect(log.body.data[0].changes).toEqual({ min_severity: { old: 'info', new: 'critical' } })
    }
  })

  test('[NTF-006] mail goes to people from their severity on, and to group addresses by scope', async () => {
    const own = await hub.tenant()
    const [inside, outside] = [await server(own, { tags: ['mailed'] }), await server(own)]
    await own.call('POST', '/notifications/channels', {
      name: 'ops',
      address: 'ops@example.test',
      scope: { tags: ['mailed'] },
    })
    await own.call('PUT', '/notifications/preferences', { email: { min_severity: 'critical' } })
    await send(event(own, inside, 'alert.opened'), event(own, outside, 'alert.opened'))
    await idle()
    expect(mailServer.mails.map(mail => mail.to)).toEqual([['ops@example.test']])
    await send(event(own, outside, 'alert.opened', { series_key: 'cpu_load1', severity: 'critical' }))
    await idle()
    expect(mailServer.mails.at(-1)).toMatchObject({ from: 'hub@example.test', to: [own.email] })
  })

  test('[NTF-006] [NTF-008] a message has the text of its language, says which delivery it is, and is shown', async () => {
    const own = await hub.tenant()
    await own.call('PATCH', '/me', { language: 'vi' })
    const id = await server(own, { name: 'may-chu' })
    await send(event(own, id, 'alert.opened'))
    await idle()
    const [shown] = await deliveries(own, '?state=delivered')
    expect(shown).toMatchObject({
      channel: 'email',
      target: own.email,
      type: 'alert.opened',
      tries: 1,
      last_error: null,
    })
    const [{ text }] = mailServer.mails as [Mail]
    expect(text).toContain(`Message-ID: <${shown?.id}@example.test>`)
    expect(text).toContain(`X-Hub-Delivery: ${shown?.id}`)
    expect(text).toMatch(/^From: Hub <hub@example\.test>/m)
    expect(shown?.payload.title).toContain('trên may-chu')
    expect(text.replaceAll('=3D', '=')).toContain('https://hub.example.test/alerts/')
  })

  test('a test of a group address is in the language of who asks for it', async () => {
    const own = await quietTenant()
    const channel = (await own.call('POST', '/notifications/channels', { name: 'ops', address: 'ops@example.test' }))
      .body
    for (const language of ['vi', 'en'])
      await own.call('POST', `/notifications/channels/${channel.data.id}/test`, undefined, {
        'Accept-Language': language,
      })
    await idle()
    expect((await deliveries(own)).map(item => item.payload.title)).toEqual(['Test', 'Thử'])
    expect(mailServer.mails.map(mail => mail.to)).toEqual([['ops@example.test'], ['ops@example.test']])
  })

  test('a mailbox that is a group address and somebody’s own gets one message of an event', async () => {
    const own = await hub.tenant()
    await own.call('POST', '/notifications/channels', { name: 'me', address: own.email.toUpperCase() })
    await send(event(own, await server(own), 'alert.opened'))
    await idle()
    expect(mailServer.mails).toHaveLength(1)
  })

  test('a mail server that refuses is tried five times, with the same Message-ID when it takes the mail at last', async () => {
    const own = await hub.tenant()
    mailServer.refuse(450)
    await send(event(own, await server(own), 'alert.opened'))
    const [failed] = await until('the delivery failed', async () => {
      const found = await deliveries(own, '?state=failed')
      return found.length > 0 ? found : null
    })
    expect(failed).toMatchObject({ tries: 5, last_error: 'the mail server answered 450' })
    mailServer.refuse(0)
    expect((await own.call('POST', `/notifications/deliveries/${failed?.id}/retry`)).status).toBe(202)
    await idle()
    expect(mailServer.mails.map(mail => /^Message-ID: (.*)$/m.exec(mail.text)?.[1]?.trim())).toEqual([
      `<${failed?.id}@example.test>`,
    ])
    expect((await own.call('POST', `/notifications/deliveries/${failed?.id}/retry`)).status).toBe(422)
  })
})

describe('suppression', () => {
  test('[SUP-022] [NTF-005] a suppressed alert is stored and goes to nobody; when its suppression ends everybody is told once, and why so late', async () => {
    const own = await hub.tenant()
    const id = await server(own, { status: 'maintenance' })
    await webhook(own)
    await send(event(own, id, 'alert.opened', { suppressed: true, suppress_reason: 'maintenance' }))
    await tellEndedSuppressions(hub.hub)
    await idle()
    const [stored] = (await own.call('GET', '/monitoring/alerts')).body.data
    expect(stored).toMatchObject({ state: 'open', suppressed: true, suppress_reason: 'maintenance' })
    const bell = async (): Promise<Json[]> => (await own.call('GET', '/notifications')).body.data
    expect([hooks, mailServer.mails, await bell(), await deliveries(own)]).toEqual([[], [], [], []])
    await own.call('PUT', `/servers/${id}/status`, { status: 'active' })
    await Promise.all([tellEndedSuppressions(hub.hub), tellEndedSuppressions(hub.hub)])
    await idle()
    expect(hooks.map(hook => [hook.body.type, hook.body.data.alert.suppress_reason])).toEqual([
      ['alert.opened', 'maintenance'],
    ])
    expect(mailServer.mails).toHaveLength(1)
    expect((await bell()).map(item => item.body)).toEqual([
      expect.stringContaining('opened while notifications were suppressed'),
    ])
  })

  test('[NTF-009] an event that comes again goes out once on each channel', async () => {
    const own = await hub.tenant()
    await webhook(own)
    const opened = event(own, await server(own), 'alert.opened')
    await Promise.all([send(opened), send(opened), send(opened)])
    await send(opened)
    await idle()
    expect([hooks.length, mailServer.mails.length]).toEqual([1, 1])
  })

  test('[NTF-004] a wide-area incident is one message on each channel, whatever its servers send', async () => {
    const own = await hub.tenant()
    const members = [await server(own), await server(own), await server(own)]
    await webhook(own)
    const group = (type: string) =>
      event(own, members[0] ?? '', type, {
        rule_id: 'group_down',
        series_key: 'subnet:n',
        group_key: 'subnet:n',
        severity: 'critical',
        value: 3,
        member_server_ids: members,
        group_total: 3,
      })
    const of = (type: string) =>
      members.map(id =>
        event(own, id, type, { rule_id: 'agent_down', series_key: `agent:${id}`, severity: 'critical', value: 90 }),
      )
    await send(group('group_down'), ...of('agent.down'), group('group_update'))
    await send(...of('agent.up'), group('group_resolved'))
    await idle()
    expect(hooks.map(hook => hook.body.type).sort()).toEqual(['group_down', 'group_resolved'])
    expect(mailServer.mails).toHaveLength(2)
  })

  /**
   * A wide-area incident in the order in which a collector sends it: the servers first, some of them batches before.
   */
  const incident = (own: Tenant, members: readonly string[]) => ({
    group: (type: string) =>
      event(own, members[0] ?? '', type, {
        rule_id: 'group_down',
        series_key: 'datacenter:d',
        group_key: 'datacenter:d',
        severity: 'critical',
        value: members.length,
        member_server_ids: type === 'group_resolved' ? [] : members,
        group_total: members.length,
      }),
    of: (type: string, ids: readonly string[]) =>
      ids.map(id =>
        event(own, id, type, { rule_id: 'agent_down', series_key: `agent:${id}`, severity: 'critical', value: 90 }),
      ),
  })
  /** Gives a server an agent. */
  const withAgent = async (own: Tenant, id: string, state = 'active'): Promise<string> => {
    const agentId = crypto.randomUUID()
    await hub.hub.database
      .client`insert into monitoring_agents (id, company_id, server_id, machine_id, hostname, state, token_hash)
      values (${agentId}, ${own.companyId}, ${id}, ${agentId}, 'h', ${state}, ${agentId})`
    return id
  }
  const monitored = async (own: Tenant, body: Json): Promise<string> => withAgent(own, await server(own, body))
  /** A company whose incidents have so many servers at least. */
  const companyOf = async (min: number | null): Promise<Tenant> => {
    const own = await quietTenant()
    await own.call('PATCH', '/monitoring/settings', { group_down_min: min })
    await webhook(own)
    return own
  }
  const told = () => hooks.map(hook => hook.body.type)
  const overdue = async (own: Tenant) => {
    await hub.hub.database
      .client`update notification_outbox set due_at = now() - interval '1 second' where company_id = ${own.companyId}`
    await Promise.all([tellLeftOver(hub.hub), tellLeftOver(hub.hub)])
    await idle()
  }

  test('[NTF-004] servers whose loss came before the incident in the same batch have no message of their own', async () => {
    const own = await quietTenant()
    const members = [await server(own), await server(own)]
    await webhook(own)
    const { group, of } = incident(own, members)
    await send(...of('agent.down', members), group('group_down'))
    await idle()
    expect(told()).toEqual(['group_down'])
  })

  test('[NTF-004] the loss of a server in a datacenter waits for the incident, whose message is then the only one', async () => {
    const own = await companyOf(2)
    const members = [await monitored(own, { datacenter: 'd' }), await monitored(own, { datacenter: 'd' })]
    const { group, of } = incident(own, members)
    for (const id of members) await send(...of('agent.down', [id]))
    await idle()
    expect(told()).toEqual([])
    await send(group('group_down'))
    await send(...of('agent.up', members.slice(0, 1)), group('group_resolved'))
    await overdue(own)
    expect(told().sort()).toEqual(['group_down', 'group_resolved'])
  })

  test('[NTF-006] a loss that no incident claims is told once when it has waited, at once when the server is back, never when it was closed', async () => {
    const own = await companyOf(1)
    const [lost, back, closed] = [
      await monitored(own, { datacenter: 'd' }),
      await monitored(own, { subnet_id: 's' }),
      await monitored(own, { subnet_id: 's' }),
    ]
    const { of } = incident(own, [])
    await send(...of('agent.down', [lost, back, closed]))
    await send(...of('agent.up', [back]))
    await idle()
    expect(told().sort()).toEqual(['agent.down', 'agent.up'])
    expect(hooks.every(hook => hook.body.data.alert.server.id === back)).toBe(true)
    const [open] = (await own.call('GET', `/monitoring/alerts?server_id=${closed}`)).body.data
    await own.call('POST', `/monitoring/alerts/${open.id}/close`)
    hooks.length = 0
    await overdue(own)
    expect(hooks.map(hook => [hook.body.type, hook.body.data.alert.server.id])).toEqual([['agent.down', lost]])
  })

  /** Whether the loss of the first server is told at once. */
  const isToldAtOnce = async (own: Tenant, id: string): Promise<boolean> => {
    hooks.length = 0
    await send(...incident(own, []).of('agent.down', [id]))
    await idle()
    return told().length === 1
  }

  test('[GRP-007] [NTF-006] a loss is told at once where too few servers have an agent for an incident', async () => {
    const own = await companyOf(3)
    const servers = async (body: Json, states: readonly (string | null)[]): Promise<string> => {
      const ids: string[] = []
      for (const state of states) {
        const id = await server(own, body)
        ids.push(state === null ? id : await withAgent(own, id, state))
      }
      return ids[0] ?? ''
    }
    const three = ['active', 'pending', 'active']
    expect(await isToldAtOnce(own, await servers({ datacenter: 'two' }, ['active', 'active']))).toBe(true)
    expect(await isToldAtOnce(own, await servers({ datacenter: 'three' }, three))).toBe(false)
    expect(await isToldAtOnce(own, await servers({ subnet_id: 'three' }, three))).toBe(false)
    expect(await isToldAtOnce(own, await servers({ datacenter: 'bare' }, ['active', 'active', null]))).toBe(true)
    expect(await isToldAtOnce(own, await servers({ datacenter: 'left' }, ['active', 'active', 'revoked']))).toBe(true)
    expect(await isToldAtOnce(own, await servers({}, three))).toBe(true)
    // One of the two groups is enough.
    expect(await isToldAtOnce(own, await servers({ datacenter: 'lonely', subnet_id: 'three' }, ['active']))).toBe(false)
  })

  test('[GRP-003] [GRP-007] without a setting an incident has five servers, of one company', async () => {
    const [own, other] = [await companyOf(null), await companyOf(null)]
    const ids: string[] = []
    for (let at = 0; at < 4; at++) ids.push(await monitored(own, { datacenter: 'd' }))
    for (let at = 0; at < 5; at++) await monitored(other, { datacenter: 'd' })
    expect(await isToldAtOnce(own, ids[0] ?? '')).toBe(true)
    await monitored(own, { datacenter: 'd' })
    expect(await isToldAtOnce(own, ids[1] ?? '')).toBe(false)
  })
})
