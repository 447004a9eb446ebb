// The error table of document 3 as a decision, row by row, and how error bodies and Retry-After are read.
import { expect, test } from 'bun:test'
import {
  type Action,
  actionFor,
  type Call,
  isFromCollector,
  parseErrorBody,
  parseRetryAfter,
} from '../../core/agent/response-action.ts'

const CALLS: readonly Call[] = ['enroll', 'metrics', 'config', 'inventory', 'renew', 'update']

const actionOf = (call: Call, status: number, code: string | null, isOfCollector = true): Action =>
  actionFor(call, { kind: 'answer', status, code, retryAfterMs: null, isOfCollector })

const f = (call: Call, status: number, code: string | null, expected: Action) =>
  expect(`${call} ${status} ${code}: ${actionOf(call, status, code)}`).toBe(`${call} ${status} ${code}: ${expected}`)

test('[AGT-038 AGT-023] 200, 202 and 204 are successes, 304 leaves the config', () => {
  for (const call of CALLS) for (const status of [200, 202, 204]) f(call, status, null, 'success')
  f('config', 304, null, 'unchanged')
})

test('[AGT-039 AGT-048] 400 and 422 give a body up', () => {
  for (const call of ['metrics', 'inventory'] as const) {
    f(call, 400, 'bad_request', 'drop')
    f(call, 422, 'invalid_series', 'drop')
  }
})

test('[AGT-040 AGT-043] 401 stops sending; 403 ends the agent only when the code is agent_revoked', () => {
  for (const call of ['metrics', 'config', 'inventory', 'renew', 'update'] as const) {
    f(call, 401, 'unauthorized', 'unauthorized')
    f(call, 403, 'agent_revoked', 'revoked')
    f(call, 403, null, 'back_off')
    f(call, 403, 'forbidden', 'back_off')
  }
})

test('[AGT-044 AGT-047] refusals of an enrollment are reported', () => {
  f('enroll', 409, 'already_enrolled', 'report')
  f('enroll', 409, 'token_used', 'report')
  f('enroll', 422, 'binding_failed', 'report')
  f('enroll', 422, 'quota_exceeded', 'report')
  f('enroll', 401, 'invalid_token', 'report')
  f('enroll', 401, 'token_expired', 'report')
  f('enroll', 400, 'bad_request', 'report')
})

test('[AGT-045] 413 splits a batch, and drops anything else', () => {
  f('metrics', 413, 'too_large', 'split')
  f('inventory', 413, 'too_large', 'drop')
})

test('[AGT-049] 426 keeps the work of every call', () => {
  for (const call of CALLS) f(call, 426, 'upgrade_required', 'upgrade')
})

test('[AGT-051 AGT-052] 429 and 5xx keep the work', () => {
  for (const call of CALLS) {
    f(call, 429, 'rate_limited', 'back_off')
    for (const status of [500, 502, 504]) f(call, status, 'server_error', 'back_off')
    if (call !== 'renew') f(call, 503, 'unavailable', 'back_off')
  }
})

test('[AGT-037] a renewal that meets 503 waits an hour', () => {
  f('renew', 503, 'unavailable', 'hourly')
})

test('[AGT-053] no answer keeps the work', () => {
  for (const call of CALLS) expect(actionFor(call, { kind: 'no_answer', cause: 'timeout' })).toBe('back_off')
})

test('a status outside the table loses nothing', () => {
  for (const call of CALLS)
    for (const status of [301, 302, 307, 404, 405, 408, 418, 520]) f(call, status, null, 'back_off')
  f('metrics', 304, null, 'back_off')
})

test('an answer that is not the collector’s loses nothing, whatever its status; a proxy’s 413 splits a batch', () => {
  for (const call of CALLS)
    for (const status of [200, 202, 204, 400, 401, 403, 409, 413, 422, 426, 503]) {
      const expected = status === 413 && call === 'metrics' ? 'split' : 'back_off'
      expect([call, status, actionOf(call, status, null, false)]).toEqual([call, status, expected])
    }
})

test('the collector answers with protobuf, JSON or nothing; a web page is never its answer, and other text takes nothing', () => {
  const g = (status: number, type: string | null, body: string, expected: boolean) =>
    expect([status, type, body, isFromCollector(status, type, Buffer.from(body))]).toEqual([
      status,
      type,
      body,
      expected,
    ])
  for (const type of ['text/html', 'Text/HTML; charset=utf-8']) {
    for (const status of [200, 400, 422, 503]) g(status, type, '<html>', false)
    g(400, type, '', true)
    g(200, type, '', false)
  }
  g(200, 'application/x-protobuf', 'OK', true)
  for (const type of [null, 'text/plain', 'application/json; charset=utf-8', 'application/xml']) {
    g(200, type, '{"ok":true}', true)
    g(202, type, '', true)
    g(400, type, 'bad', true)
  }
  for (const type of ['text/plain;charset=utf-8', 'application/json', 'application/xml']) g(200, type, 'OK', false)
})

test('Retry-After is read in seconds and as a date', () => {
  const nowMs = Date.UTC(2026, 0, 1)
  const g = (header: string | null, expected: number | null) =>
    expect(parseRetryAfter(header, null, nowMs)).toBe(expected)
  g('30', 30_000)
  g(' 7 ', 7_000)
  g('0', 0)
  g('Thu, 01 Jan 2026 00:01:00 GMT', 60_000)
  g('Wed, 31 Dec 2025 00:00:00 GMT', 0)
  for (const unreadable of ['', '-1', '1.5', 'soon', '99999999999', 'Xxx, nonsense']) g(unreadable, null)
  g(null, null)
  // The clock of this host is years behind that of the server.
  const date = 'Thu, 01 Jan 2026 00:00:30 GMT'
  expect(parseRetryAfter('Thu, 01 Jan 2026 00:01:00 GMT', date, 0)).toBe(30_000)
})

test('an error body is read when it is one', () => {
  const g = (text: string, code: string | null, message: string | null) =>
    expect(parseErrorBody(text)).toEqual({ code, message })
  g('{"error":{"code":"too_large","message":"over 1 MiB"}}', 'too_large', 'over 1 MiB')
  g('{"error":{"code":7}}', null, null)
  g('{"error":"x"}', null, null)
  for (const text of ['', 'null', '[]', '<html>', '{"error":null}']) g(text, null, null)
  expect(parseErrorBody(JSON.stringify({ error: { message: 'x'.repeat(1000) } })).message?.length).toBe(300)
})
