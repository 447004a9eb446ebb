// Connections that went silent without an end: after a fail-over, or behind a firewall that forgot them, nothing is
// refused and nothing answers, and the kernel gives up after a quarter of an hour. The limits of a statement do not
// help: the server enforces them, and it is not heard. So another connection asks the server what it works on.
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'

type Pools = readonly postgres.Sql[]

/** What an answer that was under way when the server was asked takes to arrive. */
const UNDER_WAY_MS = 1000

/**
 * True when the server says that it does not work on what the connection waits for. One that cannot send its answer
 * does not either: what it sends is read at once here.
 */
async function unworked(
  ask: postgres.Sql,
  waitedMs: number,
): Promise<(connection: postgres.ConnectionState) => boolean> {
  const rows = await ask<{ pid: number; isOwn: boolean; ranMs: number }[]>`
    select pid, pid = pg_backend_pid() as "isOwn",
      extract(epoch from clock_timestamp() - query_start)::float8 * 1000 as "ranMs"
    from pg_stat_activity
    where usename = current_user and state = 'active' and wait_event is distinct from 'ClientWrite'`
  const own = rows.find(({ isOwn }) => isOwn)
  // A server that keeps no account of what it works on.
  if (!own) return () => false
  const others = rows.filter(({ isOwn }) => !isOwn)
  const pids = new Set(others.map(({ pid }) => pid))
  if (own.pid === rows.state.pid) return ({ pid }) => pid === null || !pids.has(pid)
  // A pooler gives numbers of its own: any statement that has run about as long may be the one.
  const isAnyLong = others.some(({ ranMs }) => ranMs > waitedMs / 2)
  return () => !isAnyLong
}

const waiting = (pools: Pools, ms: number): postgres.ConnectionState[] =>
  pools.flatMap(pool => pool.states()).filter(({ isEnding, waitedMs }) => !isEnding && waitedMs > ms)

/** True when no connection of the pool has waited for so long for an answer that the server does not work on. */
export async function isHeard(pool: postgres.Sql, ms: number): Promise<boolean> {
  if (waiting([pool], ms).length === 0) return true
  const isVain = await unworked(pool, ms)
  return !waiting([pool], ms).some(isVain)
}

/**
 * Closes what has waited for longer in vain, and with it every other connection that was not heard since.
 * `ask` gives a connection that is made for the question.
 */
export async function dropSilent(
  pools: Pools,
  silentMs: number,
  ask: <T>(act: (fresh: postgres.Sql) => Promise<T>) => Promise<T>,
): Promise<void> {
  // Until it is closed the pool cannot have it again.
  for (const { isEnding, waitedMs, lose } of pools.flatMap(pool => pool.states()))
    if (isEnding && waitedMs > silentMs) lose()
  if (waiting(pools, silentMs).length === 0) return
  const isVain = await ask(fresh => unworked(fresh, UNDER_WAY_MS))
  // What was asked a moment ago may be under way to the server.
  const suspects = new Set(
    waiting(pools, UNDER_WAY_MS)
      .filter(isVain)
      .map(({ pid }) => pid),
  )
  if (suspects.size === 0) return
  await delay(UNDER_WAY_MS)
  const still = waiting(pools, 2 * UNDER_WAY_MS).filter(({ pid }) => suspects.has(pid))
  const sinceMs = Math.max(...still.map(({ waitedMs }) => waitedMs))
  if (still.length === 0 || sinceMs <= silentMs) return
  for (const { waitedMs, heardMs, lose } of still) if (waitedMs > silentMs || heardMs > sinceMs) lose()
  // Those that nobody uses, and the one that listens, are as silent for all that is known; a new one costs little.
  for (const { isIdle, heardMs, lose } of pools.flatMap(pool => pool.states())) if (isIdle && heardMs > sinceMs) lose()
}
