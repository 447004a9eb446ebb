// What an agent says of itself with its batches: what waits in its buffer, and its last warning (decision G-40). A
// warning comes with each batch for as long as it holds: bytes with the hash of those before are not made a text again.
import { limits } from '../../../../core/limits.ts'
import { lineOf } from '../../../../core/printable.ts'
import type { BatchDecoder } from '../../../../core/wire/decode-and-admit.ts'
import { RawHash } from '../../../../core/wire/raw-hash.ts'

/** A warning that holds on is noted again after this time, so that its time says whether it does. */
const NOTED_AGAIN_MS = 3_600_000
/** The bytes of a warning that are looked at: no character that is kept takes more than four. */
const WARNING_BYTES_MAX = 8 * limits.agentWarningCharsMax

const hash = new RawHash()
const utf8 = new TextDecoder()

/** Which bytes were made a text last, and when: what goes with a session to another thread. */
export type NotedWarning = { readonly a: number; readonly b: number; readonly atMs: number }

const NOTHING_NOTED: NotedWarning = { a: 0, b: 0, atMs: 0 }

export class AgentStatement {
  /** What waits beyond the batch that said so; -1: the agent has not said. */
  bufferBytes = -1
  bufferBatches = 0
  /** One line, safe to show; '': there was none. */
  lastWarning = ''
  lastWarningAtMs = 0
  /** The warning was noted since this was last set to false. */
  isWarningNew = false
  private noted = NOTHING_NOTED

  /** Takes what the batch of these bytes says. */
  take(header: BatchDecoder['header'], bytes: Uint8Array, nowMs: number): void {
    if (header.bufferBytes < 0) return
    // A batch leaves the buffer once it is acknowledged: where it is the only one, nothing waits.
    const waits = header.bufferBatches > 1
    this.bufferBytes = waits ? Math.min(header.bufferBytes, Number.MAX_SAFE_INTEGER) : 0
    this.bufferBatches = waits ? header.bufferBatches : 0
    if (header.warningBytes > 0) this.takeWarning(header, bytes, nowMs)
  }

  /** A warning that was noted with a batch that the bus refused has not been told of: the next thread notes it anew. */
  detach(): NotedWarning {
    if (!this.isWarningNew) return this.noted
    this.isWarningNew = false
    return NOTHING_NOTED
  }

  /** Another thread has noted this warning, and told of it. */
  attach(noted: NotedWarning): void {
    this.noted = noted
  }

  private takeWarning({ warningAt, warningBytes }: BatchDecoder['header'], bytes: Uint8Array, nowMs: number): void {
    const { a, b, atMs } = this.noted
    const end = warningAt + Math.min(warningBytes, WARNING_BYTES_MAX)
    hash.of(bytes, new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), warningAt, end)
    if (hash.a === a && hash.b === b && nowMs - atMs < NOTED_AGAIN_MS) return
    this.noted = { a: hash.a, b: hash.b, atMs: nowMs }
    const text = lineOf(utf8.decode(bytes.subarray(warningAt, end)), limits.agentWarningCharsMax)
    if (text === '') return
    this.lastWarning = text
    this.lastWarningAtMs = nowMs
    this.isWarningNew = true
  }
}
