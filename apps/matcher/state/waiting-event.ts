// Events as they wait in the outbox: a row holds what one commit told of one host, in some ten bytes an event; the
// payload is made from the shared contents when it is sent (MAT-169). Contents never change, so neither does an event
// that is sent twice (MAT-172).
import type { MatchStatus, ReleaseSupport, ResolvedReason } from '../../../core/matching/finding-event.ts'
import { NumberReader, NumberWriter } from './number-list.ts'

export type WaitingEvent =
  | { readonly type: 'finding.opened' | 'finding.updated'; readonly finding: number; readonly firstSeenMs: number }
  | { readonly type: 'finding.resolved'; readonly finding: number; readonly reason: ResolvedReason }
  | {
      readonly type: 'server.scanned'
      readonly scan: number
      readonly status: MatchStatus
      readonly support: ReleaseSupport
      readonly openFindings: number
    }

/** The order of the words is the format: new ones are appended. */
const TYPES = ['finding.opened', 'finding.updated', 'finding.resolved', 'server.scanned'] as const
const REASONS: readonly ResolvedReason[] = [
  'release_upgraded',
  'package_removed',
  'package_updated',
  'out_of_scope',
  'advisory_changed',
]
const STATUSES: readonly MatchStatus[] = ['ok', 'unsupported_os', 'unsupported_release', 'release_eol', 'no_db']
const SUPPORTS: readonly ReleaseSupport[] = ['', 'standard', 'esm_only', 'eol']

const writer = new NumberWriter()

export function encodeEvents(events: readonly WaitingEvent[]): Uint8Array {
  for (const event of events) {
    writer.write(TYPES.indexOf(event.type))
    switch (event.type) {
      case 'finding.opened':
      case 'finding.updated':
        writer.write(event.finding)
        writer.write(event.firstSeenMs)
        break
      case 'finding.resolved':
        writer.write(event.finding)
        writer.write(REASONS.indexOf(event.reason))
        break
      case 'server.scanned':
        writer.write(event.scan)
        writer.write(STATUSES.indexOf(event.status))
        writer.write(SUPPORTS.indexOf(event.support))
        writer.write(event.openFindings)
    }
  }
  return writer.take()
}

export function decodeEvents(bytes: Uint8Array): WaitingEvent[] {
  const reader = new NumberReader(bytes)
  const events: WaitingEvent[] = []
  while (!reader.isAtEnd) {
    const type = word(TYPES, reader)
    if (type === 'server.scanned')
      events.push({
        type,
        scan: reader.read(),
        status: word(STATUSES, reader),
        support: word(SUPPORTS, reader),
        openFindings: reader.read(),
      })
    else if (type === 'finding.resolved') events.push({ type, finding: reader.read(), reason: word(REASONS, reader) })
    else events.push({ type, finding: reader.read(), firstSeenMs: reader.read() })
  }
  return events
}

function word<W extends string>(words: readonly W[], reader: NumberReader): W {
  const found = words[reader.read()]
  if (found === undefined) throw new Error('cannot read the state: an event of an unknown kind waits')
  return found
}
