// A command's call on the state of a data directory: done here while no matcher runs on it, else by that matcher.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../../core/json-object.ts'
import { STATE_FILE } from '../state/state-database.ts'
import type { MatcherState } from '../state/state-types.ts'
import { type ControlCall, type ControlResult, perform } from './control-calls.ts'
import { CONTROL_FILE } from './control-server.ts'

const CALL_TIMEOUT_MS = 10 * 60_000

export const hasState = (dataDir: string): boolean => existsSync(join(dataDir, STATE_FILE))

/** `open` answers null when a matcher has the directory. */
export async function runCall(
  dataDir: string,
  call: ControlCall,
  open: (dataDir: string) => MatcherState | null,
): Promise<ControlResult> {
  if (!hasState(dataDir)) throw new Error(`there is no state of a matcher in ${dataDir}`)
  const state = open(dataDir)
  if (state === null) return askRunning(dataDir, call)
  try {
    return await perform(state, call)
  } finally {
    await state.close()
  }
}

async function askRunning(dataDir: string, call: ControlCall): Promise<ControlResult> {
  const { url, token } = controlOf(dataDir)
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(call),
    signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
  }).catch(cause => {
    throw new Error('the matcher that runs on this data directory does not answer', { cause })
  })
  const body: unknown = await response.json()
  if (!isObject(body)) throw new Error('the matcher that runs on this data directory answers something else')
  if (!response.ok) throw new Error(typeof body.error === 'string' ? body.error : 'the command failed')
  return body
}

function controlOf(dataDir: string): { readonly url: string; readonly token: string } {
  let value: unknown = null
  try {
    value = JSON.parse(readFileSync(join(dataDir, CONTROL_FILE), 'utf8'))
  } catch (cause) {
    throw new Error('a matcher runs on this data directory, and cannot be reached as this user', { cause })
  }
  if (!isObject(value) || typeof value.url !== 'string' || typeof value.token !== 'string')
    throw new Error('a matcher runs on this data directory, and does not say how it is reached')
  return { url: value.url, token: value.token }
}
