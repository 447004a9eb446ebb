// The move to another collector by remote configuration (document 3 "Agent to collector"): only to a signed https
// address, only after the new collector has answered /ping and knows this agent, never for an agent that locked remote
// configuration.
import { fromBinary } from '@bufbuild/protobuf'
import { actionFor } from '../../../core/agent/response-action.ts'
import {
  moveFault,
  parseSignedAddress,
  type SeenAddress,
  type SignedAddress,
  signedAddressText,
} from '../../../core/agent/signed-address.ts'
import { limits } from '../../../core/limits.ts'
import { sha256Hex } from '../../../core/series/hash.ts'
import { PingResponseSchema } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { AgentParts } from '../agent-parts.ts'
import type { StateDir } from '../state/state-dir.ts'
import { isSigned } from '../update/signature.ts'
import type { CollectorClient, Reply } from './collector-client.ts'

const FILE = 'collector'
const SEEN_FILE = 'collector-signed'

type Move = {
  readonly url: string
  readonly signedAtMs: number
  /**
   * The address that was configured then: another one in the configuration is an operator's word, and ends the move.
   */
  readonly configuredUrl: string
}

/** The move that holds; null without one, or when the configured address is another one since. */
export function readMove(dir: StateDir, configuredUrl: string): Move | null {
  const text = dir.read(FILE)
  if (text === null) return null
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return null
  }
  const fields = new Map<string, unknown>(typeof parsed === 'object' && parsed !== null ? Object.entries(parsed) : [])
  const url = fields.get('url')
  const signedAtMs = fields.get('signed_at_ms')
  if (typeof url !== 'string' || typeof signedAtMs !== 'number') return null
  return fields.get('configured_url') === configuredUrl ? { url, signedAtMs, configuredUrl } : null
}

function writeMove(dir: StateDir, { url, signedAtMs, configuredUrl }: Move): void {
  const document = { url, signed_at_ms: signedAtMs, configured_url: configuredUrl }
  dir.write(FILE, `${JSON.stringify(document, null, 2)}\n`, true)
}

/**
 * The newest address that the operator signed and this agent was told, moved or not; null without one, and when it was
 * signed with another key. It outlives a new enrollment: what is older is played again by somebody.
 */
function readSeen(dir: StateDir, keyHash: string): SeenAddress | null {
  let fields: ReadonlyMap<string, unknown>
  try {
    const parsed: unknown = JSON.parse(dir.read(SEEN_FILE) ?? 'null')
    fields = new Map<string, unknown>(typeof parsed === 'object' && parsed !== null ? Object.entries(parsed) : [])
  } catch {
    return null
  }
  const url = fields.get('url')
  const signedAtMs = fields.get('signed_at_ms')
  const isSeen = typeof url === 'string' && typeof signedAtMs === 'number' && fields.get('key_sha256') === keyHash
  return isSeen ? { url, signedAtMs } : null
}

/** Forgets the move: what is enrolled anew begins at the configured address. */
export const forgetMove = (dir: StateDir): void => dir.remove(FILE)

/** Whether an answer to /ping is one of a collector that speaks the protocol of this agent. */
function isValidPing(reply: Reply): boolean {
  if (reply.kind !== 'answer' || reply.status !== 200) return false
  try {
    const { serverTimeMs, protoMin, protoMax } = fromBinary(PingResponseSchema, reply.body)
    return serverTimeMs > 0n && protoMin >= 1 && protoMin <= limits.protoMax && limits.protoMax <= protoMax
  } catch {
    return false
  }
}

export class CollectorMover {
  readonly #parts: AgentParts
  readonly #client: CollectorClient
  readonly #token: () => string
  readonly #configuredUrl: string
  readonly #keyHash: string
  #newest: SeenAddress | null

  constructor(parts: AgentParts, client: CollectorClient, token: () => string, configuredUrl: string) {
    this.#parts = parts
    this.#client = client
    this.#token = token
    this.#configuredUrl = configuredUrl
    this.#keyHash = sha256Hex(parts.options.update.publicKeyPem ?? '')
    // The file of seen addresses is younger than that of the move.
    this.#newest = readSeen(parts.dir, this.#keyHash) ?? readMove(parts.dir, configuredUrl)
  }

  /**
   * Moves to another collector when the remote configuration in force has a validly signed address. Called after every
   * poll of the configuration.
   */
  async consider(): Promise<void> {
    const { settings, status } = this.#parts
    const address = parseSignedAddress(settings.offeredCollectorUrl)
    // An address without a signature is information only.
    if (address === null) return status.warn('collector_url', [])
    const fault = 'fault' in address ? address.fault : await this.#follow(address)
    status.warn('collector_url', fault === null ? [] : [`remote config: collector_url is not taken over: ${fault}`])
  }

  /** Null after the move, and for the address in use; else why the agent stays. */
  async #follow(address: SignedAddress): Promise<string | null> {
    const { publicKeyPem } = this.#parts.options.update
    const { url, signedAtMs, signature } = address
    const isHere = url === this.#client.collectorUrl
    if (publicKeyPem === null) return isHere ? null : 'without update.public_key_file no signature is trusted'
    const isSignatureValid = isSigned(
      signedAddressText(url, signedAtMs),
      Buffer.from(signature, 'base64url'),
      publicKeyPem,
    )
    const fault = moveFault(address, { isSignatureValid, newest: this.#newest })
    if (fault === null) this.#remember(address)
    return isHere ? null : (fault ?? this.#move(address))
  }

  /**
   * Kept also for an address that the agent is at, or cannot move to: what was signed before it moves this agent no
   * more.
   */
  #remember({ url, signedAtMs }: SignedAddress): void {
    if (this.#newest?.signedAtMs === signedAtMs) return
    this.#newest = { url, signedAtMs }
    const { dir, log } = this.#parts
    try {
      const document = { url, signed_at_ms: signedAtMs, key_sha256: this.#keyHash }
      dir.write(SEEN_FILE, `${JSON.stringify(document, null, 2)}\n`, true)
    } catch (error) {
      log.error(
        { cause: error instanceof Error ? error.message : String(error) },
        'cannot keep which address was signed last',
      )
    }
  }

  async #move({ url: collectorUrl, signedAtMs }: SignedAddress): Promise<string | null> {
    const { dir, status, log } = this.#parts
    if (!isValidPing(await this.#client.call({ method: 'GET', path: '/ping', token: null, collectorUrl })))
      return 'it does not answer /ping as a collector of this protocol'
    // One that does not know this agent would leave it unauthorized, where no configuration could call it back.
    const config = await this.#client.call({ method: 'GET', path: '/config', token: this.#token(), collectorUrl })
    if (actionFor('config', config) !== 'success') return `it does not take this agent: ${config.message}`
    try {
      writeMove(dir, { url: collectorUrl, signedAtMs, configuredUrl: this.#configuredUrl })
    } catch (error) {
      return `it cannot be kept on disk: ${error instanceof Error ? error.message : String(error)}`
    }
    this.#client.moveTo(collectorUrl)
    status.update({ collectorUrl })
    log.info({ collector_url: collectorUrl }, 'moved to another collector')
    return null
  }
}
