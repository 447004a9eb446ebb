// How long the collector keeps a silence that is over.
import { expect, test } from 'bun:test'
import {
  compileSilences,
  isSilenceForgotten,
  type RawSilence,
  suppressReason,
} from '../../../core/alerting/evaluate/suppression.ts'
import { applyFeed, dropExpired, emptyFeed } from '../../../core/sync/feed.ts'

const HOUR_MS = 3_600_000
const END_MS = 1_767_225_600_000
const silence: RawSilence = {
  id: 's1',
  company_id: 'acme',
  sync_version: 1,
  scope: { all: true },
  starts_at: new Date(END_MS - HOUR_MS).toISOString(),
  ends_at: new Date(END_MS).toISOString(),
}
const feed = applyFeed(
  emptyFeed<RawSilence>(),
  { records: [silence], nextSince: 1, isReplacing: false },
  () => false,
  END_MS,
)
const keptAt = (nowMs: number) => dropExpired(feed, record => isSilenceForgotten(record, nowMs)).records.size

test('[SUP-019] a silence that is over is kept for 24 hours, and matches events of its own time', () => {
  expect(keptAt(END_MS + 24 * HOUR_MS)).toBe(1)
  const set = compileSilences(feed.records.values())
  expect(suppressReason(set, 'acme', 'web-1', ['cpu'], '', END_MS - 1)).toBe('silence')
  expect(suppressReason(set, 'acme', 'web-1', ['cpu'], '', END_MS)).toBe(null)
})

test('[SUP-020, SUP-023] after these 24 hours it is removed, without a tombstone', () => {
  expect(keptAt(END_MS + 24 * HOUR_MS + 1)).toBe(0)
  expect(dropExpired(feed, () => false)).toBe(feed)
})

test('a silence that cannot be read is left out, whatever stands in it, and the others hold', () => {
  const odd = [
    { scope: null },
    { scope: 'all' },
    { scope: { server_ids: 5 } },
    { scope: { resolved_server_ids: {} } },
    { resolved_server_ids: 'web-1' },
    { rule_ids: 'cpu' },
    { company_id: null },
    { starts_at: null },
    { ends_at: 'tomorrow' },
    { ends_at: 2030 },
  ].map(fields => ({ ...silence, ...fields }))
  for (const raw of odd) expect(compileSilences([raw]).loaded).toBe(0)
  const set = compileSilences([...odd, silence])
  expect(set.loaded).toBe(1)
  expect(suppressReason(set, 'acme', 'web-1', ['cpu'], '', END_MS - 1)).toBe('silence')
})

test('[G-178] a silence with rule_ids covers events of these rules alone; without, or with none, those of all', () => {
  const reasonOf = (rule_ids: readonly string[] | undefined, ...ruleIds: string[]) =>
    suppressReason(compileSilences([{ ...silence, rule_ids }]), 'acme', 'web-1', ruleIds, '', END_MS - 1)
  expect(reasonOf(['cpu', 'mem'], 'mem')).toBe('silence')
  expect(reasonOf(['cpu', 'mem'], 'disk')).toBe(null)
  expect(reasonOf(['cpu'])).toBe(null)
  for (const all of [undefined, []]) {
    expect(reasonOf(all, 'disk')).toBe('silence')
    expect(reasonOf(all)).toBe('silence')
  }
})
