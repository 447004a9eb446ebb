// One list of cases for every implementation of a port: what the product relies on holds wherever it is kept. Where an
// implementation cannot show a case it leaves it out, and the case says why.
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { type RedisKeys, redisKeys } from '../../apps/collector/store/redis/redis-keys.ts'
import { openTestRedis } from '../support/redis.ts'

type Closing = (close: () => Promise<void> | void) => void

export type Implementation<Subject> = {
  readonly name: 'file' | 'redis'
  /** A subject that no other case has. What `closing` is given runs after the case, the last first. */
  readonly open: (closing: Closing) => Promise<Subject>
}

export type Case<Subject> = {
  readonly name: string
  /** By implementation: why the case is not for it. */
  readonly leftOut?: Partial<Record<Implementation<Subject>['name'], string>>
  readonly run: (subject: Subject) => Promise<void>
}

export function contract<Subject>(
  port: string,
  implementations: readonly Implementation<Subject>[],
  cases: readonly Case<Subject>[],
): void {
  for (const { name, open } of implementations)
    describe(`${port}: ${name}`, () => {
      for (const each of cases.filter(({ leftOut }) => leftOut?.[name] === undefined))
        test(each.name, async () => {
          const closes: (() => Promise<void> | void)[] = []
          try {
            await each.run(await open(close => closes.push(close)))
          } finally {
            for (const close of closes.reverse()) await close()
          }
        })
    })
  test(`${port}: each case is shown by an implementation, and whoever leaves one out says why`, () => {
    const names = implementations.map(({ name }) => name)
    for (const { name, leftOut = {} } of cases) {
      expect(names.filter(each => leftOut[each] === undefined).length, name).toBeGreaterThan(0)
      for (const reason of Object.values(leftOut)) expect(reason.length, name).toBeGreaterThan(20)
    }
  })
}

export function newDirectory(closing: Closing): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-contract-'))
  closing(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** One server for the cases of a file; each has keys of its own. To be closed after all. */
export async function sharedRedis(): Promise<{
  readonly redis: Redis
  readonly freshKeys: () => RedisKeys
  readonly close: () => Promise<void>
}> {
  const { redis, close } = await openTestRedis()
  let prefixes = 0
  return { redis, freshKeys: () => redisKeys(`t${++prefixes}:`), close }
}
