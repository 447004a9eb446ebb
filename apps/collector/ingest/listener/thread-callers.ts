// Authentication in a listener thread: the tokens and agents that it has seen, kept current by registry updates of the
// main thread. It authenticates nobody before it has read all updates, so a revocation holds in every thread from the
// moment it holds in the registry.
import { assert } from '../../../../core/assert.ts'
import { ApiError } from '../../../http/api-error.ts'
import { BoundedMap } from '../../bounded-map.ts'
import type { CallClient } from '../../thread-calls.ts'
import { type AgentSession, type Etag, SESSION_IDLE_MS } from '../agents/agent-session.ts'
import { Authenticator, type AuthFailure, authError, Credential } from '../agents/authenticate.ts'
import { type BatchCallers, noteAgent } from '../context.ts'
import type { Directory } from './agent-directory.ts'
import type { AgentProtocol } from './agent-protocol.ts'
import { ThreadSession } from './session-ownership.ts'
import { SessionTransfer } from './session-transfer.ts'
import type { AgentUpdate, FromListener, KnownAgent, MainCalls, RegistryUpdate } from './thread-messages.ts'

const CREDENTIALS_MAX = 250_000

type ThreadCallersParts = {
  readonly thread: number
  readonly directory: Directory
  readonly peers: readonly (MessagePort | null)[]
  readonly tell: (message: FromListener) => void
  readonly calls: CallClient<MainCalls>
  readonly nowMs: () => number
  /** Called when a state arrived from another thread. */
  readonly onArrival: () => void
}

const encoder = new TextEncoder()

export class ThreadCallers implements BatchCallers {
  /** Credentials by the whole Authorization header. */
  private readonly credentials = new BoundedMap<string, Credential<ThreadSession>>(CREDENTIALS_MAX)
  private readonly sessions = new Map<number, ThreadSession>()
  /** One copy of each ETag. */
  private readonly etags = new BoundedMap<string, Etag>(CREDENTIALS_MAX)
  private readonly transfer: SessionTransfer
  private epochRead: number
  private epochWaiters: (() => void)[] = []

  constructor(private readonly parts: ThreadCallersParts) {
    const { thread, directory, peers, nowMs, onArrival } = parts
    this.epochRead = directory.epoch
    this.transfer = new SessionTransfer({
      thread,
      directory,
      peers,
      nowMs,
      onArrival,
      sessionAt: agentIndex => this.sessions.get(agentIndex),
    })
  }

  authenticate(header: string | null, nowMs: number): AgentSession | Promise<AgentSession | ApiError> {
    const credential = header === null ? undefined : this.credentials.get(header)
    if (credential && this.isReady(credential, nowMs)) return credential.session
    return this.resolve(header)
  }

  etagOf(session: AgentSession): Etag {
    // The ETag came with the agent. When it may have changed, it is requested again before the agent is authenticated.
    assert(session.etag, 'an agent that was let in has an ETag')
    return session.etag
  }

  noteBatch(session: AgentSession, protocol: AgentProtocol, atMs: number): void {
    if (!(session instanceof ThreadSession)) return
    const { agentVersion, protoVersion, agentIndex, statement } = session
    const { directory, tell } = this.parts
    session.lastSeenAtMs = atMs
    if (statement.bufferBytes >= 0) directory.noteBuffer(agentIndex, statement.bufferBytes, statement.bufferBatches)
    directory.noteSeen(agentIndex, atMs)
    noteAgent(session, protocol)
    if (session.agentVersion !== agentVersion || session.protoVersion !== protoVersion)
      tell({
        kind: 'version',
        agentIndex,
        agentVersion: session.agentVersion,
        protoVersion: session.protoVersion,
      })
    if (statement.isWarningNew) {
      statement.isWarningNew = false
      tell({ kind: 'warning', agentIndex, text: statement.lastWarning, atMs: statement.lastWarningAtMs })
    }
  }

  /** Drops sessions of silent agents and silent series. */
  sweep(nowMs: number): void {
    const nowSeconds = Math.floor(nowMs / 1000)
    for (const session of this.sessions.values()) {
      const { ownership, agentIndex } = session
      const seenAtMs = this.parts.directory.lastSeenAtMs(agentIndex)
      const isSilent = seenAtMs > 0 && nowMs - seenAtMs >= SESSION_IDLE_MS
      if (ownership === 'owned' && !isSilent) session.series.expire(nowSeconds)
      else if (isSilent && session.publishing === 0 && (ownership === 'owned' || ownership === 'remote'))
        this.close(session)
    }
  }

  /** Takes an update of the main thread, in the order in which it sent updates and answers. */
  read({ number, agents, isEveryEtagStale }: RegistryUpdate): void {
    for (const news of agents) this.follow(news)
    if (isEveryEtagStale) for (const session of this.sessions.values()) session.isEtagStale = true
    this.epochRead = number
    const waiting = this.epochWaiters
    this.epochWaiters = []
    for (const resolve of waiting) resolve()
  }

  private isReady(credential: Credential<ThreadSession>, nowMs: number): boolean {
    const { session } = credential
    return (
      session.isOwned &&
      !session.isEtagStale &&
      this.parts.directory.epoch === this.epochRead &&
      credential.isValid(nowMs)
    )
  }

  private async resolve(header: string | null): Promise<AgentSession | ApiError> {
    const { nowMs } = this.parts
    for (;;) {
      await this.epochIsRead()
      let credential = header === null ? undefined : this.credentials.get(header)
      if (!credential || credential.session.isClosed || !credential.isValid(nowMs())) {
        const tokenHash = Authenticator.tokenHash(header)
        const session = await this.ask(tokenHash)
        if (session instanceof ApiError) return session
        if (header === null || tokenHash === null) return authError('missing')
        credential = new Credential(session, tokenHash)
        this.credentials.set(header, credential)
      }
      const { session } = credential
      if (session.isEtagStale && !session.isClosed) await this.freshEtag(session)
      if (!session.isOwned && !session.isClosed) await this.transfer.acquire(session)
      // Anything may have changed during the wait, so everything is checked again.
      if (this.isReady(credential, nowMs())) return session
    }
  }

  /** The answer is taken in the step in which it comes: an update that comes after it finds the session. */
  private ask(tokenHash: string | null): Promise<ThreadSession | ApiError> {
    return new Promise((done, reject) => {
      const resolve = (found: KnownAgent | AuthFailure) =>
        done(typeof found === 'string' ? authError(found) : this.know(found))
      this.parts.calls.send('identify', [tokenHash], { resolve, reject })
    })
  }

  /** In the same way: an update that comes after the answer makes the ETag stale again. */
  private freshEtag(session: ThreadSession): Promise<void> {
    return new Promise((done, reject) => {
      const resolve = (etag: string | null) => {
        if (etag !== null) {
          session.etag = this.etagWith(etag)
          session.isEtagStale = false
        }
        done()
      }
      this.parts.calls.send('etagAt', [session.agentIndex], { resolve, reject })
    })
  }

  private async epochIsRead(): Promise<void> {
    while (this.parts.directory.epoch !== this.epochRead)
      await new Promise<void>(resolve => void this.epochWaiters.push(resolve))
  }

  /** The session of an authenticated agent; created at its first call to this thread. */
  private know({ agentIndex, company, record, etag }: KnownAgent): ThreadSession {
    const held = this.sessions.get(agentIndex)
    if (held) return held
    const { directory, nowMs } = this.parts
    const session = new ThreadSession(agentIndex, record, directory.seriesOf(company), this.etagWith(etag), nowMs())
    this.sessions.set(agentIndex, session)
    return session
  }

  private etagWith(text: string): Etag {
    let etag = this.etags.get(text)
    if (!etag) {
      etag = { text, bytes: encoder.encode(text) }
      this.etags.set(text, etag)
    }
    return etag
  }

  private follow({ agentIndex, company, record }: AgentUpdate): void {
    const session = this.sessions.get(agentIndex)
    if (!session) return
    if (!record) {
      this.close(session)
      return
    }
    const isMoved = record.serverId !== session.record.serverId || record.companyId !== session.record.companyId
    if (isMoved) session.startSeriesAnew(this.parts.directory.seriesOf(company))
    session.record = record
    session.isEtagStale = true
  }

  private close(session: ThreadSession): void {
    this.sessions.delete(session.agentIndex)
    this.transfer.close(session)
  }
}
