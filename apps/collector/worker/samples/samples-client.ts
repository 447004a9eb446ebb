// The main thread's side of the samples store: calls with promises, and what the thread reports on its own.

import pTimeout from 'p-timeout'
import type { Tombstone } from '../../../../core/retention/tombstone.ts'
import type {
  FromSamplesThread,
  SamplesCall,
  SamplesCalls,
  SamplesThreadOptions,
  ToSamplesThread,
} from './samples-messages.ts'

const STOP_TIMEOUT_MS = 10_000

type SamplesClientOptions = SamplesThreadOptions & {
  /** `new URL('./samples-thread.ts', import.meta.url)`, which resolves only in an entry file. */
  readonly threadUrl: URL | string
  /** A block was stored. */
  readonly onInserted?: (rows: number, seconds: number) => void
  /** The plan retention of these companies is wanted: `setRetentionDays`. */
  readonly onRetentionWanted?: (companyIds: readonly string[]) => void
  /** A try failed and will be repeated; the text is for the log. */
  readonly onTrouble?: (message: string) => void
}

/** The samples store cannot do its work just now; the text is for the log, not for a caller over HTTP. */
export class SamplesUnavailable extends Error {}

type Waiting = { readonly resolve: (result: unknown) => void; readonly reject: (error: Error) => void }
type Call = <C extends SamplesCall>(call: C, ...args: SamplesCalls[C]['args']) => Promise<SamplesCalls[C]['result']>

/**
 * Starts the samples thread. Resolves once the embedded store is open, or at once for a server, which may come up
 * later. Rejects when the store cannot be opened by this program.
 */
export async function startSamples(options: SamplesClientOptions) {
  const worker = new Worker(options.threadUrl)
  const waiting = new Map<number, Waiting>()
  let lastId = 0
  let isClosed = false
  const tell = (message: ToSamplesThread): void => {
    if (!isClosed) worker.postMessage(message)
  }
  const failAll = (reason: string): void => {
    isClosed = true
    for (const { reject } of waiting.values()) reject(new SamplesUnavailable(reason))
    waiting.clear()
  }

  await new Promise<void>((resolve, reject) => {
    const finish = (id: number, act: (call: Waiting) => void): void => {
      const call = waiting.get(id)
      waiting.delete(id)
      if (call) act(call)
    }
    worker.onmessage = (event: MessageEvent<FromSamplesThread>) => {
      const message = event.data
      switch (message.kind) {
        case 'started':
          return resolve()
        case 'fatal':
          options.onTrouble?.(message.message)
          failAll(message.message)
          worker.terminate()
          return reject(new SamplesUnavailable(message.message))
        case 'answer':
          return finish(message.id, call => call.resolve(message.result))
        case 'failed':
          return finish(message.id, call => call.reject(new SamplesUnavailable(message.message)))
        case 'inserted':
          return options.onInserted?.(message.rows, message.seconds)
        case 'retentionWanted':
          return options.onRetentionWanted?.(message.companyIds)
        case 'trouble':
          return options.onTrouble?.(message.message)
      }
    }
    worker.onerror = event => {
      const reason = `the samples thread failed: ${event.message}`
      options.onTrouble?.(reason)
      failAll(reason)
      reject(new SamplesUnavailable(reason))
    }
    const { bus, consumers, clickhouse, database } = options
    worker.postMessage({ kind: 'start', options: { bus, consumers, clickhouse, database } } satisfies ToSamplesThread)
  })

  const call: Call = (name, ...args) =>
    new Promise((resolve, reject) => {
      if (isClosed) return reject(new SamplesUnavailable('the samples store is closed'))
      const id = ++lastId
      // The thread answers a call with the result of that call: the one place where the compiler cannot see it.
      waiting.set(id, { resolve: result => resolve(result as SamplesCalls[typeof name]['result']), reject })
      worker.postMessage({ kind: 'call', id, call: name, args })
    })

  return {
    /** The bus has something new. Cheap: may be called for every commit. */
    wake: (): void => tell({ kind: 'wake' }),
    release: (): void => tell({ kind: 'release' }),
    /** The whole set of living tombstones, whenever it changes. */
    setTombstones: (tombstones: readonly Tombstone[]): void => tell({ kind: 'tombstones', tombstones }),
    /**
     * Over Redis: the partitions that this worker has the lease of, and whether rollups are its to compute, whenever
     * that changes.
     */
    setPartitions: (partitions: readonly number[], isLeader: boolean): void =>
      tell({ kind: 'partitions', partitions, isLeader }),
    /** The plan retention of the companies named, null for none: the write-locked zone. Others stay as they are. */
    setRetentionDays: (days: ReadonlyMap<string, number | null>): void =>
      tell({ kind: 'retention', retentionDays: [...days] }),
    querySeries: (...args: SamplesCalls['querySeries']['args']) => call('querySeries', ...args),
    latestValues: (...args: SamplesCalls['latestValues']['args']) => call('latestValues', ...args),
    /** Deletes everything of a company (`serverId` null) or of one server. */
    purge: (...args: SamplesCalls['purge']['args']) => call('purge', ...args),
    companies: () => call('companies'),
    /** Deletes what lies before an instant, company by company, or only counts its days. */
    expire: (...args: SamplesCalls['expire']['args']) => call('expire', ...args),
    /** Takes deleted rows off the disk. */
    reclaim: () => call('reclaim'),
    rememberRetention: (...args: SamplesCalls['rememberRetention']['args']) => call('rememberRetention', ...args),
    /** One pass of the rollups now; they also run by themselves each minute. */
    runRollups: (nowMs: number) => call('runRollups', nowMs),
    stats: () => call('stats'),
    /** Resolves when everything on the bus at the call is stored. */
    flush: () => call('flush'),
    /** Drains the bus to the store, closes both, ends the thread. What cannot be stored in time stays on the bus. */
    stop: async (): Promise<void> => {
      if (isClosed) return
      await pTimeout(call('stop'), { milliseconds: STOP_TIMEOUT_MS }).catch(() => null)
      failAll('the samples store is closed')
      worker.terminate()
    },
  }
}

export type SamplesClient = Awaited<ReturnType<typeof startSamples>>
