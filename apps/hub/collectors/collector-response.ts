// Collectors as super administrators see them (decision G-33).
import { Type } from '@sinclair/typebox'
import { amount, anyObject, id, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'

export const collectorResponse = named('Collector', {
  id: id(),
  name: string(),
  base_url: nullable(string()),
  admin_url: nullable(string()),
  status: wordOf(['online', 'offline', 'never']),
  version: nullable(string()),
  last_heartbeat_at: nullable(time()),
  agent_count: nullable(amount()),
  ingest_rps: nullable(Type.Number()),
  outbox_depth: nullable(amount()),
  settings: anyObject(),
})
export const reloadResponse = named('Reload', { reload: string(), accepted: Type.Boolean() })
