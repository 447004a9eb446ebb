// Transfers the state of an agent from the thread that owns it to the thread that its next connection reaches. The
// owner first waits until the batches under way have reached the bus, then sends the whole state. So limits, rates and
// series stay exact and batches of a server keep their order, whichever threads serve them.
import { assert } from '../../../../core/assert.ts'
import type { Directory } from './agent-directory.ts'
import { type AgentState, type ThreadSession, transferOf } from './session-ownership.ts'

/** Messages between listener threads. `agentIndex` is the agent's index in the directory. */
type BetweenThreads =
  | { readonly kind: 'want'; readonly agentIndex: number }
  | { readonly kind: 'state'; readonly agentIndex: number; readonly state: AgentState }
  /** The sender does not own the state any more: the receiver must read the owner from the directory again. */
  | { readonly kind: 'gone'; readonly agentIndex: number }

type SessionTransferParts = {
  readonly thread: number
  readonly directory: Directory
  /** The ports by thread; null for this thread. */
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

  /** Acquires the state of an agent. Resolves when this thread owns it, or when the caller must try again. */
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

  /**
   * Ends the state of an agent that was removed or revoked, or was silent for long. A thread that wants it starts with
   * an empty state.
   */
  close(session: ThreadSession): void {
    const { directory } = this.parts
    const { agentIndex, ownership } = session
    session.isClosed = true
    session.whenIdle = null
    // A state that arrives after this is released in `receive`.
    if (ownership === 'owned' || ownership === 'releasing') {
      session.series.release()
      directory.assign(agentIndex, null)
    }
    session.release()
    this.rejectWaiters(session)
  }

  /** Tells the threads that wait for this state that it is gone; they read the owner from the directory again. */
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
    // Requests that waited in this thread are served before the state is sent on.
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
