import { expect, test } from 'bun:test'
import { threadFault } from '../../core/error-info.ts'

test('what ended a thread is told by its message, without the code that Bun prints around it', () => {
  const frame = "  9 | const write = () => {\n 10 |   file('error: no')\n            ^\n"
  const members = ' syscall: "write",\n   errno: -28,\n    code: "ENOSPC"\n\n      at write (/a/b.ts:10:5)\n'
  const full = 'ENOSPC: no space left on device, write'
  expect(threadFault(`${frame}${full}\n${members}`)).toBe(full)
  expect(threadFault(`${frame}error: out of order\n      at a (b.ts:1:2)\n\n${frame}error: its cause\n`)).toBe(
    'out of order',
  )
  expect(threadFault('SQLiteError: database or disk is full\n      errno: 13,\n\n      at run (unknown:1:1)')).toBe(
    'SQLiteError: database or disk is full',
  )
  expect(threadFault('error: two\nlines\n      at a (b.ts:1:2)')).toBe('two\nlines')
  expect(['out of order', ''].map(threadFault)).toEqual(['out of order', ''])
})
