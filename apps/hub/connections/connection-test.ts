// Tests of a connection. The hub connects, or asks for the path; of a connection that an agent probes it can also tell
// what the agent saw last.
import type { Unchecked } from '../../../core/json-object.ts'
import { findCheck } from '../checks/check-list.ts'
import { latestResult } from '../checks/latest-check-results.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { NoConnection, openConnection } from '../platform/open-connection.ts'
import { callAddress, refuseTarget, resolveTarget } from '../platform/outbound-guard.ts'
import type { Editor } from '../resources/editor.ts'
import { RunFailed } from '../resources/runs.ts'
import { wayOutOf } from '../way-out/forward-proxy.ts'
import { connectionKind } from './connection.ts'
import { type Connection, isHttp } from './connection-fields.ts'
import { noteResult } from './connection-state.ts'
import { hostOfTarget, probeTarget } from './probe-check.ts'

export const testers = ['hub', 'agent'] as const
type Tester = (typeof testers)[number]
type TestError = 'refused' | 'timeout' | 'dns' | 'tls' | 'status' | 'target_not_allowed'
type TestResult = {
  readonly up: boolean
  readonly seconds: number | null
  readonly status_code: number | null
  readonly resolved_address: string | null
  readonly error: TestError | null
}

const NONE: TestResult = { up: false, seconds: null, status_code: null, resolved_address: null, error: null }

/** By the company's way out, where it has one for probes. */
const wayTo = ({ hub, companyId }: Editor, host: string, address: string) =>
  wayOutOf(hub, companyId, 'probes', host, [address])

const errorOf = ({ fault }: NoConnection): TestError => (fault === 'timeout' || fault === 'tls' ? fault : 'refused')

async function connectTcp(
  editor: Editor,
  host: string,
  place: { readonly host: string; readonly port: number },
  timeoutMs: number,
): Promise<TestError | null> {
  try {
    const via = await wayTo(editor, host, place.host)
    const socket = await openConnection(place, via, performance.now() + timeoutMs)
    socket.destroy()
    return null
  } catch (error) {
    if (!(error instanceof NoConnection)) throw error
    return errorOf(error)
  }
}

/** Errors of a certificate that is not to be trusted, as the runtime names them. */
const TLS_CODES = /CERT|SSL|TLS|SIGNATURE|HOSTNAME/

const codeOf = (error: unknown): string =>
  error instanceof Error ? `${error.name} ${'code' in error ? String(error.code) : ''}` : ''

async function get(
  editor: Editor,
  target: string,
  address: string,
  connection: Connection,
): Promise<{ readonly error: TestError | null; readonly status: number | null }> {
  const timeoutMs = connection.probe_timeout_seconds * 1000
  try {
    const url = new URL(target)
    const response = await callAddress(url, address, { timeoutMs, via: await wayTo(editor, url.hostname, address) })
    await response.body?.cancel()
    const error = response.status === connection.probe_expect_status ? null : 'status'
    return { error, status: response.status }
  } catch (error) {
    if (error instanceof NoConnection) return { error: errorOf(error), status: null }
    const code = codeOf(error)
    if (/Timeout/.test(code)) return { error: 'timeout', status: null }
    return { error: TLS_CODES.test(code) ? 'tls' : 'refused', status: null }
  }
}

async function testFromHub(editor: Editor, connection: Connection, host: string): Promise<TestResult> {
  const timeoutMs = connection.probe_timeout_seconds * 1000
  const resolved = await resolveTarget(editor.hub.config, host, timeoutMs)
  if ('fault' in resolved) return { ...NONE, error: resolved.fault }
  const [address = ''] = resolved.addresses
  const startedAt = performance.now()
  const { error, status } = isHttp(connection)
    ? await get(editor, probeTarget(host, connection), address, connection)
    : { error: await connectTcp(editor, host, { host: address, port: connection.port ?? 0 }, timeoutMs), status: null }
  const seconds = Math.round(performance.now() - startedAt) / 1000
  return { up: error === null, seconds, status_code: status, resolved_address: address, error }
}

/** Who tests: as asked, else whoever probes, else the hub. */
const testerOf = (connection: Connection, asked: unknown): Tester =>
  testers.find(each => each === asked) ?? (connection.probe_by === 'agent' ? 'agent' : 'hub')

/** Throws 422 for a test that cannot be made, such as of a target that the hub may not connect to. */
export async function refuseTest(editor: Editor, connection: Connection, asked: unknown): Promise<void> {
  if (testerOf(connection, asked) === 'agent') {
    if (connection.check_id === null) throw invalidField('by', 'probe_none')
    return
  }
  if (connection.protocol === 'udp') throw invalidField('protocol', 'probe_udp')
  if (connection.port === null) throw invalidField('port', 'required')
  const { config, database } = editor.hub
  const host = await inTransaction(database.db, tx => hostOfTarget(tx, editor, connection))
  const resolved = await resolveTarget(config, host)
  // A name that does not resolve is a result of the test.
  if ('fault' in resolved && resolved.fault === 'target_not_allowed') await refuseTarget(config, 'target', host)
}

async function testByHub(editor: Editor, connection: Connection): Promise<Unchecked> {
  const { db } = editor.hub.database
  const host = await inTransaction(db, tx => hostOfTarget(tx, editor, connection))
  const result = await testFromHub(editor, connection, host)
  const noted = { isUp: result.up, at: new Date(editor.hub.now()), isOfHub: true }
  await inTransaction(db, tx => noteResult(tx, connectionKind.info, connection, noted))
  return { by: 'hub', ...result }
}

/** Reads what the agent saw last. Throws RunFailed when nobody can say. */
export async function readAgentResult({ hub, companyId }: Editor, connection: Connection) {
  if (connection.check_id === null) throw new RunFailed('the connection has no check of an agent')
  const { check } = await findCheck(hub.database.db, companyId, connection.check_id)
  const latest = await latestResult(hub, check, connection.source_id ?? '')
  if (latest === 'unavailable') throw new RunFailed('the collector does not answer')
  const noted = latest && { isUp: latest.value === 1, at: latest.sampledAt, isOfHub: false }
  await inTransaction(hub.database.db, tx => noteResult(tx, connectionKind.info, connection, noted))
  return latest
}

async function testByAgent(editor: Editor, connection: Connection): Promise<Unchecked> {
  const latest = await readAgentResult(editor, connection)
  if (latest === null) throw new RunFailed('no result of the agent within 15 minutes')
  return { by: 'agent', ...NONE, up: latest.value === 1, sampled_at: latest.sampledAt.toISOString() }
}

export const connectionActs = {
  test: {
    work: ({
      editor,
      row,
      input,
    }: {
      readonly editor: Editor
      readonly row: Connection
      readonly input: Unchecked
    }): Promise<Unchecked> => (testerOf(row, input.by) === 'agent' ? testByAgent(editor, row) : testByHub(editor, row)),
  },
}
