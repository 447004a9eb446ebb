// What makes an event itself, however often it is made or sent (document 2 "Envelope"; decision G-79): its id, and the
// key within which its seq grows.
import { uuidFromText } from '../../series/hash.ts'
import type { AlertEvent, EventType } from './event.ts'

/** The pair key of an event: seq grows within one key, and the hub processes the events of a key in order. */
export const eventPairKey = (event: Pick<AlertEvent, 'server_id' | 'rule_id' | 'series_key'>): string =>
  `${event.server_id}\n${event.rule_id}\n${event.series_key}`

/**
 * The id of an event, derived from its content: an event that is made again after a crash gets the same id, and the hub
 * drops the repetition.
 */
export function eventId(serverId: string, ruleId: string, seriesKey: string, seq: number, type: EventType): string {
  return uuidFromText(`${serverId}\n${ruleId}\n${seriesKey}\n${seq}\n${type}`)
}
