// Tells the hub when scan hosts were last seen, at most once an hour and host (MAT-056). What cannot be told now is
// told with the next report: the events of a report say it too.

import type { Logger } from 'pino'
import { describeResponse } from '../../hub-link/hub-connection.ts'
import type { MatcherState } from '../state/state-types.ts'
import type { MatcherHub } from './matcher-hub.ts'

const PERIOD_MS = 3_600_000
const WAITING_MAX = 10_000
const RETRY_MS = 30_000
const VERSION_CHARS_MAX = 128

type Seen = { readonly atMs: number; readonly scannerVersion: string }

export class SeenTeller {
  private readonly waiting = new Map<string, Seen>()
  private isRunning = false
  private isStopped = false
  private quietUntilMs = 0

  constructor(
    private readonly parts: {
      readonly state: Pick<MatcherState, 'host' | 'seenTold'>
      readonly hub: Pick<MatcherHub, 'seen'>
      readonly log: Logger
    },
  ) {}

  note(hostId: string, scannerVersion: string, atMs: number): void {
    // As it is now: the hub may have been told of the report before while this one was under way.
    const host = this.parts.state.host(hostId)
    if (host === null || atMs - host.seenToldAtMs < PERIOD_MS) return
    if (this.waiting.size >= WAITING_MAX && !this.waiting.has(hostId)) return
    this.waiting.set(hostId, { atMs, scannerVersion })
    if (!this.isRunning && performance.now() >= this.quietUntilMs) void this.run()
  }

  stop(): void {
    this.isStopped = true
  }

  private async run(): Promise<void> {
    this.isRunning = true
    for (const [hostId, seen] of this.waiting) {
      if (this.isStopped || !(await this.tell(hostId, seen))) break
    }
    this.isRunning = false
  }

  /** False when the hub cannot be told now. */
  private async tell(hostId: string, seen: Seen): Promise<boolean> {
    const version = seen.scannerVersion
      .replace(/[^\x21-\x7e]+/g, ' ')
      .trim()
      .slice(0, VERSION_CHARS_MAX)
    const response = await this.parts.hub.seen(hostId, {
      last_seen_at: new Date(seen.atMs).toISOString(),
      ...(version === '' ? {} : { scanner_version: version }),
    })
    // A host that the hub does not know, or refuses to hear of, is not told of again at once.
    const isOver = response.kind === 'ok' || (response.kind === 'refused' && [404, 422].includes(response.status))
    if (!isOver) {
      this.parts.log.debug({ reason: describeResponse(response) }, 'cannot tell the hub which scan hosts were seen')
      this.quietUntilMs = performance.now() + RETRY_MS
      return false
    }
    this.waiting.delete(hostId)
    if (!this.isStopped) this.parts.state.seenTold(hostId, seen.atMs)
    return true
  }
}
