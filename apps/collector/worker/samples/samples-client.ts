// The main thread's side of the samples store: calls with promises, and what the thread reports on its own.

import pTimeout from 'p-timeout'
import { threadFault } from '../../../../core/error-info.ts'
import type { Tombstone } from '../../../../core/retention/tombstone.ts'
import { endThread } from '../../../process/end-thread.ts'
import { CallClient } from '../../thread-calls.ts'
import type { FromSamplesThread, SamplesCalls, SamplesThreadOptions, ToSamplesThread } from './samples-messages.ts'

const STOP_TIMEOUT_MS = 10_000
/** The runtime ends with a fault when a thread is ended while the embedded engine works on a statement of it. */
const STOP_TIMEOUT_OF_ENGINE_MS = 60_000

type SamplesClientOptions = SamplesThreadOptions & {
  /** `new URL('./samples-thread.ts', import.meta.url)`, which resolves only in an entry file. */
  readonly threadUrl: URL | string
  /** A block was stored. */
  readonly onInserted?: (rows: number, seconds: number) => void
  /** The plan retention of these companies is wanted: `setRetentionDays`. */
  readonly onRetentionWanted?: (companyIds: readonly string[]) => void
  /** A try failed and will be repeated; the text is for the log. */
  readonly onTrouble?: (message: string) => void
  /** The thread has ended, unasked, after its start. */
  readonly onFailure: (error: Error) => void
}

/** The samples store cannot do its work just now; the text is for the log, not for a caller over HTTP. */
export class SamplesUnavailable extends Error {}

/** The thread as its calls see it; `isStopping` is set once it is meant to end. */
type SamplesThread = { readonly worker: Worker; readonly calls: CallClient<SamplesCalls>; isStopping: boolean }

/**
 * Gives the thread its work. Resolves once its store is open; rejects when it cannot be opened. What ends the thread
 * later is told to `onFailure`: nobody would take samples off the bus any more.
 */
function beginWork(thread: SamplesThread, options: SamplesClientOptions): Promise<void> {
  const { worker, calls } = thread
  return new Promise((resolve, reject) => {
    let isStarted = false
    const fail = (reason: string): void => {
      if (calls.isEnded) return
      options.onTrouble?.(reason)
      calls.failAll(reason)
      reject(new SamplesUnavailable(reason))
      if (isStarted && !thread.isStopping) options.onFailure(new SamplesUnavailable(reason))
    }
    worker.onmessage = (event: MessageEvent<FromSamplesThread>) => {
      const message = event.data
      switch (message.kind) {
        case 'started':
          isStarted = true
          return resolve()
        case 'fatal':
          fail(message.message)
          return worker.terminate()
        case 'answer':
        case 'failed':
          return calls.receive(message)
        case 'inserted':
          return options.onInserted?.(message.rows, message.seconds)
        case 'retentionWanted':
          return options.onRetentionWanted?.(message.companyIds)
        case 'trouble':
          return options.onTrouble?.(message.message)
      }
    }
    worker.onerror = event => fail(`the samples thread failed: ${threadFault(event.message)}`)
    worker.addEventListener('close', () => fail('the samples thread ended'))
    const { bus, consumers, clickhouse, database, cluster, tombstones } = options
    worker.postMessage({
      kind: 'start',
      options: { bus, consumers, clickhouse, database, cluster, ...(tombstones ? { tombstones } : {}) },
    } satisfies ToSamplesThread)
  })
}

/**
 * Starts the samples thread. Resolves once the embedded store is open, or at once for a server, which may come up
 * later. Rejects when the store cannot be opened by this program.
 */
export async function startSamples(options: SamplesClientOptions) {
  const worker = new Worker(options.threadUrl)
  const calls = new CallClient<SamplesCalls>(worker, reason => new SamplesUnavailable(reason))
  const thread: SamplesThread = { worker, calls, isStopping: false }
  const tell = (message: ToSamplesThread): void => {
    if (!calls.isEnded) worker.postMessage(message)
  }
  await beginWork(thread, options)

  return {
    /** The bus has new entries. */
    wake: (): void => tell({ kind: 'wake' }),
    release: (): void => tell({ kind: 'release' }),
    /** All tombstones that are known, whenever they change. */
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
    querySeries: (...args: SamplesCalls['querySeries']['args']) => calls.call('querySeries', ...args),
    /** Several metrics of a plan; what would make the answer too large is left out and named. */
    queryMetrics: (...args: SamplesCalls['queryMetrics']['args']) => calls.call('queryMetrics', ...args),
    /** The keys of the series of a server that are stored or buffered, ordered. */
    seriesKeys: (...args: SamplesCalls['seriesKeys']['args']) => calls.call('seriesKeys', ...args),
    latestValues: (...args: SamplesCalls['latestValues']['args']) => calls.call('latestValues', ...args),
    companyValues: (...args: SamplesCalls['companyValues']['args']) => calls.call('companyValues', ...args),
    /** Deletes everything of a company (`serverId` null) or of one server. */
    purge: (...args: SamplesCalls['purge']['args']) => calls.call('purge', ...args),
    companies: () => calls.call('companies'),
    /** Deletes what lies before an instant, company by company, or only counts its days. */
    expire: (...args: SamplesCalls['expire']['args']) => calls.call('expire', ...args),
    /** Takes deleted rows off the disk. */
    reclaim: () => calls.call('reclaim'),
    rememberRetention: (...args: SamplesCalls['rememberRetention']['args']) => calls.call('rememberRetention', ...args),
    /** One pass of the rollups now; they also run by themselves each minute. */
    runRollups: (nowMs: number) => calls.call('runRollups', nowMs),
    stats: () => calls.call('stats'),
    /** Resolves when everything on the bus at the call is stored. */
    flush: () => calls.call('flush'),
    /** Drains the bus to the store, closes both, ends the thread. What cannot be stored in time stays on the bus. */
    stop: async (): Promise<void> => {
      if (calls.isEnded) return
      thread.isStopping = true
      const isEmbedded = options.clickhouse.startsWith('embedded:')
      const milliseconds = isEmbedded ? STOP_TIMEOUT_OF_ENGINE_MS : STOP_TIMEOUT_MS
      await pTimeout(calls.call('stop'), { milliseconds }).catch(() => null)
      calls.failAll('the samples store is closed')
      await endThread(worker)
    },
  }
}

export type SamplesClient = Awaited<ReturnType<typeof startSamples>>
