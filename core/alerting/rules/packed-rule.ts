// A rule as it is passed between threads: its long lists of servers are in shared memory and are not copied.
import { isObject } from '../../json-object.ts'
import type { RuleRecord } from './rule.ts'
import { packServerIds } from './server-ids.ts'

/** Shorter lists are copied as they are. */
const LISTED_MAX = 200

const isStrings = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string')

/** Packs an unchecked record of the feed for another thread. */
export function packRule(raw: RuleRecord): RuleRecord {
  const { scope, resolved_server_ids: resolved = [] } = raw
  const listed = isObject(scope) ? (scope.server_ids ?? []) : []
  // A record with a malformed scope is passed on as it is; `compileRule` rejects it.
  if (!isObject(scope) || !isStrings(listed) || !isStrings(resolved)) return raw
  if (listed.length + resolved.length <= LISTED_MAX) return raw
  const text = new TextEncoder().encode(JSON.stringify(raw))
  const record = new Uint8Array(new SharedArrayBuffer(text.length))
  record.set(text)
  const ids = packServerIds([listed, resolved])
  const serverIds = new Uint32Array(new SharedArrayBuffer(ids.byteLength))
  serverIds.set(ids)
  return {
    ...raw,
    scope: { ...scope, server_ids: [] },
    resolved_server_ids: [],
    packed: { serverIds, record },
  }
}

/** The complete record as JSON, for storage. */
export function recordText(raw: RuleRecord): string {
  const record: unknown = raw.packed?.record
  return record instanceof Uint8Array ? new TextDecoder().decode(record.slice()) : JSON.stringify(raw)
}
