// The figures that the processes of one collector share, so that the heartbeat of each covers all of them (document 1
// "/heartbeat": ingest_rps and outbox_depth in one body, though ingest and worker may be separate processes; decision
// G-32).
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { replaceFile } from '../../files/replace-file.ts'
import type { RedisKeys } from './redis/redis-keys.ts'
import { isJsonObject } from './registry/agent-record.ts'

/** A process leaves out the figures that it does not have. */
export type ProcessHeartbeat = { readonly ingestRps?: number; readonly outboxDepth?: number }

export interface HeartbeatBoard {
  /** Stores the figures of this process. Resolves to the sums over all processes that stored theirs recently. */
  exchange(own: ProcessHeartbeat): Promise<ProcessHeartbeat>
}

/** The age up to which the figures of a process count: each process writes its own with every heartbeat. */
export const heartbeatMaxAgeMs = (config: { readonly 'heartbeat.interval': number }): number =>
  3 * config['heartbeat.interval']

/** Figures as they are stored: JSON with the time. */
const noteOf = (own: ProcessHeartbeat, nowMs: number): string =>
  JSON.stringify({ at_ms: nowMs, ingest_rps: own.ingestRps, outbox_depth: own.outboxDepth })

type Note = { readonly atMs: number; readonly figures: ProcessHeartbeat }

/** A note that cannot be read counts as expired. */
function readNote(text: string): Note {
  try {
    const json: unknown = JSON.parse(text)
    if (!isJsonObject(json) || typeof json.at_ms !== 'number') return { atMs: 0, figures: {} }
    const { at_ms: atMs, ingest_rps: ingestRps, outbox_depth: outboxDepth } = json
    return {
      atMs,
      figures: {
        ...(typeof ingestRps === 'number' ? { ingestRps } : {}),
        ...(typeof outboxDepth === 'number' ? { outboxDepth } : {}),
      },
    }
  } catch {
    return { atMs: 0, figures: {} }
  }
}

/** The sums; a figure that no process has is left out. */
function sumOf(all: readonly ProcessHeartbeat[]): ProcessHeartbeat {
  const sum = (values: readonly (number | undefined)[]): number | undefined => {
    const known = values.filter(value => value !== undefined)
    return known.length > 0 ? known.reduce((total, value) => total + value, 0) : undefined
  }
  const ingestRps = sum(all.map(figures => figures.ingestRps))
  const outboxDepth = sum(all.map(figures => figures.outboxDepth))
  return {
    ...(ingestRps === undefined ? {} : { ingestRps: Math.round(ingestRps * 100) / 100 }),
    ...(outboxDepth === undefined ? {} : { outboxDepth }),
  }
}

/** On one host: one file for each role in data_dir, since each role has one process. */
export class FileHeartbeats implements HeartbeatBoard {
  constructor(
    private readonly parts: {
      readonly directory: string
      readonly role: 'ingest' | 'worker'
      /** Older notes are from processes that have ended. */
      readonly maxAgeMs: number
      readonly nowMs: () => number
    },
  ) {
    mkdirSync(parts.directory, { recursive: true, mode: 0o700 })
  }

  async exchange(own: ProcessHeartbeat): Promise<ProcessHeartbeat> {
    const { directory, role, maxAgeMs, nowMs } = this.parts
    const path = join(directory, `${role}.json`)
    replaceFile(path, noteOf(own, nowMs()))
    const others = readdirSync(directory)
      .filter(name => name.endsWith('.json') && name !== `${role}.json`)
      .map(name => readNote(readFileSync(join(directory, name), 'utf8')))
      .filter(note => nowMs() - note.atMs <= maxAgeMs)
    return sumOf([own, ...others.map(note => note.figures)])
  }
}

/** Over several hosts: one hash with a field for each process. */
export class RedisHeartbeats implements HeartbeatBoard {
  private readonly name = `${hostname()}:${process.pid}`

  constructor(
    private readonly redis: Redis,
    private readonly keys: RedisKeys,
    private readonly maxAgeMs: number,
    private readonly nowMs: () => number,
  ) {}

  async exchange(own: ProcessHeartbeat): Promise<ProcessHeartbeat> {
    const { redis, keys, maxAgeMs, name } = this
    const nowMs = this.nowMs()
    await redis.hset(keys.processes, name, noteOf(own, nowMs))
    const sum: ProcessHeartbeat[] = [own]
    const gone: string[] = []
    for (const [other, text] of Object.entries(await redis.hgetall(keys.processes))) {
      const note = readNote(text)
      if (other === name) continue
      if (nowMs - note.atMs > maxAgeMs) gone.push(other)
      else sum.push(note.figures)
    }
    if (gone.length > 0) await redis.hdel(keys.processes, ...gone)
    return sumOf(sum)
  }
}
