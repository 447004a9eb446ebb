// The one writer of the state. What waits together is committed together, so that many reports share one wait for the
// disk; each piece of work is a savepoint of its own, so that one that fails takes no other with it (MAT-032, 160).
import type { Database } from 'bun:sqlite'

/**
 * A transaction takes no more work after this long, so that who waits for the thread meanwhile waits no longer; where
 * the disk is slow, after some times as long as a commit takes, so that work and not the disk fills the time.
 */
const TRANSACTION_MS = { least: 10, most: 50 } as const
const COMMITS_A_TRANSACTION = 4
/** How much the newest commit counts in what a commit is taken to last. */
const NEWEST_SHARE = 0.2
/** Work that waits to be committed; beyond it there is no use in taking more (each has a request behind it). */
const WAITING_MAX = 20_000

type Work = { run(): void; done(): void; failed(error: unknown): void }

export class StateWriter {
  readonly #database: Database
  readonly #statements
  #waiting: Work[] = []
  #isScheduled = false
  #afterCommit: (() => void)[] = []
  #onRollback: (() => void)[] = []
  #isClosed = false
  /** What a commit lasts, smoothed. */
  #commitMs = 0

  constructor(database: Database) {
    this.#database = database
    this.#statements = {
      begin: database.prepare('BEGIN IMMEDIATE'),
      commit: database.prepare('COMMIT'),
      rollback: database.prepare('ROLLBACK'),
      savepoint: database.prepare('SAVEPOINT work'),
      release: database.prepare('RELEASE work'),
      undo: database.prepare('ROLLBACK TO work'),
    }
  }

  /** How long one work of a job that has a great deal to write may take. */
  get sliceMs(): number {
    return Math.max(TRANSACTION_MS.least, Math.min(TRANSACTION_MS.most, this.#commitMs * COMMITS_A_TRANSACTION))
  }

  /** Resolves to what the work returned once it is on the disk. The work must not await, and should take few ms. */
  write<T>(work: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    if (this.#isClosed) reject(new Error('cannot write: the state is closed'))
    else if (this.#waiting.length >= WAITING_MAX) reject(new Error('cannot write: too much waits to be committed'))
    else {
      let value: T
      this.#waiting.push({
        run: () => {
          value = work()
        },
        done: () => resolve(value),
        failed: reject,
      })
      this.#schedule()
    }
    return promise
  }

  /** To be called within a work: what memory learns only when the work is on the disk. */
  afterCommit(effect: () => void): void {
    this.#afterCommit.push(effect)
  }

  /** What memory holds of rows that a rolled back transaction or work may have made is to be forgotten then. */
  onRollback(forget: () => void): void {
    this.#onRollback.push(forget)
  }

  /** Commits what waits. Whatever comes later is refused. */
  close(): void {
    this.#isClosed = true
    while (this.#waiting.length > 0) this.#transaction()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#waiting.length === 0) return
      this.#transaction()
      if (this.#waiting.length > 0) this.#schedule()
    })
  }

  #transaction(): void {
    const works = this.#waiting
    const finished: Work[] = []
    const endsAt = performance.now() + this.sliceMs
    let taken = 0
    let failure: { readonly error: unknown } | null = null
    this.#afterCommit = []
    try {
      this.#statements.begin.run()
      do {
        const work = works[taken++]!
        if (this.#runWork(work)) finished.push(work)
      } while (taken < works.length && performance.now() < endsAt)
      this.#commit()
    } catch (error) {
      failure = { error }
      if (this.#database.inTransaction) this.#statements.rollback.run()
      this.#forget()
    }
    this.#waiting = works.slice(Math.max(taken, 1))
    const effects = this.#afterCommit
    this.#afterCommit = []
    if (failure !== null) {
      // When not even a transaction could begin, nobody was taken: then the first is told.
      for (const work of taken === 0 ? works.slice(0, 1) : finished) work.failed(failure.error)
      return
    }
    for (const effect of effects) effect()
    for (const work of finished) work.done()
  }

  #commit(): void {
    const beganMs = performance.now()
    this.#statements.commit.run()
    this.#commitMs += (performance.now() - beganMs - this.#commitMs) * NEWEST_SHARE
  }

  /** False when the work failed and was undone; throws when it cannot be undone. */
  #runWork(work: Work): boolean {
    const effectCount = this.#afterCommit.length
    this.#statements.savepoint.run()
    try {
      work.run()
      this.#statements.release.run()
      return true
    } catch (error) {
      this.#afterCommit.length = effectCount
      work.failed(error)
      this.#forget()
      // A full disk ends the whole transaction by itself.
      this.#statements.undo.run()
      this.#statements.release.run()
      return false
    }
  }

  #forget(): void {
    for (const forget of this.#onRollback) forget()
  }
}
