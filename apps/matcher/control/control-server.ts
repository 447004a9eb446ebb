// How commands reach a running matcher: a listener on loopback whose address and secret stand in a file of the data
// directory that its owner alone can read.
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { urlOf } from '../../../core/config/address.ts'
import { isKnownToken } from '../../admin-api/authorize.ts'
import { ownerForFolder, replaceFile } from '../../files/replace-file.ts'
import { readBody } from '../../http/body-limits.ts'
import { listenHttp } from '../../http/http-listener.ts'
import type { HttpRequest } from '../../http/http-request.ts'
import { IDLE_SECONDS } from '../../http/idle-seconds.ts'
import type { MatcherState } from '../state/state-types.ts'
import { type ControlCall, parseCall, perform } from './control-calls.ts'

export const CONTROL_FILE = 'control.json'
const BODY_BYTES_MAX = 1024 * 1024

const refused = (status: number, message: string): Response => Response.json({ error: message }, { status })

async function callOf(request: HttpRequest): Promise<ControlCall | null> {
  const bytes = await readBody(request, BODY_BYTES_MAX)
  if (bytes instanceof Error) return null
  try {
    return parseCall(JSON.parse(new TextDecoder().decode(bytes)))
  } catch {
    return null
  }
}

type ControlServer = { stop(): Promise<void> }

export function startControl(dataDir: string, state: MatcherState, log: Logger): ControlServer {
  const token = randomBytes(32).toString('base64url')
  const path = join(dataDir, CONTROL_FILE)
  const handle = async (request: HttpRequest): Promise<Response> => {
    const presented = /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? ''
    if (!isKnownToken([token], presented)) return refused(401, 'unauthorized')
    const call = await callOf(request)
    if (call === null) return refused(400, 'this matcher does not know the command; it is of another version')
    try {
      return Response.json(await perform(state, call))
    } catch (error) {
      log.error({ err: error, command: call.kind }, 'a command failed')
      return refused(500, error instanceof Error ? error.message : 'the command failed')
    }
  }
  const listener = listenHttp({
    hostname: '127.0.0.1',
    port: 0,
    idleSeconds: IDLE_SECONDS.control,
    handle,
    refuse: ({ status, message }) => refused(status, message),
  })
  const content = { url: urlOf('http', '127.0.0.1', listener.port), token, pid: process.pid }
  replaceFile(path, `${JSON.stringify(content)}\n`, { owner: ownerForFolder(dataDir) })
  return {
    stop: async () => {
      rmSync(path, { force: true })
      await listener.stop(0)
    },
  }
}
