// Random inputs that can be had again: every random test prints its seed and takes it back as `--seed N` or
// SVC_FUZZ_SEED; how many inputs it tries is SVC_FUZZ_RUNS.

/** mulberry32: small, fast, good enough to make inputs. */
export class Random {
  constructor(private state: number) {}

  /** In [0, 1). */
  float(): number {
    this.state = (this.state + 0x6d2b79f5) | 0
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  /** A whole number in [0, below). */
  below(below: number): number {
    return Math.floor(this.float() * below)
  }
  chance(probability: number): boolean {
    return this.float() < probability
  }
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!
  }
  shuffle<T>(items: readonly T[]): T[] {
    const mixed = [...items]
    for (let index = mixed.length - 1; index > 0; index--) {
      const other = this.below(index + 1)
      const held = mixed[index]!
      mixed[index] = mixed[other]!
      mixed[other] = held
    }
    return mixed
  }
}

/** The seed of this run, said on the terminal. */
export function seedOf(name: string): number {
  const given = process.argv.indexOf('--seed')
  const text = given >= 0 ? process.argv[given + 1] : process.env.SVC_FUZZ_SEED
  const seed = text === undefined ? Math.floor(Math.random() * 0x7fffffff) : Number(text)
  console.log(`${name}: --seed ${seed}`)
  return seed
}

/** How many inputs to try. */
export const runsOf = (usual: number): number => Number(process.env.SVC_FUZZ_RUNS ?? usual)
