// The check of a connection that an agent probes: the connection owns it. It is made, changed and deleted with
// the connection, and through nothing else.
import { changeCheck, insertCheck, removeCheck } from '../checks/checks.ts'
import { lockCompany, type Tx } from '../platform/db/transaction.ts'
import { ApiError, invalidField } from '../platform/http/api-error.ts'
import type { Editor } from '../resources/editor.ts'
import { type Connection, isHttp, NAME_MAX } from './connection-fields.ts'
import { targetOf } from './node.ts'
import { addressOf } from './node-lookup.ts'

/** What is to be looked at, whoever looks. */
type Probed = Pick<Connection, 'protocol' | 'port' | 'path'>

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** `host:port`, or the URL for http and https. */
export function probeTarget(host: string, probed: Probed): string {
  const { protocol, port, path } = probed
  const hostPort = `${bracketed(host)}:${port}`
  return isHttp(probed) ? `${protocol}://${hostPort}${path ?? '/'}` : hostPort
}

/** The address to look at. Throws 422 for a target that has none, such as a service. */
export async function hostOfTarget(tx: Tx, editor: Editor, connection: Connection): Promise<string> {
  const reading = { kinds: editor.hub.kinds, db: tx.db, companyId: editor.companyId }
  const host = await addressOf(reading, targetOf(connection))
  if (host === null) throw invalidField('target', 'node_address')
  return host
}

const typeOf = (connection: Probed): 'http' | 'tcp' => (isHttp(connection) ? 'http' : 'tcp')

/** A check that cannot be made is a fault of the field that asks for it. */
async function asProbeFault<T>(act: Promise<T>): Promise<T> {
  try {
    return await act
  } catch (error) {
    const faults = error instanceof ApiError && error.status === 422 ? Object.entries(error.more.errors ?? {}) : []
    const own = faults.filter(([field]) => field === 'scope' || field === 'target' || field.startsWith('target.'))
    if (own.length === 0) throw error
    throw new ApiError(422, 'invalid_request', (error as ApiError).text, {
      errors: { 'probe.by': own.flatMap(([, texts]) => texts) },
    })
  }
}

async function wantedCheck(tx: Tx, editor: Editor, next: Connection) {
  const target = probeTarget(await hostOfTarget(tx, editor, next), next)
  return {
    name: next.name.slice(0, NAME_MAX),
    type: typeOf(next),
    target: isHttp(next) ? { url: target, expect_status: next.probe_expect_status } : { target },
    interval_seconds: next.probe_interval_seconds,
    timeout_seconds: next.probe_timeout_seconds,
    enabled: next.status === 'active' || next.status === 'maintenance',
  }
}

const CHECKED = [
  'name',
  'protocol',
  'port',
  'path',
  'status',
  'probe_interval_seconds',
  'probe_timeout_seconds',
  'probe_expect_status',
] as const

/** Makes the check what the connection is about to be: assigns `check_id`. Throws 422 on probe.by. */
export async function keepCheck(
  tx: Tx,
  editor: Editor,
  before: Connection | null,
  next: { -readonly [K in keyof Connection]: Connection[K] },
): Promise<void> {
  const known = before?.check_id ?? null
  const isWanted = next.probe_by === 'agent'
  if (!isWanted && known === null) {
    next.check_id = null
    return
  }
  if (known !== null && isWanted && before && CHECKED.every(name => before[name] === next[name])) return
  await lockCompany(tx, next.company_id)
  if (known !== null && isWanted && before && typeOf(before) === typeOf(next)) {
    const { type: _type, ...patch } = await wantedCheck(tx, editor, next)
    await asProbeFault(changeCheck(tx, editor, known, patch))
    return
  }
  if (known !== null) await removeCheck(tx, editor, known)
  next.check_id = null
  if (!isWanted) return
  const made = await asProbeFault(
    insertCheck(
      tx,
      editor,
      { ...(await wantedCheck(tx, editor, next)), scope: { server_ids: [next.source_id ?? ''] } },
      { managedBy: { kind: 'connection', id: next.id } },
    ),
  )
  next.check_id = made.check.id
}

/** The check goes with its connection. */
export async function removeOwnCheck(tx: Tx, editor: Editor, { check_id, company_id }: Connection): Promise<void> {
  if (check_id === null) return
  await lockCompany(tx, company_id)
  await removeCheck(tx, editor, check_id)
}
