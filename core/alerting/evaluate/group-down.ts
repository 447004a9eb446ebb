// Wide-area incidents: many servers of one subnet or one datacenter that fall silent together are told as one group
// (document 2 "Wide-area incident grouping"; decisions G-80, G-86, G-87). Fed with what the presence of all shards
// declares, swept after it. The parameters of a company come from group-parameters.ts.
import type { ServerAttributes } from '../state/evaluation-state.ts'
import { type AlertEvent, type EventType, eventId, groupDownRuleId, type SuppressReason } from './event.ts'
import { nextTimeSeq } from './event-maker.ts'
import type { GroupParameters } from './group-parameters.ts'

/** An open group; what `saveGroups` writes is a list of these. */
type OpenGroup = {
  readonly companyId: string
  readonly groupKey: string
  /** The member with the smallest server id at opening, for the life of the group. */
  readonly anchorId: string
  readonly openedAtMs: number
  /** Servers declared lost before this are no members: the window at opening. */
  readonly membersSinceMs: number
  readonly suppressed: boolean
  readonly suppressReason: SuppressReason | null
  /** As last told, ascending. */
  memberIds: readonly string[]
}

/** The JSON that survives a restart. It is committed together with the events that led to it. */
export type SavedGroups = { readonly lastSeq: number; readonly open: readonly OpenGroup[] }

export type GroupDownState = {
  /** Servers declared lost, and when. */
  readonly downSinceMs: Map<string, number>
  /** By company and group key. */
  readonly open: Map<string, OpenGroup>
  lastSeq: number
  /** Servers heard of before it was known who is lost; null = that is known. */
  heard: Set<string> | null
}

export type GroupSweep = {
  /** Servers with a non-revoked active agent. */
  readonly attributes: ReadonlyMap<string, ServerAttributes>
  readonly parametersOf: (companyId: string) => GroupParameters
  readonly suppressionOf: (companyId: string, serverId: string, atMs: number) => SuppressReason | null
  /** False: no group opens; open ones are followed to their end. */
  readonly isEnabled: boolean
  readonly nowMs: number
}

const mapKey = (companyId: string, groupKey: string): string => `${companyId}\n${groupKey}`

export function newGroupDown(saved: SavedGroups | null): GroupDownState {
  const open = new Map((saved?.open ?? []).map(group => [mapKey(group.companyId, group.groupKey), { ...group }]))
  return { downSinceMs: new Map(), open, lastSeq: saved?.lastSeq ?? 0, heard: new Set() }
}

export const saveGroups = (state: GroupDownState): SavedGroups => ({
  lastSeq: state.lastSeq,
  open: [...state.open.values()],
})

/** agent.down or agent.up of a server, in the order of its shard. */
export function presenceChanged(state: GroupDownState, serverId: string, presence: 'up' | 'down', atMs: number): void {
  state.heard?.add(serverId)
  if (presence === 'down') state.downSinceMs.set(serverId, atMs)
  else state.downSinceMs.delete(serverId)
}

/**
 * The servers that all shards together hold for lost. Members not among them have recovered. The first time, after a
 * start, the shards are asked while they go on: what a server's shard told meanwhile is at least as new as its answer.
 */
export function presenceKnown(
  state: GroupDownState,
  down: Iterable<readonly [serverId: string, sinceMs: number]>,
): void {
  const { heard } = state
  state.heard = null
  for (const serverId of state.downSinceMs.keys()) if (!heard?.has(serverId)) state.downSinceMs.delete(serverId)
  for (const [serverId, sinceMs] of down) if (!heard?.has(serverId)) state.downSinceMs.set(serverId, sinceMs)
}

/** The groups that a server belongs to. */
export function groupKeysOf(attributes: ServerAttributes): string[] {
  const keys: string[] = []
  if (attributes.subnetId) keys.push(`subnet:${attributes.subnetId}`)
  if (attributes.datacenter) keys.push(`datacenter:${attributes.datacenter}`)
  return keys
}

type Group = { readonly companyId: string; readonly groupKey: string; readonly downIds: string[] }

/** The lost servers by group. */
function downByGroup(state: GroupDownState, sweep: GroupSweep): Map<string, Group> {
  const groups = new Map<string, Group>()
  for (const serverId of state.downSinceMs.keys()) {
    const attributes = sweep.attributes.get(serverId)
    if (!attributes) continue
    for (const groupKey of groupKeysOf(attributes)) {
      const key = mapKey(attributes.companyId, groupKey)
      const group = groups.get(key)
      if (group) group.downIds.push(serverId)
      else groups.set(key, { companyId: attributes.companyId, groupKey, downIds: [serverId] })
    }
  }
  return groups
}

/** How many servers each group has; walked once a sweep, and only when some group is concerned. */
function totals(sweep: GroupSweep): Map<string, number> {
  const counts = new Map<string, number>()
  for (const attributes of sweep.attributes.values())
    for (const groupKey of groupKeysOf(attributes)) {
      const key = mapKey(attributes.companyId, groupKey)
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
  return counts
}

/** What the lost servers of this instant mean for the groups: events, in order. Called after each presence sweep. */
export function sweepGroups(state: GroupDownState, sweep: GroupSweep): AlertEvent[] {
  const down = downByGroup(state, sweep)
  const events: AlertEvent[] = []
  let counted: Map<string, number> | null = null
  const totalOf = (key: string): number => {
    counted ??= totals(sweep)
    return counted.get(key) ?? 0
  }
  for (const [key, group] of [...state.open].sort(([a], [b]) => (a < b ? -1 : 1)))
    events.push(...followOpen(state, sweep, key, group, down.get(key)?.downIds ?? [], totalOf))
  if (!sweep.isEnabled) return events
  for (const [key, group] of [...down].sort(([a], [b]) => (a < b ? -1 : 1)))
    if (!state.open.has(key)) events.push(...openGroup(state, sweep, key, group, totalOf))
  return events
}

/** Members left or came: told; none is left: the group ends. */
function followOpen(
  state: GroupDownState,
  sweep: GroupSweep,
  key: string,
  group: OpenGroup,
  downIds: readonly string[],
  totalOf: (key: string) => number,
): AlertEvent[] {
  const memberIds = downIds.filter(serverId => state.downSinceMs.get(serverId)! >= group.membersSinceMs).sort()
  const isSame =
    memberIds.length === group.memberIds.length && memberIds.every((serverId, at) => serverId === group.memberIds[at])
  if (isSame) return []
  group.memberIds = memberIds
  if (memberIds.length > 0) return [groupEvent(state, sweep, group, 'group_update', totalOf(key))]
  state.open.delete(key)
  const durationSeconds = Math.max(0, Math.floor((sweep.nowMs - group.openedAtMs) / 1000))
  const end = { reason: 'recovered', duration_seconds: durationSeconds } as const
  return [{ ...groupEvent(state, sweep, group, 'group_resolved', totalOf(key)), ...end }]
}

/** Opens a group when enough servers of it fell silent within the window. */
function openGroup(
  state: GroupDownState,
  sweep: GroupSweep,
  key: string,
  { companyId, groupKey, downIds }: Group,
  totalOf: (key: string) => number,
): AlertEvent[] {
  const { windowMs, min, ratio } = sweep.parametersOf(companyId)
  const sinceMs = sweep.nowMs - windowMs
  const memberIds = downIds.filter(serverId => state.downSinceMs.get(serverId)! >= sinceMs).sort()
  const [anchorId] = memberIds
  if (anchorId === undefined || memberIds.length < min) return []
  if (memberIds.length / totalOf(key) < ratio) return []
  const reasons = memberIds.map(serverId => sweep.suppressionOf(companyId, serverId, sweep.nowMs))
  const suppressed = reasons.every(reason => reason !== null)
  const group: OpenGroup = {
    companyId,
    groupKey,
    anchorId,
    openedAtMs: sweep.nowMs,
    membersSinceMs: sinceMs,
    suppressed,
    suppressReason: suppressed ? reasons[0]! : null,
    memberIds,
  }
  state.open.set(key, group)
  return [groupEvent(state, sweep, group, 'group_down', totalOf(key))]
}

function groupEvent(
  state: GroupDownState,
  sweep: GroupSweep,
  group: OpenGroup,
  type: EventType,
  total: number,
): AlertEvent {
  const seq = nextTimeSeq(state.lastSeq, sweep.nowMs)
  state.lastSeq = seq
  return {
    event_id: eventId(group.anchorId, groupDownRuleId, group.groupKey, seq, type),
    type,
    seq,
    occurred_at: new Date(sweep.nowMs).toISOString(),
    company_id: group.companyId,
    server_id: group.anchorId,
    rule_id: groupDownRuleId,
    rule_version: 0,
    series_key: group.groupKey,
    severity: 'critical',
    value: group.memberIds.length,
    threshold: sweep.parametersOf(group.companyId).min,
    suppressed: group.suppressed,
    suppress_reason: group.suppressReason,
    group_key: group.groupKey,
    labels: {},
    member_server_ids: group.memberIds,
    group_total: total,
  }
}
