// Which of the 64 shards a server belongs to: by its id, for ever (document 2 "Limits": 64 state shards by server id).
import { limits } from '../limits.ts'

export function shardOfServer(serverId: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < serverId.length; index++) hash = Math.imul(hash ^ serverId.charCodeAt(index), 0x01000193)
  return ((hash ^ (hash >>> 15)) >>> 0) % limits.stateShards
}
