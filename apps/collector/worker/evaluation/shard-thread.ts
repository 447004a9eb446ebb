// The entry file of a shard thread: receives the messages of the main thread and runs the loops of its shards.

import { CallServer } from '../../thread-calls.ts'
import { ShardHost } from './shard-host.ts'
import type { ShardCalls, ToShardThread } from './shard-messages.ts'
import { downServers, onlineServers, shardStatus } from './shard-status.ts'
import { serverAlerting } from './why-rules-fire.ts'

declare const self: Worker

const callsTo = (host: ShardHost) =>
  new CallServer<ShardCalls>(
    self,
    {
      handOver: shard => host.handOver(shard).then(() => null),
      setRules: (changed, removed, rulesSince) => host.setRules(changed, removed, rulesSince).then(() => null),
      setSilences: silences => {
        host.setSilences(silences)
        return null
      },
      forget: (companyId, serverId) => {
        for (const loop of host.loops) loop.forget(companyId, serverId)
        return null
      },
      online: companyId => host.loops.reduce((sum, loop) => sum + onlineServers(loop.evaluation, companyId), 0),
      down: () => host.loops.flatMap(loop => downServers(loop.evaluation)),
      alerting: serverId => {
        const found = host.loops.map(loop => serverAlerting(loop.evaluation, serverId, Date.now()))
        return found.find(alerting => alerting !== null) ?? null
      },
      status: () => host.loops.map(loop => shardStatus(loop.evaluation, loop)),
      stop: () => host.stop().then(() => null),
    },
    // A thread that cannot carry out a message must not continue half done: it ends, and its process with it.
    error => {
      throw error
    },
  )

/** Handles messages that have no answer. */
function heed(host: ShardHost, message: Exclude<ToShardThread, { kind: 'start' | 'call' }>): void {
  switch (message.kind) {
    case 'wake':
      for (const loop of host.loops) loop.wake()
      return
    case 'acquire':
      void host.acquire(message.shard, message.token)
      return
    case 'revoke':
      host.revoke(message.shard)
      return
    case 'attributes':
      host.setAttributes(message.updates)
      return
    case 'tombstones':
      host.setTombstones(message.tombstones)
      return
    case 'overflow':
      for (const loop of host.loops) loop.overflowed(message.atMs)
  }
}

let running: { readonly host: ShardHost; readonly calls: CallServer<ShardCalls> } | null = null

self.onmessage = (event: MessageEvent<ToShardThread>) => {
  const message = event.data
  if (message.kind === 'start') {
    const host = new ShardHost(message, notice => postMessage(notice))
    running = { host, calls: callsTo(host) }
  } else if (message.kind === 'call') running?.calls.receive(message)
  else if (running) heed(running.host, message)
}
