// The queues of the hub: the delays between attempts, how many jobs run at once, and whether jobs are keyed.

export type QueueDefinition = {
  /** Seconds between the attempts; there is one attempt more than delays. */
  readonly waitsSeconds: readonly number[]
  /** When a job runs longer than this, its hub counts as lost and the job is tried again. */
  readonly leaseSeconds: number
  /** How many jobs run at once in one hub. */
  readonly atOnceMax: number
  /** How many jobs of one group run at once over all hubs, so that a receiver that hangs occupies only these places. */
  readonly atOnceOfGroupMax: number | null
  /**
   * Jobs carry a key. While one waits, another with the same key is not added: the waiting job does the work of both.
   */
  readonly isKeyed: boolean
  /**
   * A hub says every few seconds that a job still runs, and one of a hub that is gone is tried again after
   * LOST_SECONDS: it holds one of the few places of its group, and others would wait for the end of its lease. The
   * handler bears that a job runs a second time before the first has ended.
   */
  readonly isWatched: boolean
  /** A job that failed for good leads to a job of `jobs.failed`, written together with the failure. */
  readonly tellsFailure: boolean
}

/** After so long without a word of it a hub counts as lost, and so does a job of which its hub says nothing. */
export const LOST_SECONDS = 30
/** How often hubs say that they live and what runs: three words may be missing. */
export const BEAT_MS = (LOST_SECONDS * 1000) / 3

const perCollector = { atOnceMax: 16, atOnceOfGroupMax: 4, isKeyed: true, isWatched: false }
const delivery = { leaseSeconds: 120, isKeyed: false, tellsFailure: true, isWatched: true }

const queues = {
  'collector.reload': { ...perCollector, waitsSeconds: [5, 5], leaseSeconds: 60, tellsFailure: false },
  'collector.agent': { ...perCollector, waitsSeconds: [5, 5], leaseSeconds: 60, tellsFailure: false },
  /** Ten tries (decision G-140). */
  'collector.purge': {
    ...perCollector,
    waitsSeconds: [30, 60, 120, 300, 600, 600, 600, 600, 600],
    leaseSeconds: 120,
    tellsFailure: true,
  },
  /** The tries of `collector.purge` (decision G-161). */
  'matcher.purge': {
    waitsSeconds: [30, 60, 120, 300, 600, 600, 600, 600, 600],
    leaseSeconds: 120,
    atOnceMax: 4,
    atOnceOfGroupMax: null,
    isKeyed: true,
    isWatched: false,
    tellsFailure: true,
  },
  /** Grouped by company: one export of a company is written at a time. */
  'security.export': {
    waitsSeconds: [10, 60],
    leaseSeconds: 1800,
    atOnceMax: 2,
    atOnceOfGroupMax: 1,
    isKeyed: false,
    isWatched: true,
    tellsFailure: true,
  },
  /**
   * Keyed by company, so that a company's notifications are sent in order. Two jobs of a company may run at once, so
   * that a job of a lost hub does not hold up the company until it counts as lost.
   */
  'notifications.dispatch': {
    waitsSeconds: [10, 30, 60],
    leaseSeconds: 120,
    atOnceMax: 8,
    atOnceOfGroupMax: 2,
    isKeyed: true,
    isWatched: true,
    tellsFailure: false,
  },
  /** Grouped by webhook. */
  'notifications.webhook': { ...delivery, waitsSeconds: [10, 30, 120, 600, 3600], atOnceMax: 64, atOnceOfGroupMax: 2 },
  /** Grouped by device. */
  'notifications.push': { ...delivery, waitsSeconds: [10, 30, 60, 300], atOnceMax: 32, atOnceOfGroupMax: 2 },
  'notifications.email': {
    ...delivery,
    waitsSeconds: [10, 30, 60, 300],
    atOnceMax: 8,
    atOnceOfGroupMax: null,
    isWatched: false,
  },
  /** Rates findings of vulnerabilities whose reference data changed; a job asks for the next one until none is left. */
  'security.rate': {
    waitsSeconds: [5, 30, 300, 3600],
    leaseSeconds: 300,
    atOnceMax: 1,
    atOnceOfGroupMax: null,
    isKeyed: false,
    isWatched: false,
    tellsFailure: false,
  },
  /** Keyed by exception: gives its findings their status; a job asks for the next one until none is left. */
  'security.exception': {
    waitsSeconds: [5, 30, 300],
    leaseSeconds: 120,
    atOnceMax: 1,
    atOnceOfGroupMax: null,
    isKeyed: true,
    isWatched: false,
    tellsFailure: false,
  },
  /**
   * What leaves the hub for a resource: probes, name servers, device reads. Grouped by company. To verify a
   * zone of 10,000 names takes ten minutes, and more than two hours where all places verify such zones at one name
   * server.
   */
  'resources.probe': {
    waitsSeconds: [5, 30],
    leaseSeconds: 14_400,
    atOnceMax: 16,
    atOnceOfGroupMax: 4,
    isKeyed: false,
    isWatched: true,
    tellsFailure: true,
  },
  /** Grouped by company: one export of a company is written at a time. */
  exports: {
    waitsSeconds: [10, 60],
    leaseSeconds: 3600,
    atOnceMax: 4,
    atOnceOfGroupMax: 1,
    isKeyed: false,
    isWatched: true,
    tellsFailure: true,
  },
  /**
   * Grouped by company. A command is not tried again by itself: people see that it failed, and why, also where its hub
   * is gone.
   */
  'system.commands': {
    waitsSeconds: [],
    leaseSeconds: 3600,
    atOnceMax: 4,
    atOnceOfGroupMax: 2,
    isKeyed: false,
    isWatched: true,
    tellsFailure: true,
  },
  /**
   * Keyed by run, grouped by company. The clock asks for a run anew that nobody works on; an item is applied once
   * however many work on its run.
   */
  'iac.apply': {
    waitsSeconds: [5, 30, 60],
    leaseSeconds: 600,
    atOnceMax: 4,
    atOnceOfGroupMax: 2,
    isKeyed: true,
    isWatched: true,
    tellsFailure: false,
  },
  /** Keyed by task. */
  schedule: {
    waitsSeconds: [10, 60],
    leaseSeconds: 3600,
    atOnceMax: 5,
    atOnceOfGroupMax: null,
    isKeyed: true,
    isWatched: false,
    tellsFailure: false,
  },
  /** Runs the consequences of a final failure; the job's source is the queue in which it failed. */
  'jobs.failed': {
    waitsSeconds: [5, 30, 60],
    leaseSeconds: 60,
    atOnceMax: 4,
    atOnceOfGroupMax: null,
    isKeyed: false,
    isWatched: false,
    tellsFailure: false,
  },
} as const satisfies Readonly<Record<string, QueueDefinition>>

export type QueueName = keyof typeof queues

export const isQueueName = (name: string): name is QueueName => Object.hasOwn(queues, name)
export const queueNames: readonly QueueName[] = Object.keys(queues).filter(isQueueName)

export const queueOf = (name: QueueName): QueueDefinition => queues[name]
