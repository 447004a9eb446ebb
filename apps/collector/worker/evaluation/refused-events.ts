// What becomes of an event that the hub refuses (decision G-141): one that an answer names as rejected leaves the
// outbox; one for which the whole request was refused, while it was alone in it, goes into the dead-letter file.
import { appendFileSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { HubResponse } from '../../../hub-link/hub-connection.ts'
import type { OutboxRow } from '../../store/outbox-store.ts'

type Settled = {
  /** Those that leave the outbox, accepted or refused. */
  readonly settled: readonly OutboxRow[]
  readonly refused: readonly { readonly row: OutboxRow; readonly reason: string | undefined }[]
  /** Whether the answer named any event of the batch. */
  readonly isNamed: boolean
}

/**
 * What an answer says of the events of a batch. An event that the hub passes over while it names others stays and is
 * sent again: each such response shortens the outbox. A response that names none of the batch takes the whole of it.
 */
export function settledEvents(rows: readonly OutboxRow[], answer: HubResponse): Settled {
  const reasons = new Map(listOf(answer, 'rejected').map(entry => [textOf(entry, 'event_id'), textOf(entry, 'reason')]))
  const accepted = new Set(listOf(answer, 'accepted'))
  const named = rows.filter(({ event }) => accepted.has(event.event_id) || reasons.has(event.event_id))
  const refused = rows.filter(({ event }) => reasons.has(event.event_id))
  return {
    settled: named.length > 0 ? named : rows,
    refused: refused.map(row => ({ row, reason: reasons.get(row.event.event_id) })),
    isNamed: named.length > 0,
  }
}

/** Keeps an event that the hub will never take, one a line. Throws where the file cannot be written. */
export function appendDeadLetter(path: string, row: OutboxRow, cause: string, nowMs: number): void {
  const line = JSON.stringify({ at: new Date(nowMs).toISOString(), cause, event: row.event })
  // Over Redis nothing else of a worker stands in that directory.
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  appendFileSync(path, `${line}\n`, { mode: 0o600 })
}

const listOf = (answer: HubResponse, field: string): readonly unknown[] => {
  const list = answer.kind === 'ok' ? answer.data[field] : null
  return Array.isArray(list) ? list : []
}

function textOf(entry: unknown, field: string): string {
  if (typeof entry !== 'object' || entry === null) return ''
  const value = (entry as Record<string, unknown>)[field]
  return typeof value === 'string' ? value : ''
}
