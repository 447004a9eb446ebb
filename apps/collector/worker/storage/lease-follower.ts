// Keeps the leases of this worker when there are several: renews what it has, gives back the surplus, and stops at once
// what it lost. How large a share is and which free shard is taken is decided by one script in
// redis-lease-assignment.ts. Redis fences writes, so that an owner that has not noticed the loss of its lease cannot
// write.
import type { HeldLease, RedisLeases } from '../../store/redis/redis-lease-assignment.ts'

/**
 * A share that has changed is taken up as others give it back, each of their shards at another moment: for so long
 * after that, what is missing is asked for so often. Nobody works on a shard in between.
 */
const TAKING_UP_MS = 10_000
const TAKING_UP_PERIOD_MS = 100

type LeaseFollowerOptions = {
  readonly store: Pick<RedisLeases, 'renew' | 'release'>
  /** How often leases are renewed and free ones acquired; well below their time to live. */
  readonly periodMs: number
  /** Leases with this number or a higher one are not part of the fair share: the leader's lease. */
  readonly shardCount: number
  readonly onAcquired: (held: HeldLease) => void
  /** The lease was lost: what ran under it must end without a further write. */
  readonly onRevoked: (lease: number) => void
  /** Saves and ends what runs under the lease. Resolves when the next owner may start. */
  readonly handOver: (lease: number) => Promise<void>
  readonly onError: (what: string, error: unknown) => void
  /** It takes nothing as long as a worker of a former version runs. Called when that begins. */
  readonly onBesideFormer?: () => void
}

export class LeaseFollower {
  private readonly held = new Map<number, HeldLease>()
  private readonly leaving = new Set<number>()
  /** Tokens whose work has ended: their leases are released before they can be acquired again. */
  private readonly dropped = new Set<string>()
  private timer: ReturnType<typeof setTimeout> | null = null
  private renewing: Promise<void> = Promise.resolve()
  private isStopping = false
  private isStopped = false
  private isFailing = false
  private wasBesideFormer = false
  private share = 0
  private takesUpUntilMs = 0

  constructor(private readonly options: LeaseFollowerOptions) {}

  /** The leases under which this worker works, in order. */
  get current(): readonly HeldLease[] {
    return [...this.held.values()].sort((a, b) => a.lease - b.lease)
  }

  tokenOf(lease: number): string | null {
    return this.held.get(lease)?.token ?? null
  }

  /** Renews and acquires leases now and at every interval. */
  start(): void {
    this.schedule(0)
  }

  /** The work under a lease ended by itself: releases the lease, so that any worker can acquire it. */
  drop(lease: number, token: string): void {
    if (this.held.get(lease)?.token !== token) return
    this.held.delete(lease)
    this.dropped.add(token)
    this.options.onRevoked(lease)
  }

  /** Hands over all leases, and renews each until it is handed over. */
  async stop(): Promise<void> {
    this.isStopping = true
    await this.renewing
    // From here on the other workers divide all shards among themselves.
    await this.options.store.renew(false).catch(error => this.options.onError('cannot leave the other workers', error))
    await Promise.all([...this.held.keys()].map(lease => this.leave(lease)))
    this.isStopped = true
    if (this.timer !== null) clearTimeout(this.timer)
    await this.renewing
  }

  private schedule(afterMs: number): void {
    if (this.isStopped) return
    this.timer = setTimeout(() => {
      this.renewing = this.renew().finally(() => this.schedule(this.periodMs))
    }, afterMs)
  }

  private get periodMs(): number {
    const { periodMs } = this.options
    const isTakingUp = performance.now() < this.takesUpUntilMs && this.shards.length < this.share
    return isTakingUp ? Math.min(periodMs, TAKING_UP_PERIOD_MS) : periodMs
  }

  /** The shards that are held. */
  private get shards(): number[] {
    return [...this.held.keys()].filter(lease => lease < this.options.shardCount)
  }

  private async renew(): Promise<void> {
    const { store, onError } = this.options
    try {
      const { share, held, isBesideFormer } = await store.renew(!this.isStopping)
      this.isFailing = false
      if (share !== this.share || (this.wasBesideFormer && !isBesideFormer))
        this.takesUpUntilMs = performance.now() + TAKING_UP_MS
      this.share = share
      if (isBesideFormer && !this.wasBesideFormer) this.options.onBesideFormer?.()
      this.wasBesideFormer = isBesideFormer
      await this.follow(held)
      if (!this.isStopping) this.handOverSurplus(share)
    } catch (error) {
      if (!this.isFailing) onError('cannot renew the leases of shards; evaluation waits for Redis', error)
      this.isFailing = true
    }
  }

  /** Adopts the leases that Redis says this worker has. */
  private async follow(found: readonly HeldLease[]): Promise<void> {
    const { store, onAcquired, onRevoked } = this.options
    const byLease = new Map(found.map(held => [held.lease, held]))
    for (const [lease, { token }] of this.held)
      if (byLease.get(lease)?.token !== token) {
        this.held.delete(lease)
        onRevoked(lease)
      }
    for (const held of found) {
      // One that is being given back is not taken up again before it is.
      if (this.held.has(held.lease) || this.leaving.has(held.lease)) continue
      if (this.dropped.has(held.token) || this.isStopping) {
        await store.release(held)
        this.dropped.delete(held.token)
        continue
      }
      this.held.set(held.lease, held)
      onAcquired(held)
    }
  }

  private handOverSurplus(share: number): void {
    const shards = this.shards.sort((a, b) => b - a)
    const surplus = shards.length - share
    for (const lease of shards.slice(0, Math.max(0, surplus)))
      this.leave(lease).catch(error => this.options.onError('cannot hand a shard over', error))
  }

  /** The lease may have expired and been acquired again under another token, which then stays. */
  private forget({ lease, token }: HeldLease): void {
    if (this.held.get(lease)?.token === token) this.held.delete(lease)
  }

  private async leave(lease: number): Promise<void> {
    const held = this.held.get(lease)
    if (!held || this.leaving.has(lease)) return
    this.leaving.add(lease)
    try {
      await this.options.handOver(lease)
      this.forget(held)
      await this.options.store.release(held)
    } catch (error) {
      // A lease that could not be released expires.
      this.forget(held)
      this.dropped.add(held.token)
      this.options.onError('cannot hand a shard over', error)
    } finally {
      this.leaving.delete(lease)
    }
  }
}
