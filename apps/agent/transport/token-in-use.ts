// The token in use, and its renewal: the new one takes over only when it is safely on disk (document 3 "Agent token
// overlap", "Errors"; decisions G-20, G-37).
import { fromBinary } from '@bufbuild/protobuf'
import type { Logger } from 'pino'
import { actionFor } from '../../../core/agent/response-action.ts'
import { renewalDueAtMs } from '../../../core/agent/token-renewal.ts'
import { RenewResponseSchema } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { Clock } from '../clock.ts'
import { type Identity, isAgentToken, writeIdentity } from '../state/identity.ts'
import type { StateDir } from '../state/state-dir.ts'
import type { StatusReport } from '../state/status.ts'
import type { CollectorClient } from './collector-client.ts'
import type { TaskResult } from './uplink.ts'

const HOUR_MS = 3_600_000
/** As long as a token is in memory only, a restart loses it, and the licence is spent. */
const SAVE_AGAIN_MS = 60_000
export const TOKEN_UNSAVED =
  'the state directory does not take the token, which a restart would lose: make room there and leave the agent running'

export class Credentials {
  readonly #dir: StateDir
  readonly #clock: Clock
  readonly #log: Logger
  readonly #status: StatusReport
  readonly #renewPeriodMs: number
  #identity: Identity
  #isSaved: boolean
  #isUnavailableLogged = false

  /** `isSaved` is false for an identity that could not be written yet. */
  constructor(
    parts: { dir: StateDir; clock: Clock; log: Logger; status: StatusReport; renewPeriodMs: number },
    identity: Identity,
    isSaved: boolean,
  ) {
    this.#dir = parts.dir
    this.#clock = parts.clock
    this.#log = parts.log
    this.#status = parts.status
    this.#renewPeriodMs = parts.renewPeriodMs
    this.#identity = identity
    this.#isSaved = isSaved
  }

  get agentId(): string {
    return this.#identity.agentId
  }

  get token(): string {
    return this.#identity.token
  }

  /** Keeps for the next start that the collector revoked this agent. */
  markRevoked(): void {
    this.#identity = { ...this.#identity, isRevoked: true }
    this.#isSaved = this.#save(this.#identity)
    if (this.#isSaved) this.#status.warn('token', [])
  }

  /** Puts a token on the disk that is in memory only; nothing where it is there already. */
  keep(): void {
    if (this.#isSaved) return
    this.#isSaved = this.#save(this.#identity)
    if (this.#isSaved) this.#status.warn('token', [])
  }

  /** Renews the token when it is due; else returns when to check again. */
  async renewWhenDue(client: CollectorClient): Promise<TaskResult> {
    this.keep()
    if (!this.#isSaved) return this.#again(SAVE_AGAIN_MS)
    const { issuedAtMs, agentId, token } = this.#identity
    const waitMs = renewalDueAtMs(issuedAtMs, this.#renewPeriodMs, agentId) - this.#clock.now()
    if (waitMs > 0) return this.#again(Math.min(waitMs, HOUR_MS))
    const reply = await client.call({ method: 'POST', path: '/credentials/renew', token })
    const action = actionFor('renew', reply)
    if (action !== 'success') {
      if (action === 'hourly') this.#logUnavailable()
      return { action, reply, nextInMs: HOUR_MS }
    }
    this.#isUnavailableLogged = false
    return { action, reply, nextInMs: this.#adopt(reply.body) ? 0 : HOUR_MS }
  }

  /**
   * Whether the new token is on disk, and so in use. If not, the agent continues with the old one during the overlap.
   */
  #adopt(body: Uint8Array): boolean {
    let token: string
    try {
      token = fromBinary(RenewResponseSchema, body).agentToken
    } catch {
      token = ''
    }
    if (!isAgentToken(token)) {
      this.#log.error(
        'the answer to a renewal holds no token of an agent: the one in use stays, renewing again in an hour',
      )
      return false
    }
    const renewed: Identity = { ...this.#identity, token, issuedAtMs: this.#clock.now() }
    if (!this.#save(renewed)) return false
    this.#identity = renewed
    this.#log.info('token renewed')
    return true
  }

  #save(identity: Identity): boolean {
    try {
      writeIdentity(this.#dir, identity)
      return true
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      this.#log.error({ cause }, 'cannot store the token: the one in use stays, trying again later')
      return false
    }
  }

  #logUnavailable(): void {
    if (!this.#isUnavailableLogged) this.#log.warn('the collector does not renew tokens now: trying every hour')
    this.#isUnavailableLogged = true
  }

  #again(nextInMs: number): TaskResult {
    return { action: 'success', reply: null, nextInMs }
  }
}
