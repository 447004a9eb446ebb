// What the hub's answer to a batch of events means (decisions G-141, G-189).
import { isObject } from '../../core/json-object.ts'
import type { HubResponse } from './hub-connection.ts'

/** Client errors that are about the sender's token or the moment, not about the batch. */
const KEPT_CLIENT_ERRORS = new Set([401, 403, 407, 408, 425, 429])
/** Statuses that mean a fault of the batch even when a proxy in front of the hub answers. */
const REFUSED_BY_ANYONE = new Set([400, 413, 422])

/**
 * `refused`: the hub will never take this batch as it is. A response without the hub's error format (a bare 404, a page
 * instead of JSON) comes from something else at its address, so the events are kept.
 */
export function judgeBatch(answer: HubResponse): 'delivered' | 'keep' | 'refused' {
  if (answer.kind === 'ok') return isObject(answer.body.data) ? 'delivered' : 'keep'
  if (answer.kind === 'unreachable' || answer.status >= 500 || KEPT_CLIENT_ERRORS.has(answer.status)) return 'keep'
  const isOfHub = answer.status >= 400 && answer.code !== ''
  return isOfHub || REFUSED_BY_ANYONE.has(answer.status) ? 'refused' : 'keep'
}
