// The entry of a shard thread: messages of the main thread in, the loop of its shards beside them.

import { busConsumers } from '../bus/bus.ts'
import { SqliteBusReader } from '../bus/sqlite-bus.ts'
import { EvaluationStore } from '../store/evaluation-store.ts'
import { ShardLoop } from './shard-loop.ts'
import type { FromShardThread, ToShardThread } from './shard-messages.ts'
import { downServers, onlineServers, serverAlerting, shardStatus } from './shard-status.ts'

declare const self: Worker

const tell = (message: FromShardThread): void => postMessage(message)
let loop: ShardLoop | null = null
let finished: Promise<void> = Promise.resolve()
let close: () => Promise<void> = async () => {}

async function start(message: ToShardThread & { kind: 'start' }): Promise<void> {
  const { config } = message
  const bus = new SqliteBusReader(config.busPath, [busConsumers.evaluation])
  const store = new EvaluationStore(config.dataDir, config.snapshotDir)
  close = async () => {
    store.close()
    await bus.close()
  }
  loop = new ShardLoop(config, bus, store, Date.now, tell)
  loop.startRules(message.rules, message.rulesSince)
  loop.setSilences(message.silences)
  loop.setAttributes(message.attributes)
  const faults = loop.restore()
  tell({ kind: 'ready', positions: [loop.position], faults })
  finished = loop.run()
  finished.catch(error => {
    // A thread that cannot evaluate must not look alive: the process ends and is started again from snapshot and journal.
    tell({
      kind: 'log',
      level: 'error',
      message: 'evaluation failed',
      fields: { cause: error instanceof Error ? error.message : String(error) },
    })
    throw error
  })
}

async function handle(message: ToShardThread): Promise<void> {
  if (message.kind === 'start') return start(message)
  if (!loop) return
  switch (message.kind) {
    case 'wake':
      loop.wake()
      return
    case 'rules':
      await loop.setRules(message.rules, message.rulesSince)
      tell({ kind: 'done', call: message.call })
      return
    case 'silences':
      loop.setSilences(message.silences)
      tell({ kind: 'done', call: message.call })
      return
    case 'attributes':
      loop.setAttributes(message.updates)
      return
    case 'forget':
      loop.forget(message.companyId, message.serverId)
      tell({ kind: 'done', call: message.call })
      return
    case 'tombstones':
      loop.setTombstones(message.tombstones)
      return
    case 'online':
      tell({ kind: 'online', call: message.call, count: onlineServers(loop.evaluation, message.companyId) })
      return
    case 'down':
      tell({ kind: 'down', call: message.call, machines: downServers(loop.evaluation) })
      return
    case 'overflow':
      loop.overflowed(message.atMs)
      return
    case 'alerting':
      tell({ kind: 'alerting', call: message.call, alerting: serverAlerting(loop.evaluation, message.serverId) })
      return
    case 'status':
      tell({ kind: 'status', call: message.call, status: shardStatus(loop.evaluation, loop) })
      return
    case 'stop':
      loop.stop()
      await finished
      await close()
      tell({ kind: 'done', call: message.call })
  }
}

self.onmessage = (event: MessageEvent<ToShardThread>) => {
  handle(event.data).catch(error => {
    throw error
  })
}
