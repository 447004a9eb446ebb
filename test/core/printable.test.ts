import { expect, test } from 'bun:test'
import { lineOf, printable } from '../../core/printable.ts'

test('one line of hostile text is kept: markup as it is, nothing that controls, turns or is half a character', () => {
  const f = (text: string, expected: string) => expect(lineOf(text, 500)).toBe(expected)
  f('plain', 'plain')
  f('', '')
  f(' \r\n\t\u0000', '')
  f('<img src=x onerror="alert(1)"> & \'co\'', '<img src=x onerror="alert(1)"> & \'co\'')
  f('a\u0000b\u001b[31mc\u0085d\n\ne', 'a b [31mc d e')
  f('\u202eevil\u2066x\u2069 \u200fy\u061cz', 'evilx yz')
  f('half \ud83d', 'half \ufffd')
  f('x'.repeat(10_000), 'x'.repeat(500))
  f('😀'.repeat(600), '😀'.repeat(500))
  f(`${'\u0001'.repeat(10_000)}end`, 'end')
})

test('a terminal is shown a mark in place of each', () => {
  expect(printable('a\u001b[2J\u202eb')).toBe('a\ufffd[2J\ufffdb')
})
