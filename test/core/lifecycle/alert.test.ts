import { describe, expect, test } from 'bun:test'
import type { AlertEvent, EventType } from '../../../core/alerting/evaluate/event.ts'
import { type Alert, type AlertBook, applyEvent, type EventContext } from '../../../core/lifecycle/alert.ts'
import { closeGroup } from '../../../core/lifecycle/alerts-of-incident.ts'

const NOW = 1_800_000_000_000
const AT = '2026-06-01T12:00:00.000Z'
const AT_MS = Date.parse(AT)
let seqs = 0

const event = (type: EventType, more: Partial<AlertEvent> = {}): AlertEvent => ({
  event_id: `e${++seqs}`,
  type,
  seq: seqs,
  occurred_at: AT,
  company_id: 'company',
  server_id: 's1',
  rule_id: 'rule',
  rule_version: 1,
  series_key: 'cpu_load1',
  severity: 'warning',
  value: 5,
  threshold: 4,
  suppressed: false,
  suppress_reason: null,
  group_key: null,
  labels: {},
  ...more,
})

const alert = (more: Partial<Alert> = {}): Alert => ({
  id: 'a1',
  companyId: 'company',
  type: 'threshold',
  serverId: 's1',
  agentId: null,
  ruleId: null,
  ruleKey: 'rule',
  seriesKey: 'cpu_load1',
  labels: {},
  severity: 'warning',
  state: 'open',
  openedAtMs: AT_MS - 60_000,
  resolvedAtMs: null,
  resolvedReason: null,
  lastValue: 4.5,
  peakValue: null,
  threshold: 4,
  suppressed: false,
  suppressReason: null,
  flapping: false,
  groupId: null,
  groupTotal: null,
  groupMemberIds: null,
  eventCount: 1,
  lastEventSeq: 0,
  notifiedAtMs: NOW - 60_000,
  heldBack: null,
  recoveryUntold: false,
  ...more,
})

const book = (more: Partial<AlertBook> = {}): AlertBook => ({
  active: null,
  latest: more.active ?? null,
  groups: [],
  downOf: () => [],
  childrenOf: () => [],
  ...more,
})

const context = (more: Partial<EventContext> = {}): EventContext => ({
  newId: 'new',
  nowMs: NOW,
  rule: { id: 'rule', kind: 'threshold' },
  agentDownRule: null,
  agentId: null,
  ...more,
})

const apply = (view: AlertBook, given: AlertEvent, more: Partial<EventContext> = {}) =>
  applyEvent(view, given, context(more))

describe('rule alerts', () => {
  test('[HAL-037] the type of a new alert follows the rule and the no_data label', () => {
    const type = (kind: string, labels = {}) =>
      apply(book(), event('alert.opened', { labels }), { rule: { id: 'r', kind } }).changed[0]?.type
    expect([type('threshold'), type('check'), type('check', { no_data: 'true' })]).toEqual([
      'threshold',
      'check',
      'no_data',
    ])
  })

  test('[HAL-036] [HAL-050] [NTF-005] a suppressed opening is stored and told to nobody; the first unsuppressed event tells', () => {
    const first = apply(book(), event('alert.opened', { suppressed: true, suppress_reason: 'silence' }))
    expect(first.changed[0]).toMatchObject({
      state: 'open',
      suppressed: true,
      suppressReason: 'silence',
      notifiedAtMs: null,
    })
    expect(first.notify).toBeNull()
    const second = apply(book({ active: first.changed[0]! }), event('alert.reminder'))
    expect(second.notify?.type).toBe('alert.opened')
    expect(second.changed[0]).toMatchObject({
      suppressed: false,
      suppressReason: null,
      notifiedAtMs: NOW,
      eventCount: 2,
    })
    const third = apply(book({ active: second.changed[0]! }), event('alert.reminder'))
    expect(third.notify?.type).toBe('alert.reminder')
    expect(third.changed[0]?.notifiedAtMs).toBe(NOW)
  })

  test('[HAL-037] an opening of an active alert merges and tells nobody again', () => {
    const active = alert({ state: 'acknowledged' })
    const { changed, notify } = apply(
      book({ active }),
      event('alert.opened', { value: 9, severity: 'critical', threshold: 8 }),
    )
    expect(changed).toEqual([
      { ...active, lastValue: 9, severity: 'critical', threshold: 8, eventCount: 2, lastEventSeq: seqs },
    ])
    expect(notify).toBeNull()
  })

  test('[HAL-038] [HAL-041] a recovery is told only of an alert that was told, and later when it is suppressed', () => {
    const end = (active: Alert, more: Partial<AlertEvent> = {}) =>
      apply(book({ active }), event('alert.resolved', { reason: 'recovered', peak_value: 7, ...more }))
    expect(end(alert({ state: 'acknowledged' }))).toMatchObject({
      changed: [
        { state: 'resolved', resolvedAtMs: AT_MS, resolvedReason: 'recovered', peakValue: 7, recoveryUntold: false },
      ],
      notify: { type: 'alert.resolved' },
    })
    expect(end(alert({ notifiedAtMs: null })).notify).toBeNull()
    const silenced = end(alert(), { suppressed: true, suppress_reason: 'silence' })
    expect([silenced.notify, silenced.changed[0]?.recoveryUntold]).toEqual([null, true])
    for (const reason of ['no_data', 'data_returned', 'rule_changed', 'out_of_scope', 'rule_removed'] as const)
      expect(end(alert(), { reason }).changed[0]?.resolvedReason).toBe(reason)
  })

  test('[HAL-038] an alert that an older sample ends is not over before it opened', () => {
    const active = alert({ openedAtMs: AT_MS + 5000 })
    const { changed } = apply(book({ active }), event('alert.resolved', { reason: 'recovered', duration_seconds: 0 }))
    expect(changed[0]).toMatchObject({ state: 'resolved', openedAtMs: AT_MS + 5000, resolvedAtMs: AT_MS + 5000 })
  })

  test('[HAL-049] [HAL-030] a reminder re-opens what was lost and leaves alone what was closed by hand', () => {
    const resolved = alert({ state: 'resolved', resolvedAtMs: NOW, resolvedReason: 'recovered' })
    expect(apply(book({ latest: resolved }), event('alert.reminder'))).toMatchObject({
      changed: [{ id: 'a1', state: 'open', resolvedAtMs: null, resolvedReason: null }],
      notify: { type: 'alert.reminder' },
    })
    expect(apply(book(), event('alert.reminder'))).toMatchObject({
      changed: [{ id: 'new', state: 'open', openedAtMs: AT_MS }],
      notify: { type: 'alert.reminder' },
    })
    const closed = alert({ state: 'closed' })
    expect(apply(book({ latest: closed }), event('alert.reminder'))).toEqual({
      changed: [],
      alertId: 'a1',
      notify: null,
    })
    expect(apply(book({ latest: closed }), event('alert.opened')).changed[0]?.id).toBe('new')
  })

  test('[HAL-042] [HAL-043] flapping marks the alert, opens one when there is none, and never tells', () => {
    const entered = apply(book({ active: alert() }), event('alert.flapping', { reason: 'entered', transitions: 4 }))
    expect([entered.changed[0]?.flapping, entered.changed[0]?.state, entered.notify]).toEqual([true, 'open', null])
    const exited = apply(book({ active: entered.changed[0]! }), event('alert.flapping', { reason: 'exited' }))
    expect([exited.changed[0]?.flapping, exited.changed[0]?.state]).toEqual([false, 'open'])
    expect(apply(book(), event('alert.flapping', { reason: 'entered' })).changed[0]).toMatchObject({
      id: 'new',
      flapping: true,
    })
    expect(apply(book(), event('alert.flapping', { reason: 'exited' }))).toEqual({
      changed: [],
      alertId: null,
      notify: null,
    })
  })

  test('[HAL-036] [HAL-043] what was held back at its opening stays so, whatever its events say, until people are told', () => {
    const silenced = { suppressed: true, suppress_reason: 'silence' } as const
    const opened = apply(book(), event('alert.opened', silenced)).changed[0]!
    const flapping = apply(book({ active: opened }), event('alert.flapping', { reason: 'entered' }))
    expect(flapping.changed[0]).toMatchObject({ suppressed: false, notifiedAtMs: null, heldBack: 'silence' })
    expect(flapping.notify).toBeNull()
    expect(apply(book(), event('alert.opened', { suppressed: true })).changed[0]?.heldBack).toBe('suppressed')
    expect(apply(book(), event('alert.opened')).changed[0]?.heldBack).toBeNull()
    const entered = event('alert.flapping', { reason: 'entered' })
    expect(apply(book({ latest: alert({ state: 'closed' }) }), entered).changed[0]?.heldBack).toBe('flapping')
    const inSilence = event('alert.flapping', { reason: 'entered', ...silenced })
    // Both have to end: the silence is told by `suppressed`.
    expect(apply(book(), inSilence).changed[0]).toMatchObject({ heldBack: 'flapping', suppressed: true })
  })

  test('[HAL-035] closing events without an active alert are logged only', () => {
    const latest = alert({ state: 'resolved' })
    for (const type of ['alert.resolved', 'agent.up', 'group_update', 'group_resolved'] as const)
      expect(apply(book({ latest }), event(type, { member_server_ids: [] }))).toEqual({
        changed: [],
        alertId: 'a1',
        notify: null,
      })
  })
})

describe('agents and groups', () => {
  const down = (serverId: string, more: Partial<Alert> = {}) =>
    alert({
      id: `down-${serverId}`,
      type: 'agent_down',
      serverId,
      ruleKey: 'agent_down',
      seriesKey: `agent:${serverId}`,
      severity: 'critical',
      ...more,
    })
  const group = (more: Partial<Alert> = {}) =>
    alert({
      id: 'g1',
      type: 'group_down',
      ruleKey: 'group_down',
      seriesKey: 'subnet:n',
      groupMemberIds: ['s1', 's2'],
      groupTotal: 9,
      ...more,
    })
  const downEvent = (serverId: string) =>
    event('agent.down', {
      server_id: serverId,
      rule_id: 'agent_down',
      series_key: `agent:${serverId}`,
      severity: 'critical',
    })

  test("[HAL-039] [HRL-019] agent.down takes the company's rule: severity, or no alert at all; without one it is critical", () => {
    const rule = { id: 'r', severity: 'info' as const, applies: true }
    expect(apply(book(), downEvent('s1'), { agentDownRule: rule, agentId: 'agent' }).changed[0]).toMatchObject({
      type: 'agent_down',
      severity: 'info',
      ruleId: 'r',
      agentId: 'agent',
      state: 'open',
    })
    expect(apply(book(), downEvent('s1'), { agentDownRule: { ...rule, applies: false } })).toEqual({
      changed: [],
      alertId: null,
      notify: null,
    })
    expect(apply(book(), downEvent('s1')).changed[0]).toMatchObject({ severity: 'critical', ruleId: null })
  })

  test('[HAL-044] [HAL-045] [NTF-004] group_down opens one alert, tells once, and takes the members that stand alone', () => {
    const alone = new Map([
      ['s1', [down('s1')]],
      ['s2', [down('s2', { state: 'acknowledged' })]],
      ['s3', [down('s3')]],
    ])
    const given = event('group_down', {
      rule_id: 'group_down',
      series_key: 'subnet:n',
      member_server_ids: ['s1', 's2'],
      group_total: 9,
    })
    const { changed, notify } = apply(book({ downOf: id => alone.get(id) ?? [] }), given)
    expect(changed.map(item => [item.id, item.state, item.groupId])).toEqual([
      ['new', 'open', null],
      ['down-s1', 'grouped', 'new'],
      ['down-s2', 'grouped', 'new'],
    ])
    expect(changed[0]).toMatchObject({ type: 'group_down', ruleId: null, groupMemberIds: ['s1', 's2'], groupTotal: 9 })
    expect(notify?.type).toBe('group_down')
  })

  test('[HAL-046] an agent.down of a listed member that comes later is born grouped, and told to nobody', () => {
    const { changed, notify } = apply(book({ groups: [group()] }), downEvent('s2'))
    expect([changed[0]?.state, changed[0]?.groupId, notify]).toEqual(['grouped', 'g1', null])
    expect(apply(book({ groups: [group()] }), downEvent('s9')).changed[0]?.state).toBe('open')
  })

  test('[HAL-047] group_update changes the list and attaches the new members', () => {
    const alone = new Map([['s3', [down('s3')]]])
    const given = event('group_update', { member_server_ids: ['s2', 's3'], group_total: 8, value: 2 })
    const { changed } = apply(book({ active: group(), downOf: id => alone.get(id) ?? [] }), given)
    expect(changed.map(item => item.id)).toEqual(['g1', 'down-s3'])
    expect(changed[0]).toMatchObject({ groupMemberIds: ['s2', 's3'], groupTotal: 8, lastValue: 2 })
  })

  test('[HAL-048] group_resolved ends the group and its children; a child in a second group moves there', () => {
    const second = group({ id: 'g2', seriesKey: 'datacenter:d', groupMemberIds: ['s2'] })
    const children = [down('s1', { state: 'grouped', groupId: 'g1' }), down('s2', { state: 'grouped', groupId: 'g1' })]
    const { changed, notify } = apply(
      book({ active: group(), groups: [group(), second], childrenOf: id => (id === 'g1' ? children : []) }),
      event('group_resolved', { reason: 'recovered', member_server_ids: [] }),
    )
    expect(changed.map(item => [item.id, item.state, item.resolvedReason, item.groupId])).toEqual([
      ['g1', 'resolved', 'recovered', null],
      ['down-s1', 'resolved', 'group_resolved', null],
      ['down-s2', 'grouped', null, 'g2'],
    ])
    expect(notify?.type).toBe('group_resolved')
  })

  test('[HAL-048] a child is not over before it opened', () => {
    const late = down('s1', { state: 'grouped', groupId: 'g1', openedAtMs: AT_MS + 5000 })
    const view = book({ active: group(), groups: [group()], childrenOf: () => [late] })
    const { changed } = apply(view, event('group_resolved', { reason: 'recovered', member_server_ids: [] }))
    expect(changed[1]).toMatchObject({ state: 'resolved', resolvedAtMs: AT_MS + 5000 })
  })

  test('[HAL-040] agent.up resolves a grouped child without telling, a lone alert with', () => {
    const up = event('agent.up', { value: 0 })
    const grouped = apply(book({ active: down('s1', { state: 'grouped', groupId: 'g1' }) }), up)
    expect([grouped.changed[0]?.state, grouped.changed[0]?.groupId, grouped.notify]).toEqual(['resolved', null, null])
    expect(apply(book({ active: down('s1') }), up).notify?.type).toBe('agent.up')
  })

  test('[HAL-031] a group closed by hand gives its children back', () => {
    const children = [down('s1', { state: 'grouped', groupId: 'g1' }), down('s2', { state: 'grouped', groupId: 'g1' })]
    const second = group({ id: 'g2', groupMemberIds: ['s2'] })
    expect(closeGroup(group(), children, [group(), second]).map(item => [item.id, item.state, item.groupId])).toEqual([
      ['down-s1', 'open', null],
      ['down-s2', 'grouped', 'g2'],
    ])
  })
})
