import { expect, test } from 'bun:test'
import { codeOf, listenAdvice } from '../../../core/config/address.ts'

test('an address that cannot be served on is told with what to do about it', () => {
  const adviceFor = (error: unknown) => listenAdvice(codeOf(error))
  expect(adviceFor(Object.assign(new Error(), { code: 'EADDRINUSE' }))).toContain('another process has the port')
  expect(adviceFor(Object.assign(new Error(), { code: 'EACCES' }))).toContain('CAP_NET_BIND_SERVICE')
  expect(adviceFor(Object.assign(new Error(), { code: 'EADDRNOTAVAIL' }))).toContain('no such address')
  for (const other of [new Error('x'), null, undefined, 'EACCES']) expect(adviceFor(other)).toBeNull()
})
