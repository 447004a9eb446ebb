// The configuration file of every executable: what is wrong with it is told by its place, and no line of it.
import { expect, test } from 'bun:test'
import { parseConfig } from '../../apps/process/config-file.ts'

test('a syntax fault names line and column, and repeats no line of the file', () => {
  const secret = 'svc:HUSH@redis.example.test'
  for (const [text, told] of [
    [
      `log: { level: info }\nredis: { url: "redis://${secret}" }\nredis: { url: "redis://${secret}" }\n`,
      'line 3, column 1',
    ],
    [`redis:\n  url: "redis://${secret}\n`, 'line 3, column 1'],
    [`- a\n${secret}: [\n`, 'line 2, column 1'],
    [`redis: *${secret}\n`, ''],
  ] as const) {
    let message = ''
    try {
      parseConfig(text)
    } catch (error) {
      message = String(error)
    }
    expect(message).toContain(told)
    expect([message.length > 10, message.includes('HUSH')]).toEqual([true, false])
  }
  expect(parseConfig('a: { b: 1 }\n')).toEqual({ a: { b: 1 } })
  expect(parseConfig('')).toBeNull()
})
