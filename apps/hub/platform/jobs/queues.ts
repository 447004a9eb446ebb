// The queues of the hub: how often and when each tries again, how much of it runs at once, and whether jobs are keyed.

export type QueueDefinition = {
  /** Seconds between the tries; one more try than waits. */
  readonly waitsSeconds: readonly number[]
  /** A job that runs longer is taken for lost with its hub, and tried again. */
  readonly leaseSeconds: number
  /** How many jobs run at once in one hub. */
  readonly atOnceMax: number
  /** How many jobs of one group run at once in all hubs: a receiver that hangs keeps no more places than these. */
  readonly atOnceOfGroupMax: number | null
  /**
   * Jobs carry a key; while one with the same key waits, another is not added: the one that waits does the work of
   * both.
   */
  readonly isKeyed: boolean
  /** A job that failed for good leads to one of `jobs.failed`, written with its failure. */
  readonly tellsFailure: boolean
}

const perCollector = { atOnceMax: 16, atOnceOfGroupMax: 4, isKeyed: true }
const delivery = { leaseSeconds: 120, isKeyed: false, tellsFailure: true }

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
  /** Keyed by company: what a company is told, in order. A second one goes on where a lost hub has the first. */
  'notifications.dispatch': {
    waitsSeconds: [10, 30, 60],
    leaseSeconds: 120,
    atOnceMax: 8,
    atOnceOfGroupMax: 2,
    isKeyed: true,
    tellsFailure: false,
  },
  /** Grouped by webhook. */
  'notifications.webhook': { ...delivery, waitsSeconds: [10, 30, 120, 600, 3600], atOnceMax: 64, atOnceOfGroupMax: 2 },
  'notifications.email': { ...delivery, waitsSeconds: [10, 30, 60, 300], atOnceMax: 8, atOnceOfGroupMax: null },
  /** Keyed by task. */
  schedule: {
    waitsSeconds: [10, 60],
    leaseSeconds: 3600,
    atOnceMax: 5,
    atOnceOfGroupMax: null,
    isKeyed: true,
    tellsFailure: false,
  },
  /** What a failure for good has for consequence; the job's source is the queue that it failed on. */
  'jobs.failed': {
    waitsSeconds: [5, 30, 60],
    leaseSeconds: 60,
    atOnceMax: 4,
    atOnceOfGroupMax: null,
    isKeyed: false,
    tellsFailure: false,
  },
} as const satisfies Readonly<Record<string, QueueDefinition>>

export type QueueName = keyof typeof queues

export const isQueueName = (name: string): name is QueueName => Object.hasOwn(queues, name)
export const queueNames: readonly QueueName[] = Object.keys(queues).filter(isQueueName)

export const queueOf = (name: QueueName): QueueDefinition => queues[name]
