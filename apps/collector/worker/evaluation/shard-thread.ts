// The entry of a shard thread: messages of the main thread in, the loops of its shards beside them.

import { serverAlerting } from './shard-alerting.ts'
import { ShardHost } from './shard-host.ts'
import type { FromShardThread, ToShardThread } from './shard-messages.ts'
import { downServers, onlineServers, shardStatus } from './shard-status.ts'

declare const self: Worker

const tell = (message: FromShardThread): void => postMessage(message)
let started: ShardHost | null = null

async function handle(message: ToShardThread): Promise<void> {
  if (message.kind === 'start') {
    started = new ShardHost(message, tell)
    return
  }
  const host = started
  if (!host) return
  switch (message.kind) {
    case 'wake':
      for (const loop of host.loops) loop.wake()
      return
    case 'acquire':
      await host.acquire(message.shard, message.token)
      return
    case 'hand_over':
      await host.handOver(message.shard)
      tell({ kind: 'done', call: message.call })
      return
    case 'revoke':
      host.revoke(message.shard)
      return
    case 'rules':
      await host.setRules(message.changed, message.removed, message.rulesSince)
      tell({ kind: 'done', call: message.call })
      return
    case 'silences':
      host.setSilences(message.silences)
      tell({ kind: 'done', call: message.call })
      return
    case 'attributes':
      host.setAttributes(message.updates)
      return
    case 'forget':
      for (const loop of host.loops) loop.forget(message.companyId, message.serverId)
      tell({ kind: 'done', call: message.call })
      return
    case 'tombstones':
      host.setTombstones(message.tombstones)
      return
    case 'overflow':
      for (const loop of host.loops) loop.overflowed(message.atMs)
      return
    case 'stop':
      await host.stop()
      tell({ kind: 'done', call: message.call })
      return
    case 'online':
    case 'down':
    case 'alerting':
    case 'status':
      tell(answerTo(host, message))
  }
}

/** What the loops know. */
function answerTo(
  { loops }: ShardHost,
  message: Extract<ToShardThread, { kind: 'online' | 'down' | 'alerting' | 'status' }>,
): FromShardThread {
  const { call } = message
  switch (message.kind) {
    case 'online': {
      const count = loops.reduce((sum, loop) => sum + onlineServers(loop.evaluation, message.companyId), 0)
      return { kind: 'online', call, count }
    }
    case 'down':
      return { kind: 'down', call, servers: loops.flatMap(loop => downServers(loop.evaluation)) }
    case 'alerting': {
      const found = loops.map(loop => serverAlerting(loop.evaluation, message.serverId, Date.now()))
      return { kind: 'alerting', call, alerting: found.find(alerting => alerting !== null) ?? null }
    }
    case 'status':
      return { kind: 'status', call, statuses: loops.map(loop => shardStatus(loop.evaluation, loop)) }
  }
}

self.onmessage = (event: MessageEvent<ToShardThread>) => {
  handle(event.data).catch(error => {
    throw error
  })
}
