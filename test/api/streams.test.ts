// Event streams: how long one goes on, and how many are open at once.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { logIn, newPerson } from '../web/visitor.ts'
import { type Tenant, TestHub } from './hub-harness.ts'

const PER_TOKEN = 3
const PER_COMPANY = 5

let hub: TestHub
beforeAll(async () => {
  hub = await TestHub.start({
    'streams.heartbeat': '50ms',
    'streams.per_token': PER_TOKEN,
    'streams.per_company': PER_COMPANY,
    'rate.session_per_minute': 1_000,
  })
})
const open: AbortController[] = []
afterEach(() => {
  for (const control of open.splice(0)) control.abort()
})
afterAll(() => hub.stop())

class Stream {
  private text = ''
  private readonly chunks: AsyncIterator<Uint8Array>
  constructor(
    readonly response: Response,
    readonly control: AbortController,
  ) {
    this.chunks = response.body![Symbol.asyncIterator]()
  }

  /** Resolves once the text has come; rejects when the stream ends before. */
  async until(text: string): Promise<void> {
    while (!this.text.includes(text)) {
      const { done, value } = await this.chunks.next()
      if (done) throw new Error(`the stream ended before ${text}`)
      this.text += new TextDecoder().decode(value)
    }
    this.text = ''
  }

  /** Resolves once the hub has ended the stream. */
  async ended(): Promise<void> {
    while (!(await this.chunks.next()).done);
  }
}

async function listen(headers: Record<string, string>): Promise<Stream> {
  const control = new AbortController()
  open.push(control)
  const response = await fetch(`${hub.url}/api/v1/notifications/stream`, { headers, signal: control.signal })
  return new Stream(response, control)
}

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

describe('a stream ends at the next heartbeat once its caller may no longer listen', () => {
  const endsAfter = async (
    headers: (own: Tenant) => Promise<Record<string, string>>,
    act: (own: Tenant) => Promise<unknown>,
  ) => {
    const own = await hub.tenant()
    const stream = await listen(await headers(own))
    expect(stream.response.status).toBe(200)
    // It goes on while nothing has changed.
    await stream.until(': heartbeat')
    await stream.until(': heartbeat')
    await act(own)
    await stream.ended()
  }
  const ofToken = async (own: Tenant) => bearer(own.token)
  const sql = () => hub.hub.database.client

  test('its token is revoked', () =>
    endsAfter(ofToken, own => sql()`update api_tokens set revoked_at = now() where user_id = ${own.userId}`.execute()))
  test('its token has expired', () =>
    endsAfter(ofToken, own => sql()`update api_tokens set expires_at = now() where user_id = ${own.userId}`.execute()))
  test('its token may no longer be used from there', () =>
    endsAfter(ofToken, own =>
      sql()`update api_tokens set ip_ranges = '{192.0.2.0/24}' where user_id = ${own.userId}`.execute(),
    ))
  test('its user is disabled', () =>
    endsAfter(ofToken, own => sql()`update users set disabled_at = now() where id = ${own.userId}`.execute()))
  test('its company is deleted', () =>
    endsAfter(ofToken, own => sql()`update companies set deleted_at = now() where id = ${own.companyId}`.execute()))
  test('its session has ended', () =>
    endsAfter(
      async own => ({ cookie: (await logIn(hub.url, (await newPerson(hub, own.companyId)).email)).cookie }),
      own =>
        sql()`delete from sessions where user_id in (select id from users where company_id = ${own.companyId})`.execute(),
    ))
  test('its company is no longer granted', async () => {
    const parent = await hub.tenant()
    const child = await hub.tenant(undefined, { parentId: parent.companyId })
    await sql()`insert into user_company_grants (user_id, company_id) values (${parent.userId}, ${child.companyId})`
    const stream = await listen({ ...bearer(parent.token), 'X-Company-Id': child.companyId })
    await stream.until(': heartbeat')
    await sql()`delete from user_company_grants where user_id = ${parent.userId}`
    await stream.ended()
  })
})

describe('streams are bounded', () => {
  test('for a token and for a company: 429 beyond it, and room again when one leaves', async () => {
    const own = await hub.tenant()
    const other = await hub.token(own.userId)
    const mine: Stream[] = []
    for (let count = 0; count < PER_TOKEN; count++) mine.push(await listen(bearer(own.token)))
    const refused = await listen(bearer(own.token))
    expect(refused.response.status).toBe(429)
    expect(Number(refused.response.headers.get('retry-after'))).toBeGreaterThan(0)
    for (let count = PER_TOKEN; count < PER_COMPANY; count++)
      expect((await listen(bearer(other.token))).response.status).toBe(200)
    expect((await listen(bearer(other.token))).response.status).toBe(429)
    // Another company is not concerned.
    expect((await listen(bearer((await hub.tenant()).token))).response.status).toBe(200)
    mine[0]?.control.abort()
    for (;;) {
      const { response } = await listen(bearer(other.token))
      if (response.status === 200) break
      expect(response.status).toBe(429)
    }
  })
})
