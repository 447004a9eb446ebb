// Sizes of file systems, without ever waiting for one that does not answer: a dead NFS server must not stop the agent.
// What may hang is asked by a child process, what cannot at once and in this thread. The runtime's pool is asked for
// neither: it has a thread a core, and whoever else waits in it, as for names, would take away the sizes of all disks.
import { statfsSync } from 'node:fs'
import pTimeout from 'p-timeout'
import type { Mount, StatFs } from '../../../core/agent/proc-disk.ts'

export type AskStatFs = (mount: Mount) => Promise<StatFs>

const ANSWER_MS = 3_000

/** %S block size, %b blocks, %f free, %a available, %c inodes, %d free inodes. */
const STAT_FORMAT = '%S %b %f %a %c %d'

async function statFsByChild(mount: string): Promise<StatFs> {
  const child = Bun.spawn(['stat', '-f', '-c', STAT_FORMAT, '--', mount], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const text = await new Response(child.stdout).text()
  const numbers = text.trim().split(' ').map(Number)
  const [bsize, blocks, bfree, bavail, files, ffree] = numbers
  const isWhole = numbers.length === 6 && numbers.every(Number.isFinite)
  if (!isWhole || bsize === undefined || blocks === undefined || bfree === undefined)
    throw new Error(`cannot ask for the size of ${mount}`)
  return { bsize, blocks, bfree, bavail: bavail ?? 0, files: files ?? 0, ffree: ffree ?? 0 }
}

/**
 * statfs(2), in a child where it may hang. Elsewhere it reads counters in memory: the kernel keeps what a mount point
 * stands on, and so the whole way to it, for as long as it is mounted.
 */
export const askStatFs: AskStatFs = async mount =>
  mount.mayHang ? statFsByChild(mount.mount) : statfsSync(mount.mount)

/** A host with hundreds of network mounts must not start hundreds of processes at one instant. */
const QUESTIONS_AT_A_TIME = 8

/** Of the questions that nobody answers so many stay open, each with its process; then only local ones are asked. */
export const OPEN_QUESTIONS_MAX = 32

/** Asks for sizes with a deadline. A question still open from an earlier cycle is not asked again. */
export class StatFsAsker {
  readonly #ask: AskStatFs
  readonly #answerMs: number
  readonly #open = new Set<string>()
  readonly #queue: (() => void)[] = []
  #asking = 0
  /** Mounts whose question is open past its deadline. */
  readonly #late = new Set<string>()
  /** Mounts that were not asked, since there are too many of those. */
  readonly #leftOut = new Set<string>()

  constructor(ask: AskStatFs, answerMs = ANSWER_MS) {
    this.#ask = ask
    this.#answerMs = answerMs
  }

  /** Whether the last question about a mount is still without an answer, or was one too many. */
  isSilent(mount: Mount): boolean {
    return this.#late.has(mount.mount) || this.#leftOut.has(mount.mount)
  }

  /** The answer, or null when there is none in time, the wait for others before it included. */
  async size(mount: Mount): Promise<StatFs | null> {
    // It waits for nobody: eight dead servers would keep it from its turn.
    if (!mount.mayHang) return this.#ask(mount).catch(() => null)
    if (this.#open.has(mount.mount)) return null
    this.#open.add(mount.mount)
    const endsAt = performance.now() + this.#answerMs
    const wait = this.#turn()
    const hasBegun =
      wait === null || (await pTimeout(wait.begins, { milliseconds: this.#answerMs, fallback: () => false }))
    if (!hasBegun) {
      wait?.giveUp()
      this.#open.delete(mount.mount)
      return null
    }
    const isLeftOut = this.#late.size + this.#asking > OPEN_QUESTIONS_MAX
    if (isLeftOut) this.#leftOut.add(mount.mount)
    else this.#leftOut.delete(mount.mount)
    const size = isLeftOut ? null : await this.#answer(mount, endsAt)
    if (size !== 'late') this.#open.delete(mount.mount)
    // A question that stays open gives its turn to others all the same.
    this.#endTurn()
    return size === 'late' ? null : size
  }

  async #answer(mount: Mount, endsAt: number): Promise<StatFs | null | 'late'> {
    const answer = this.#ask(mount).catch(() => null)
    const leftMs = Math.max(1, endsAt - performance.now())
    const size = await pTimeout(answer, { milliseconds: leftMs, fallback: () => 'late' as const })
    if (size === 'late') {
      this.#late.add(mount.mount)
      void answer.finally(() => {
        this.#late.delete(mount.mount)
        this.#open.delete(mount.mount)
      })
    }
    return size
  }

  /** Null when it is the caller's turn at once. */
  #turn(): { readonly begins: Promise<true>; readonly giveUp: () => void } | null {
    if (this.#asking < QUESTIONS_AT_A_TIME) {
      this.#asking++
      return null
    }
    const { promise, resolve } = Promise.withResolvers<true>()
    const begin = () => resolve(true)
    this.#queue.push(begin)
    const giveUp = () => {
      const at = this.#queue.indexOf(begin)
      if (at >= 0) this.#queue.splice(at, 1)
      // The turn came in the same instant as the deadline.
      else this.#endTurn()
    }
    return { begins: promise, giveUp }
  }

  #endTurn(): void {
    const next = this.#queue.shift()
    if (next) next()
    else this.#asking--
  }
}
