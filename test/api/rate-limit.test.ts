// Counters of requests: what many other keys do to them, and what an address is counted by.
import { expect, test } from 'bun:test'
import { FixedWindows } from '../../apps/http/fixed-windows.ts'

test('a hundred thousand other keys leave the counter of a caller that goes on', () => {
  const windows = new FixedWindows(60_000, () => 1_000)
  for (let count = 0; count < 5; count++) expect(windows.take('busy', 5).allowed).toBe(true)
  for (let key = 0; key < 200_000; key++) {
    windows.take(`other ${key}`, 5)
    if (key % 1_000 === 0) expect(windows.take('busy', 5).allowed).toBe(false)
  }
  // The newest of the others are counted too: only the oldest went.
  expect(windows.peek('other 199999', 5).remaining).toBe(4)
  expect(windows.peek('other 0', 5).remaining).toBe(5)
})

test('a window ends after its length, and not before', () => {
  let nowMs = 0
  const windows = new FixedWindows(60_000, () => nowMs)
  expect(windows.take('key', 1).allowed).toBe(true)
  nowMs = 59_999
  expect(windows.take('key', 1)).toMatchObject({ allowed: false, retryAfterSeconds: 1 })
  nowMs = 60_000
  expect(windows.take('key', 1).allowed).toBe(true)
})

test('a clock that is set back makes no window longer', () => {
  let nowMs = 7_200_000
  const windows = new FixedWindows(60_000, () => nowMs)
  expect(windows.take('key', 1).allowed).toBe(true)
  expect(windows.take('key', 1).allowed).toBe(false)
  nowMs = 0
  expect(windows.take('key', 1).allowed).toBe(true)
  expect(windows.take('key', 1)).toMatchObject({ allowed: false, retryAfterSeconds: 60 })
})
