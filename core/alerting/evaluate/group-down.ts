// Wide-area incidents: many servers of one subnet or one datacenter that fall silent together are reported as one
// incident (document 2 "Wide-area incident grouping"; decisions G-80, G-86, G-87). Input is the presence that all
// shards declare; a sweep of the groups follows each sweep of presence. group-parameters.ts has the parameters of a
// company.
import type { ServerAttributes } from '../state/evaluation-state.ts'
import { type AlertEvent, type EventType, groupDownRuleId, type SuppressReason } from './event.ts'
import { eventId } from './event-id.ts'
import { nextTimeSeq } from './event-maker.ts'
import type { GroupParameters } from './group-parameters.ts'

/** An open group; what `saveGroups` writes is a list of these. */
type OpenGroup = {
  readonly companyId: string
  readonly groupKey: string
  /** The member that had the smallest server id at opening. It names the group until the group ends. */
  readonly anchorId: string
  readonly openedAtMs: number
  /** Servers declared lost before this instant, the start of the window at opening, do not become members. */
  readonly membersSinceMs: number
  readonly suppressed: boolean
  readonly suppressReason: SuppressReason | null
  /** The members that the last event named, ascending. */
  memberIds: readonly string[]
}

/** The state that survives a restart, as JSON. The caller commits it together with the events that led to it. */
export type SavedGroups = { readonly lastSeq: number; readonly open: readonly OpenGroup[] }

export type GroupDownState = {
  /** The time at which each lost server was declared lost. */
  readonly downSinceMs: Map<string, number>
  /** Open groups by company and group key. */
  readonly open: Map<string, OpenGroup>
  lastSeq: number
  /**
   * Servers whose presence changed before the first complete answer of the shards arrived; null once it has arrived.
   */
  heard: Set<string> | null
}

type GroupSweep = {
  /** Attributes of the servers that have an active agent, by server id. */
  readonly attributes: ReadonlyMap<string, ServerAttributes>
  readonly parametersOf: (companyId: string) => GroupParameters
  readonly suppressionOf: (companyId: string, serverId: string, atMs: number) => SuppressReason | null
  /** False: no new group opens; open groups are still updated and resolved. */
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

/** Records agent.down or agent.up of a server, in the order in which its shard emitted them. */
export function presenceChanged(state: GroupDownState, serverId: string, presence: 'up' | 'down', atMs: number): void {
  state.heard?.add(serverId)
  if (presence === 'down') state.downSinceMs.set(serverId, atMs)
  else state.downSinceMs.delete(serverId)
}

/**
 * Takes the list of servers that all shards together consider lost; members that are not in it have recovered. After a
 * start the shards are asked while they keep evaluating, so a presence change that arrived meanwhile (`heard`) is at
 * least as new as the list, and wins.
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

/** The keys of the groups that a server belongs to. */
function groupKeysOf(attributes: ServerAttributes): string[] {
  const keys: string[] = []
  if (attributes.subnetId) keys.push(`subnet:${attributes.subnetId}`)
  if (attributes.datacenter) keys.push(`datacenter:${attributes.datacenter}`)
  return keys
}

type Group = { readonly companyId: string; readonly groupKey: string; readonly downIds: string[] }

/** The lost servers of each group. */
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

/** How many servers each group has. Counted at most once a sweep, and only when a group may open. */
function totals(sweep: GroupSweep): Map<string, number> {
  const counts = new Map<string, number>()
  for (const attributes of sweep.attributes.values())
    for (const groupKey of groupKeysOf(attributes)) {
      const key = mapKey(attributes.companyId, groupKey)
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
  return counts
}

/**
 * Opens, updates and resolves groups by the servers that are lost now; returns the events in order. Called after each
 * presence sweep.
 */
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

/** Emits an update when the members of an open group changed, and resolves the group when none is left. */
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

/** Opens a group when enough of its servers were declared lost within the window. */
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
