// The address of a Redis, as an operator writes it.
import { expect, test } from 'bun:test'
import { parseRedisUrl } from '../../apps/collector/store/redis/redis-address.ts'

const none = { isTls: false, username: '', password: '', master: null, database: 0 }

test('one server, or Sentinels with the name of the primary; passwords may have any character', () => {
  const f = (url: string, expected: object) => expect(parseRedisUrl(url)).toEqual({ ...none, ...expected } as never)
  f('redis://localhost', { endpoints: [{ host: 'localhost', port: 6379 }] })
  f('rediss://svc:p%40ss%2F1@r.example:7000/3', {
    ...{ isTls: true, username: 'svc', password: 'p@ss/1', database: 3 },
    endpoints: [{ host: 'r.example', port: 7000 }],
  })
  f('redis://:only@[::1]:6380', { password: 'only', endpoints: [{ host: '::1', port: 6380 }] })
  f('redis+sentinel://svc:x@s1:26379,s2,[fd00::3]:5/main/1', {
    ...{ username: 'svc', password: 'x', master: 'main', database: 1 },
    endpoints: [
      { host: 's1', port: 26_379 },
      { host: 's2', port: 26_379 },
      { host: 'fd00::3', port: 5 },
    ],
  })
})

test('what is no such address is refused', () => {
  for (const url of [
    ...['', 'redis://', 'http://r', 'redis://a,b', 'redis://r:0', 'redis://r:99999', 'redis://r/x', 'redis://r/1/2'],
    ...['redis+sentinel://s1', 'redis+sentinel://s1/', 'redis+sentinel://s1,/main', 'redis://u:%zz@r'],
  ])
    expect(`${url} ${parseRedisUrl(url)}`).toBe(`${url} null`)
})
