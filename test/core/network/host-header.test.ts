import { expect, test } from 'bun:test'
import { answersToHost } from '../../../core/network/host-header.ts'

test('a listener on loopback answers to addresses, localhost and its names; elsewhere to every name', () => {
  const f = (host: string | null, hostname: string, expected: boolean, allowed: string[] = []) =>
    expect([host, hostname, answersToHost(host, hostname, allowed)]).toEqual([host, hostname, expected])
  for (const loopback of ['127.0.0.1', '127.8.8.8', '::1', 'localhost']) {
    for (const good of [
      null,
      '127.0.0.1:8083',
      '[::1]',
      '192.0.2.7',
      'localhost',
      'LOCALHOST:1',
      'app.localhost',
      'localhost.',
    ])
      f(good, loopback, true)
    for (const bad of ['evil.example', 'localhost.evil.example', 'evil.example:8083', '', '2130706433', '0x7f.1'])
      f(bad, loopback, false)
    f('Metrics.example.net:443', loopback, true, ['metrics.EXAMPLE.net'])
  }
  for (const open of ['0.0.0.0', '10.0.0.1', '::', 'hub.example.net']) f('evil.example', open, true)
})
