import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import * as native from '../../../core/series/sha256.ts'
import * as inBrowser from '../../../core/series/sha256-in-browser.ts'

test('the hash of browsers is the native one: at each length about a block, with every kind of character', () => {
  const texts = [
    ...Array.from({ length: 200 }, (_, length) => 'x'.repeat(length)),
    ...Array.from({ length: 70 }, (_, length) => 'ờ'.repeat(length)),
    '😀'.repeat(500),
    'a'.repeat(100_000),
  ]
  for (const text of texts) {
    expect(inBrowser.sha256Hex(text)).toBe(native.sha256Hex(text))
    expect(inBrowser.sha256Words(text)).toEqual(native.sha256Words(text))
  }
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), text => {
      expect(inBrowser.sha256Hex(text)).toBe(native.sha256Hex(text))
      expect(inBrowser.sha256Words(text)).toEqual(native.sha256Words(text))
    }),
  )
})
