// Sizes of file systems, without ever waiting for one that does not answer: a dead NFS server must not stop the agent.
// File systems of other hosts are asked by a child process, because a call that hangs would take a thread of this one.
import { statfs } from 'node:fs/promises'
import pTimeout from 'p-timeout'
import { type Mount, mayHang, type StatFs } from '../../../core/agent/proc-disk.ts'

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

/** statfs(2), in this process for local file systems, in a child for those that may hang. */
export const askStatFs: AskStatFs = mount => (mayHang(mount.fstype) ? statFsByChild(mount.mount) : statfs(mount.mount))

/** A host with hundreds of network mounts must not start hundreds of processes at one instant. */
const QUESTIONS_AT_A_TIME = 8

/** Asks for sizes with a deadline. A question still open from an earlier cycle is not asked again. */
export class StatFsAsker {
  readonly #ask: AskStatFs
  readonly #answerMs: number
  readonly #open = new Set<string>()
  readonly #queue: (() => void)[] = []
  #asking = 0

  constructor(ask: AskStatFs, answerMs = ANSWER_MS) {
    this.#ask = ask
    this.#answerMs = answerMs
  }

  /** The answer, or null when there is none in time, the wait for others before it included. */
  async size(mount: Mount): Promise<StatFs | null> {
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
    const answer = this.#ask(mount)
      .catch(() => null)
      .finally(() => this.#open.delete(mount.mount))
    const leftMs = Math.max(1, endsAt - performance.now())
    const size = await pTimeout(answer, { milliseconds: leftMs, fallback: () => null })
    // A question that stays open gives its turn to others all the same.
    this.#endTurn()
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
