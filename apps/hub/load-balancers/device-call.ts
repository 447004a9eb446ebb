// One call of the interface of a load balancer, through the guard for everything that leaves the hub.
import type { AdminState } from '../../../core/load-balancing/state-names.ts'
import { parseForeignJson } from '../../../core/wire/json-depth.ts'
import { storable } from '../platform/http/json-body.ts'
import { callAddress, readBeginning, resolveTarget } from '../platform/outbound-guard.ts'
import type { Editor } from '../resources/editor.ts'
import { RunFailed } from '../resources/runs.ts'
import type { LoadBalancer } from './load-balancer.ts'

const TIMEOUT_MS = 10_000
/** Lists of a device with thousands of members. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024

type Request = { readonly method?: string; readonly body?: unknown }
/**
 * Calls a path below the management address. Null: the device has nothing there (404). Undefined: its answer is empty.
 * Throws RunFailed.
 */
export type DeviceCall = (path: string, request?: Request) => Promise<unknown>

/** What people want of a member, named as the hub has it. */
export type WantedState = {
  readonly pool: string
  readonly member: string
  /** Null for a server that has none any more. */
  readonly address: string | null
  readonly port: number
  readonly state: AdminState
}

/** What is no list is not an empty one: a device that answers nonsense for once would seem to have lost all. */
export const noList = (): RunFailed => new RunFailed('the device answered no list')

const COUNT_MAX = 2 ** 31 - 1

/** A number of connections; null where the device says nothing that can be one. */
export const countOf = (given: unknown): number | null =>
  typeof given === 'number' && Number.isInteger(given) && given >= 0 && given <= COUNT_MAX ? given : null

function headersOf({ hub }: Pick<Editor, 'hub'>, { username, password_sealed }: LoadBalancer): Record<string, string> {
  const password = password_sealed ? (hub.sealer.open(password_sealed) ?? '') : ''
  if (username === null && password === '') return { 'Content-Type': 'application/json' }
  const basic = Buffer.from(`${username ?? ''}:${password}`).toString('base64')
  return { 'Content-Type': 'application/json', Authorization: `Basic ${basic}` }
}

function parsed(body: Buffer): unknown {
  if (body.length === 0) return undefined
  try {
    return storable(parseForeignJson(body))
  } catch {
    throw new RunFailed('the device answered no JSON')
  }
}

/** The interface of a device: its name is resolved and judged once, and every call goes to that address. */
export async function callerOf(editor: Pick<Editor, 'hub'>, device: LoadBalancer): Promise<DeviceCall> {
  const base = URL.parse(device.management_url ?? '')
  const resolved = base && (await resolveTarget(editor.hub.config, base.hostname))
  if (!base || !resolved) throw new RunFailed('target_not_allowed')
  if ('fault' in resolved) throw new RunFailed(resolved.fault)
  const headers = headersOf(editor, device)
  // Joined as text: a path that begins with two slashes would be another host's name where it is resolved.
  const prefix = base.origin + base.pathname.replace(/\/+$/, '')
  return async (path, { method = 'GET', body } = {}) => {
    const response = await callAddress(new URL(prefix + path), resolved.addresses[0] ?? '', {
      method,
      headers,
      timeoutMs: TIMEOUT_MS,
      verifiesTls: device.verify_tls,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch(() => null)
    if (response === null) throw new RunFailed('the device does not answer')
    const read = await readBeginning(response, ANSWER_BYTES_MAX).catch(() => null)
    if (read === null) throw new RunFailed('the device does not answer')
    if (response.status === 404) return null
    if (!response.ok) throw new RunFailed(`the device answered ${response.status}`)
    return parsed(read)
  }
}
