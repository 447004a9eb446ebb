import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { createServer, type Server, type Socket } from 'node:net'
import { tellEndedSuppressions } from '../../apps/hub/notifications/suppression.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

type Hook = { headers: Headers; text: string; body: Json }
let hub: TestHub
let collector: Awaited<ReturnType<TestHub['collector']>>
let receiver: ReturnType<typeof Bun.serve>
let mailServer: Server
const hooks: Hook[] = []
const mails: string[] = []
let hookStatus = 200

/** As much of SMTP as a sender needs. */
function receiveMail(socket: Socket): void {
  let text = ''
  let isData = false
  socket.write('220 test\r\n')
  socket.on('data', chunk => {
    text += chunk.toString()
    for (let end = text.indexOf('\r\n'); !isData && end >= 0; end = text.indexOf('\r\n')) {
      const line = text.slice(0, end)
      text = text.slice(end + 2)
      if (/^DATA/i.test(line)) isData = true
      socket.write(isData ? '354 go\r\n' : /^QUIT/i.test(line) ? '221 bye\r\n' : '250 ok\r\n')
    }
    if (!isData || !text.endsWith('\r\n.\r\n')) return
    mails.push(text)
    text = ''
    isData = false
    socket.write('250 kept\r\n')
  })
  socket.on('error', () => {})
}

beforeAll(async () => {
  receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const text = await request.text()
      hooks.push({ headers: request.headers, text, body: JSON.parse(text) })
      return new Response('', { status: hookStatus })
    },
  })
  mailServer = createServer(receiveMail)
  await new Promise<void>(resolve => mailServer.listen(0, '127.0.0.1', resolve))
  const address = mailServer.address()
  const port = typeof address === 'object' && address ? address.port : 0
  hub = await TestHub.start({
    'webhooks.allow_private': true,
    'smtp.url': `smtp://127.0.0.1:${port}`,
    'mail.from': 'hub@example.test',
    public_url: 'https://hub.example.test',
  })
  collector = await hub.collector()
})
afterAll(async () => {
  await receiver.stop(true)
  mailServer.close()
  await hub.stop()
})

let seqs = 0
let names = 0
const event = (by: Tenant, server_id: string, type: string, more: Json = {}): Json => ({
  event_id: crypto.randomUUID(),
  type,
  seq: ++seqs,
  occurred_at: new Date().toISOString(),
  company_id: by.companyId,
  server_id,
  rule_id: '11111111-1111-4111-8111-111111111111',
  rule_version: 1,
  series_key: 'cpu_usage_percent',
  severity: 'warning',
  value: 95,
  threshold: 90,
  suppressed: false,
  suppress_reason: null,
  group_key: null,
  labels: {},
  reason: 'recovered',
  ...more,
})
const send = async (...events: Json[]) => (await collector.call('POST', '/events', { events })).body.data
const server = async (by: Tenant, body: Json = {}): Promise<string> =>
  (await by.call('POST', '/servers', { name: `web-${++names}`, ...body })).body.data.id
const bell = async (by: Omit<Tenant, 'companyId'>): Promise<Json[]> =>
  (await by.call('GET', '/notifications')).body.data
const types = async (by: Omit<Tenant, 'companyId'>) => (await bell(by)).map(item => item.type).reverse()
/** No job of this hub waits or runs: everything that was to be told is told. */
const idle = () =>
  until('every job is done', async () => {
    const [row] = await hub.hub.database
      .client`select count(*)::int as n from pgboss.job where state <= 'active' and name like 'notifications.%'`
    return row?.n === 0
  })

describe('who is told of what', () => {
  test('[NTF-001] [NTF-002] [NTF-003] [NTF-007] [HAL-036] opened, reminder and resolved ring the bell', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await send(event(own, id, 'alert.opened'))
    await send(event(own, id, 'alert.reminder'))
    await send(event(own, id, 'alert.resolved'))
    await idle()
    expect(await types(own)).toEqual(['alert.opened', 'alert.reminder', 'alert.resolved'])
    const [last] = await bell(own)
    expect(last).toMatchObject({ title: expect.stringContaining('Resolved'), read_at: null })
    expect((await own.call('GET', '/notifications/unread-count')).body.data.unread).toBe(3)
    await own.call('POST', `/notifications/${last.id}/read`)
    expect((await own.call('GET', '/notifications/unread-count')).body.data.unread).toBe(2)
  })

  test('[NTF-004] [NTF-008] group_down rings, its children and group_update do not', async () => {
    const own = await hub.tenant()
    const [a, b] = [await server(own), await server(own)]
    const group = (type: string) =>
      event(own, a, type, {
        rule_id: 'group_down',
        series_key: 'subnet:n',
        group_key: 'subnet:n',
        severity: 'critical',
        member_server_ids: [a, b],
        group_total: 2,
      })
    const down = (id: string) =>
      event(own, id, 'agent.down', {
        rule_id: 'agent_down',
        series_key: `agent:${crypto.randomUUID()}`,
        severity: 'critical',
      })
    await send(group('group_down'), down(a), down(b), group('group_update'))
    await idle()
    expect(await types(own)).toEqual(['group_down'])
  })

  test('[NTF-005] [NTF-009] suppressed, repeated and old events ring nobody', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const opened = event(own, id, 'alert.opened')
    await send(
      event(own, id, 'alert.opened', { series_key: 'cpu_load1', suppressed: true, suppress_reason: 'silence' }),
    )
    await send(opened)
    await send(opened)
    await send({ ...opened, event_id: crypto.randomUUID() })
    await send(event(own, id, 'alert.opened'))
    await idle()
    expect(await types(own)).toEqual(['alert.opened'])
  })

  test('[NTF-010] an acknowledged alert still reminds', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await send(event(own, id, 'alert.opened'))
    const [alert] = (await own.call('GET', '/monitoring/alerts')).body.data
    await own.call('POST', `/monitoring/alerts/${alert.id}/acknowledge`)
    await send(event(own, id, 'alert.reminder'))
    await idle()
    expect(await types(own)).toEqual(['alert.opened', 'alert.reminder'])
  })

  test('[NTF-006] preferences and permissions decide who is told, in their language', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const quiet = await hub.user(own.companyId, ['monitoring.view'])
    const blind = await hub.user(own.companyId, ['servers.view'])
    const vietnamese = await hub.user(own.companyId, ['monitoring.view'])
    await quiet.call('PUT', '/notifications/preferences', { bell: { min_severity: 'critical' } })
    await vietnamese.call('PATCH', '/me', { language: 'vi' })
    await send(event(own, id, 'alert.opened'))
    await send(event(own, id, 'alert.opened', { series_key: 'cpu_load1', severity: 'critical' }))
    await idle()
    expect(await types(own)).toHaveLength(2)
    expect(await types(quiet)).toHaveLength(1)
    expect(await types(blind)).toEqual([])
    expect((await bell(vietnamese))[0].title).toContain('trên')
    expect((await quiet.call('GET', '/notifications/preferences')).body.data).toEqual({
      bell: { min_severity: 'critical' },
      email: { min_severity: 'warning' },
      push: { min_severity: 'critical' },
    })
  })

  test('[NTF-006] a company changes its texts and gets the defaults back', async () => {
    const own = await hub.tenant()
    const id = await server(own, { name: 'named-server' })
    const text = { language: 'en', title: 'Look at {server}!', body: '{value} over {threshold} {link}' }
    await own.call('PUT', '/notifications/templates/alert.opened', text)
    await send(event(own, id, 'alert.opened'))
    await idle()
    const [first] = await bell(own)
    expect(first.title).toBe('Look at named-server!')
    expect(first.body).toMatch(/^95 over 90 https:\/\/hub\.example\.test\/alerts\//)
    await own.call('DELETE', '/notifications/templates/alert.opened')
    const list = (await own.call('GET', '/notifications/templates')).body.data
    expect(list.every((item: Json) => item.is_default)).toBe(true)
  })

  test('[NTF-007] the stream tells of a notification as it comes', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const leave = new AbortController()
    const response = await fetch(`${hub.url}/api/v1/notifications/stream`, {
      headers: { Authorization: `Bearer ${own.token}` },
      signal: leave.signal,
    })
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    const reader = response.body!.getReader()
    let text = new TextDecoder().decode((await reader.read()).value)
    await send(event(own, id, 'alert.opened'))
    while (!text.includes('event: notification')) text += new TextDecoder().decode((await reader.read()).value)
    expect(JSON.parse(/data: (.*)/.exec(text)![1]!)).toMatchObject({ type: 'alert.opened', read_at: null })
    leave.abort()
  })
})

describe('suppression that ends', () => {
  test('an alert that opened suppressed and is still active is told once, when the suppression ends', async () => {
    const own = await hub.tenant()
    const id = await server(own, { status: 'maintenance' })
    await send(event(own, id, 'alert.opened', { suppressed: true, suppress_reason: 'maintenance' }))
    await tellEndedSuppressions(hub.hub)
    await idle()
    expect(await types(own)).toEqual([])
    await own.call('PUT', `/servers/${id}/status`, { status: 'active' })
    await tellEndedSuppressions(hub.hub)
    await tellEndedSuppressions(hub.hub)
    await idle()
    expect(await types(own)).toEqual(['alert.opened'])
    expect((await own.call('GET', '/monitoring/alerts')).body.data[0].suppressed).toBe(false)
  })

  test('a recovery inside a silence is told when the silence ends, if the alert was told', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await send(event(own, id, 'alert.opened'))
    const silence = { scope: { all: true }, ends_at: new Date(Date.now() + 3_600_000).toISOString(), reason: 'x' }
    const { data } = (await own.call('POST', '/monitoring/silences', silence)).body
    await send(event(own, id, 'alert.resolved', { suppressed: true, suppress_reason: 'silence' }))
    await tellEndedSuppressions(hub.hub)
    await idle()
    expect(await types(own)).toEqual(['alert.opened'])
    await own.call('POST', `/monitoring/silences/${data.id}/end`)
    await tellEndedSuppressions(hub.hub)
    await idle()
    expect(await types(own)).toEqual(['alert.opened', 'alert.resolved'])
  })
})

describe('webhooks and mail', () => {
  const webhook = async (by: Tenant, more: Json = {}) =>
    (await by.call('POST', '/webhooks', { name: 'hook', url: `http://127.0.0.1:${receiver.port}/x`, ...more })).body

  test('[NTF-006] [NTF-008] a webhook gets the alert, signed with its secret', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const { data, secret } = await webhook(own, { events: ['alert.opened'] })
    expect(secret).toMatch(/^whs_[0-9A-Za-z]{40}$/)
    hooks.length = 0
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

  test('a failing webhook is tried six times with the same delivery id, then the delivery has failed', async () => {
    const own = await hub.tenant()
    const { data } = await webhook(own)
    hooks.length = 0
    hookStatus = 500
    const { body } = await own.call('POST', `/webhooks/${data.id}/test`)
    const failed = await until('the delivery failed', async () => {
      const [delivery] = (await own.call('GET', `/webhooks/${data.id}/deliveries`)).body.data
      return delivery.state === 'failed' ? delivery : null
    })
    hookStatus = 200
    expect(failed).toMatchObject({ id: body.data.delivery_id, tries: 6, response_code: 500 })
    expect(new Set(hooks.map(hook => hook.headers.get('x-hub-delivery')))).toEqual(new Set([failed.id]))
    expect((await own.call('GET', `/webhooks/${data.id}`)).body.data).toMatchObject({
      enabled: true,
      failures_in_a_row: 6,
    })
    await own.call('POST', `/webhooks/${data.id}/deliveries/${failed.id}/redeliver`)
    await until(
      'it is delivered',
      async () => (await own.call('GET', `/webhooks/${data.id}`)).body.data.failures_in_a_row === 0,
    )
  })

  test('a webhook is disabled after fifty failures in a row', async () => {
    const own = await hub.tenant()
    const { data } = await webhook(own)
    await hub.hub.database.client`update webhooks set failures_in_a_row = 49 where id = ${data.id}`
    hookStatus = 500
    await own.call('POST', `/webhooks/${data.id}/test`)
    const off = await until('it is disabled', async () => {
      const shown = (await own.call('GET', `/webhooks/${data.id}`)).body.data
      return shown.enabled ? null : shown
    })
    hookStatus = 200
    expect(off.disabled_reason).toContain('too many')
  })

  test('private addresses and plain http are refused unless configured', async () => {
    const strict = await TestHub.start()
    try {
      const own = await strict.tenant()
      for (const url of [
        'http://example.com/',
        'https://127.0.0.1/',
        'https://10.0.0.1/',
        'https://[::1]/',
        'https://169.254.169.254/',
        'ftp://x/',
        'nonsense',
      ])
        expect((await own.call('POST', '/webhooks', { name: 'x', url })).body.errors.url).toHaveLength(1)
    } finally {
      await strict.running.stop()
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
    mails.length = 0
    await send(event(own, inside, 'alert.opened'), event(own, outside, 'alert.opened'))
    await idle()
    expect(mails.map(mail => /^To: (.*)$/m.exec(mail)?.[1]?.trim())).toEqual(['ops@example.test'])
    await send(event(own, outside, 'alert.opened', { series_key: 'cpu_load1', severity: 'critical' }))
    await idle()
    expect(mails.at(-1)).toContain(`To: ${own.email}`)
  })
})
