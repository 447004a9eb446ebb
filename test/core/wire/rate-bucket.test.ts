import { expect, test } from 'bun:test'
import { RateBucket, RateLimit } from '../../../core/wire/rate-bucket.ts'

const START_MS = 1_795_000_000_000

test('[ING-036] [ING-037] capacity at once, then one each period; a refusal says how long', () => {
  const limit = new RateLimit(4, 10)
  const bucket = new RateBucket()
  for (let index = 0; index < 10; index++) expect(bucket.take(limit, START_MS)).toBe(0)
  expect(bucket.take(limit, START_MS)).toBe(15)
  expect(bucket.take(limit, START_MS + 5_001)).toBe(10)
  expect(bucket.take(limit, START_MS + 14_999)).toBe(1)
  expect(bucket.take(limit, START_MS + 15_000)).toBe(0)
  expect(bucket.take(limit, START_MS + 15_000)).toBe(15)
  // Refused requests cost nothing: after the full window all are there again.
  for (let index = 0; index < 10; index++) expect(bucket.take(limit, START_MS + 300_000)).toBe(0)
  expect(bucket.take(limit, START_MS + 300_000)).toBe(15)
})

test('[CFG-035] two at once, one each 30 s', () => {
  const limit = new RateLimit(2, 2)
  const bucket = new RateBucket()
  expect([0, 0, 0].map(() => bucket.take(limit, START_MS))).toEqual([0, 0, 30])
})

test('[AGT-011] an agent that sends every 15 s is never refused', () => {
  const limit = new RateLimit(4, 10)
  const bucket = new RateBucket()
  for (let index = 0; index < 1000; index++) expect(bucket.take(limit, START_MS + index * 15_000)).toBe(0)
})

test('a clock that is set back locks nobody out for longer than an empty bucket', () => {
  const limit = new RateLimit(4, 10)
  const bucket = new RateBucket()
  for (let index = 0; index < 10; index++) bucket.take(limit, START_MS)
  expect(bucket.take(limit, START_MS - 86_400_000)).toBe(15)
  expect(bucket.take(limit, START_MS - 86_400_000 + 15_000)).toBe(0)
})
