// Groups where the scenarios do not look: what is heard while the shards are asked, and what is kept over a restart.
import { expect, test } from 'bun:test'
import {
  type GroupDownState,
  newGroupDown,
  presenceChanged,
  presenceKnown,
  type SavedGroups,
  saveGroups,
  sweepGroups,
} from '../../../core/alerting/evaluate/group-down.ts'

const attributes = new Map(
  ['a', 'b', 'c'].map(id => [
    id,
    { companyId: 'acme', status: '', subnetId: 's1', datacenter: '', hostname: id, intervalSeconds: 30 },
  ]),
)

const sweep = (state: GroupDownState, nowMs: number): string[] =>
  sweepGroups(state, {
    attributes,
    parametersOf: () => ({ windowMs: 60_000, min: 2, ratio: 0.3 }),
    suppressionOf: () => null,
    isEnabled: true,
    nowMs,
  }).map(event => `${event.type} ${event.member_server_ids?.join(',')}`)

test('[GRP-016, GRP-026] a server that came back while the shards were asked is not taken for lost', () => {
  const state = newGroupDown(null)
  presenceChanged(state, 'a', 'up', 1000)
  presenceChanged(state, 'c', 'down', 1000)
  presenceKnown(state, [
    ['a', 500],
    ['b', 500],
  ])
  expect([...state.downSinceMs]).toEqual([
    ['c', 1000],
    ['b', 500],
  ])
  // From then on an answer is the whole truth.
  presenceKnown(state, [['a', 2000]])
  expect([...state.downSinceMs]).toEqual([['a', 2000]])
})

test('[GRP-014, GRP-026] an open group comes back from its JSON, and ends when no member of it is lost any more', () => {
  const before = newGroupDown(null)
  presenceChanged(before, 'a', 'down', 1000)
  presenceChanged(before, 'b', 'down', 1000)
  expect(sweep(before, 2000)).toEqual(['group_down a,b'])
  const after = newGroupDown(JSON.parse(JSON.stringify(saveGroups(before))) as SavedGroups)
  presenceKnown(after, [
    ['a', 1000],
    ['b', 1000],
  ])
  expect(sweep(after, 3000)).toEqual([])
  presenceChanged(after, 'a', 'up', 3500)
  expect(sweep(after, 4000)).toEqual(['group_update b'])
  presenceChanged(after, 'b', 'up', 4500)
  expect(sweep(after, 5000)).toEqual(['group_resolved '])
  expect(saveGroups(after).open).toEqual([])
})

test('[EVT-008] seq of a group grows from event to event, also within one millisecond and from group to group', () => {
  const state = newGroupDown(null)
  const seqs: number[] = []
  const take = (nowMs: number) => {
    const events = sweepGroups(state, {
      attributes,
      parametersOf: () => ({ windowMs: 60_000, min: 1, ratio: 0.1 }),
      suppressionOf: () => null,
      isEnabled: true,
      nowMs,
    })
    seqs.push(...events.map(event => event.seq))
  }
  for (let round = 0; round < 3; round++) {
    presenceChanged(state, 'a', 'down', 1000)
    take(1000)
    presenceChanged(state, 'a', 'up', 1000)
    take(1000)
  }
  expect(seqs).toHaveLength(6)
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b))
})
