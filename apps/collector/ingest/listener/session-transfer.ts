// How the state of an agent gets from the thread that has it to the thread that its next connection meets. The thread
// that has it lets the batches under way reach the bus first, then gives it away whole: so limits, rates and series are
// exact, and batches of a server keep their order, whichever threads serve them.
import { assert } from '../../../../core/assert.ts'
import type { Directory } from './agent-directory.ts'
import { type AgentState, type ThreadSession, transferOf } from './session-ownership.ts'

/** What threads say to each other. `agentIndex`: of the agent in the directory. */
type BetweenThreads =
  | { readonly kind: 'want'; readonly agentIndex: number }
  | { readonly kind: 'state'; readonly agentIndex: number; readonly state: AgentState }
  /** It is not here any more: look into the directory again. */
  | { readonly kind: 'gone'; readonly agentIndex: number }

export type SessionTransferParts = {
  readonly thread: number
  readonly directory: Directory
  /** By thread; null for this one. */
  readonly peers: readonly (MessagePort | null)[]
  readonly sessionAt: (agentIndex: number) => ThreadSession | undefined
  readonly nowMs: () => number
  readonly onArrival: () => void
}

export class SessionTransfer {
  constructor(private readonly parts: SessionTransferParts) {
    for (const [peer, port] of parts.peers.entries())
      if (port)
        port.onmessage = event => {
          this.receive(peer, event.data)
        }
  }

  /** Brings the state of an agent here. Resolves when it has come, or when that must be tried again. */
  async acquire(session: ThreadSession): Promise<void> {
    const { thread, directory, nowMs } = this.parts
    if (session.move) return session.move.promise
    if (session.ownership !== 'remote') return
    const owner = directory.claim(session.agentIndex, thread)
    if (owner === thread) {
      session.startFresh(nowMs())
      return
    }
    session.startTransfer('acquiring')
    this.tell(owner, { kind: 'want', agentIndex: session.agentIndex })
    return session.move!.promise
  }

  /** The agent is gone, revoked, or silent for long: its state ends, whoever wants it starts anew. */
  close(session: ThreadSession): void {
    const { directory } = this.parts
    const { agentIndex, ownership } = session
    session.isClosed = true
    session.whenIdle = null
    // What arrives later is given up in `receive`.
    if (ownership === 'owned' || ownership === 'releasing') {
      session.series.release()
      directory.assign(agentIndex, null)
    }
    session.release()
    this.rejectWaiters(session)
  }

  /** Whoever waits for the state here looks into the directory again. */
  private rejectWaiters(session: ThreadSession): void {
    for (const peer of session.waiters.splice(0)) this.tell(peer, { kind: 'gone', agentIndex: session.agentIndex })
  }

  private tell(thread: number, message: BetweenThreads): void {
    const port = this.parts.peers[thread]
    assert(port, 'a thread speaks to the others')
    port.postMessage(message, message.kind === 'state' ? transferOf(message.state) : [])
  }

  private receive(peer: number, message: BetweenThreads): void {
    const { agentIndex } = message
    const session = this.parts.sessionAt(agentIndex)
    switch (message.kind) {
      case 'want':
        if (!session || session.ownership === 'remote') this.tell(peer, { kind: 'gone', agentIndex })
        else {
          session.waiters.push(peer)
          if (session.ownership === 'owned') this.leave(session)
        }
        return
      case 'gone':
        if (session) {
          session.release()
          this.rejectWaiters(session)
        }
        return
      case 'state':
        this.take(agentIndex, session, message.state)
    }
  }

  private take(agentIndex: number, session: ThreadSession | undefined, state: AgentState): void {
    const { directory, nowMs } = this.parts
    const isSameServer =
      session && session.record.companyId === state.companyId && session.record.serverId === state.serverId
    if (!isSameServer) directory.seriesOf(state.company).give(state.series.count)
    if (!session) {
      directory.assign(agentIndex, null)
      return
    }
    this.parts.onArrival()
    assert(session.ownership === 'acquiring', 'a state comes to the thread that asked for it')
    if (isSameServer) session.attach(state)
    else {
      session.startFresh(nowMs())
      session.metricsRate.restore(state.rateFullAtMs)
      session.bytesRate.restore(state.bytesRateFullAtMs)
    }
    // Requests that waited here are served before the state goes on.
    if (session.waiters.length > 0)
      setImmediate(() => {
        if (session.ownership === 'owned' && session.waiters.length > 0) this.leave(session)
      })
  }

  private leave(session: ThreadSession): void {
    session.startTransfer('releasing')
    if (session.publishing === 0) this.transfer(session)
    else
      session.whenIdle = () => {
        session.whenIdle = null
        this.transfer(session)
      }
  }

  private transfer(session: ThreadSession): void {
    const { agentIndex, waiters } = session
    const to = waiters.shift()
    assert(to !== undefined, 'a state leaves for somebody')
    this.parts.directory.assign(agentIndex, to)
    this.tell(to, { kind: 'state', agentIndex, state: session.detach() })
    session.release()
    this.rejectWaiters(session)
  }
}
