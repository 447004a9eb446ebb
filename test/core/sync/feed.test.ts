import { expect, test } from 'bun:test'
import { applyFeed, emptyFeed, type FeedState, feedStart } from '../../../core/sync/feed.ts'

type Item = { id: string; sync_version: number; deleted?: boolean; name?: string }
const DAY_MS = 24 * 3_600_000
const NOW_MS = 1_795_000_000_000
const isGone = (record: Item) => record.deleted === true
const pull = (state: FeedState<Item>, records: Item[], nextSince: number, isReplacing = false) =>
  applyFeed(state, { records, nextSince, isReplacing }, isGone, NOW_MS)
const idsOf = (state: FeedState<Item>) => [...state.records.keys()].sort()

test('[SYNC-006] the cursor is what the hub says, whatever the records carry', () => {
  const state = pull(emptyFeed<Item>(), [{ id: 'a', sync_version: 7 }], 9)
  expect(state.since).toBe(9)
  expect(state.syncedAtMs).toBe(NOW_MS)
  expect(feedStart(state, NOW_MS)).toEqual({ since: 9, isReplacing: false })
})

test('[SYNC-011] [SYNC-020] a tombstone removes what it names, known or not', () => {
  const filled = pull(
    emptyFeed<Item>(),
    [
      { id: 'a', sync_version: 1 },
      { id: 'b', sync_version: 2 },
    ],
    2,
  )
  const state = pull(
    filled,
    [
      { id: 'a', sync_version: 3, deleted: true },
      { id: 'z', sync_version: 4, deleted: true },
    ],
    4,
  )
  expect(idsOf(state)).toEqual(['b'])
  expect(idsOf(filled)).toEqual(['a', 'b'])
})

test('[SYNC-030] [SYNC-031] reading again from an older cursor gives the same set', () => {
  const all: Item[] = [
    { id: 'a', sync_version: 1, name: 'old' },
    { id: 'b', sync_version: 2 },
    { id: 'a', sync_version: 3, name: 'new' },
    { id: 'b', sync_version: 4, deleted: true },
    { id: 'c', sync_version: 5 },
  ]
  const once = pull(emptyFeed<Item>(), all, 5)
  for (let from = 0; from < all.length; from++) {
    const again = pull(once, all.slice(from), 5)
    expect([...again.records.values()].sort((x, y) => x.sync_version - y.sync_version)).toEqual([
      { id: 'a', sync_version: 3, name: 'new' },
      { id: 'c', sync_version: 5 },
    ])
  }
})

test('a record that is older than the one held changes nothing', () => {
  const state = pull(emptyFeed<Item>(), [{ id: 'a', sync_version: 5, name: 'new' }], 5)
  expect(pull(state, [{ id: 'a', sync_version: 4, deleted: true }], 5).records.get('a')?.name).toBe('new')
})

test('a cursor over 30 days old starts again and replaces the set', () => {
  const state = pull(
    emptyFeed<Item>(),
    [
      { id: 'a', sync_version: 1 },
      { id: 'b', sync_version: 2 },
    ],
    2,
  )
  expect(feedStart(state, NOW_MS + 30 * DAY_MS)).toEqual({ since: 2, isReplacing: false })
  expect(feedStart(state, NOW_MS + 30 * DAY_MS + 1)).toEqual({ since: 0, isReplacing: true })
  expect(idsOf(pull(state, [{ id: 'b', sync_version: 2 }], 2, true))).toEqual(['b'])
  expect(feedStart(emptyFeed(), NOW_MS)).toEqual({ since: 0, isReplacing: false })
})
