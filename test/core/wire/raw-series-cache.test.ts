import { expect, test } from 'bun:test'
import { seriesId } from '../../../core/series/series-key.ts'
import { RawSeriesCache } from '../../../core/wire/raw-series-cache.ts'

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const parsedOf = (key: string) => ({ id: seriesId(key), key, fields: 1 })

/** The cache with raw keys as texts. */
function makeCache() {
  const cache = new RawSeriesCache()
  return {
    add: (hash: number, raw: string) => cache.add(hash, bytesOf(raw), 0, raw.length, parsedOf(raw)),
    find: (hash: number, raw: string) => cache.find(hash, bytesOf(`..${raw}..`), 2, 2 + raw.length)?.key,
    cache,
  }
}

test('other bytes of the same hash are another series', () => {
  const { add, find } = makeCache()
  add(1, 'cpu_load1')
  expect(find(1, 'cpu_load1')).toBe('cpu_load1')
  expect(find(1, 'cpu_load5')).toBeUndefined()
  expect(find(1, 'cpu_load15')).toBeUndefined()
  expect(find(2, 'cpu_load1')).toBeUndefined()
  add(1, 'cpu_load5')
  expect(find(1, 'cpu_load5')).toBe('cpu_load5')
})

test('the bytes are copied: the memory of a body is used again', () => {
  const { cache, find } = makeCache()
  const body = bytesOf('cpu_load1')
  cache.add(1, body, 0, body.length, parsedOf('cpu_load1'))
  body.fill(0)
  expect(find(1, 'cpu_load1')).toBe('cpu_load1')
})

test('it is bounded: what is in use stays, what is not is forgotten, and long raw keys are not kept', () => {
  const { add, find } = makeCache()
  add(-1, 'used')
  add(-2, 'unused')
  for (let other = 0; other < 30_000; other++) {
    add(other, `other${other}`)
    if (other % 1000 === 0) expect(find(-1, 'used')).toBe('used')
  }
  expect(find(-2, 'unused')).toBeUndefined()
  add(-3, 'x'.repeat(513))
  expect(find(-3, 'x'.repeat(513))).toBeUndefined()
})
