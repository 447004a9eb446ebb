import { expect, test } from 'bun:test'
import { isNestedDeeper, parseForeignJson } from '../../../core/wire/json-depth.ts'

const parsed = (text: string): unknown => parseForeignJson(new TextEncoder().encode(text))
const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)

test('a text is as deep as its brackets outside of texts', () => {
  const f = (text: string, depthMax: number) => isNestedDeeper(new TextEncoder().encode(text), depthMax)
  expect([f(nested(3), 3), f(nested(4), 3), f('{"a":[{"b":1}]}', 3), f('{"a":[{"b":[1]}]}', 3)]).toEqual([
    ...[false, true, false, true],
  ])
  expect(f('["[[[[[[[[", "\\"[[[[[[["]', 2)).toBe(false)
})

test('[R-013] JSON of somebody else is parsed, and refused before it is where it is too deep', () => {
  expect(parsed('{"a": ["[[[", 1.5, null, "ü"]}')).toEqual({ a: ['[[[', 1.5, null, 'ü'] })
  expect(Array.isArray(parsed(nested(100)))).toBe(true)
  for (const bad of [nested(101), '['.repeat(8_000_000), '{"a":'.repeat(1_000_000), '', '{', 'x'])
    expect(() => parsed(bad)).toThrow(SyntaxError)
})
