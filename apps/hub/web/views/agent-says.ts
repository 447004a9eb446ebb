// What an agent says of itself, as pages show it: what waits in its buffer, and its last warning.
import { limits } from '../../../../core/limits.ts'

/** Columns of an agent; amounts as numbers. */
export type SaysRow = {
  readonly buffer_bytes: number | null
  readonly buffer_batches: number | null
  readonly last_warning: string | null
  readonly last_warning_at: string | null
}

export type AgentSays = {
  /** Null: nothing waits, or the agent has not said. `isFilling`: over half of what an agent may keep. */
  readonly buffer: { readonly bytes: number; readonly batches: number; readonly isFilling: boolean } | null
  readonly lastWarning: { readonly text: string; readonly atMs: number } | null
}

export function saysOf(row: SaysRow): AgentSays {
  const { buffer_bytes: bytes, buffer_batches: batches, last_warning: text, last_warning_at: at } = row
  return {
    buffer: bytes && batches ? { bytes, batches, isFilling: bytes > limits.agentBufferBytes / 2 } : null,
    lastWarning: text === null || at === null ? null : { text, atMs: new Date(at).getTime() },
  }
}
