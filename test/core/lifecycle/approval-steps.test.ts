import { describe, expect, test } from 'bun:test'
import { slaStateOf, tick } from '../../../core/lifecycle/approval-clock.ts'
import { decide, delegation } from '../../../core/lifecycle/approval-steps.ts'
import type { StepPeople, StepRule, Ticket } from '../../../core/lifecycle/approval-ticket.ts'
import { deciders, isBlocked, mayDecide } from '../../../core/lifecycle/may-decide-on-ticket.ts'
import { workflowsFor } from '../../../core/lifecycle/workflows-needed.ts'

const HOUR_MS = 3_600_000
const nobody = { role: null, team: null, users: [] }
const step = (more: Partial<StepRule> = {}): StepRule => ({
  name: 'review',
  approvers: nobody,
  required: 1,
  slaHours: 8,
  onOverdue: 'notify',
  escalateTo: null,
  ...more,
})
const opened = (steps: StepRule[], more: Partial<Ticket> = {}): Ticket => ({
  workflow: { allowSelf: false, distinctApprovers: false, steps },
  state: 'pending',
  step: 0,
  stepStartedAtMs: 0,
  isEscalated: false,
  dueSoonTold: false,
  overdueTold: false,
  expiresAtMs: 168 * HOUR_MS,
  requesterIds: ['submitter'],
  decisions: [],
  delegations: [],
  ...more,
})
const people = (...named: string[]): StepPeople => ({
  named,
  able: new Set([...named, 'carol', 'dave', 'erin', 'frank']),
})
const yes = (ticket: Ticket, userId: string, onBehalfOf: string | null = null) =>
  decide(ticket, { userId, onBehalfOf, decision: 'approved' }, HOUR_MS)

describe('approval tickets', () => {
  test('[RES-154] a step is done with approvals of different people; the same person twice is refused', () => {
    const ticket = opened([step({ required: 2 })])
    const first = yes(ticket, 'ann')
    expect([first.ticket.state, first.effects]).toEqual(['pending', []])
    expect(mayDecide(first.ticket, people('ann', 'bob'), 'ann')).toEqual({ refused: 'decision' })
    expect(yes(first.ticket, 'bob')).toMatchObject({ ticket: { state: 'approved' }, effects: ['approved'] })
  })

  test('[RES-157] steps follow each other, each with its own clock', () => {
    const ticket = opened([step(), step({ slaHours: 1 })])
    const moved = yes(ticket, 'ann')
    expect(moved).toMatchObject({
      ticket: { step: 1, stepStartedAtMs: HOUR_MS, state: 'pending' },
      effects: ['step_began'],
    })
    expect(mayDecide(moved.ticket, people('bob'), 'ann')).toEqual({ refused: 'not_approver' })
    expect(mayDecide(moved.ticket, people('ann'), 'ann')).toEqual({ say: 'ann' })
    const distinct = { ...moved.ticket, workflow: { ...ticket.workflow, distinctApprovers: true } }
    expect(mayDecide(distinct, people('ann'), 'ann')).toEqual({ refused: 'decision' })
  })

  test('[RES-155] [RES-156] [RES-159] who may not decide, and why', () => {
    const ticket = opened([step()])
    expect(mayDecide(ticket, people('submitter'), 'submitter')).toEqual({ refused: 'self_approval' })
    const own = { ...ticket, workflow: { ...ticket.workflow, allowSelf: true } }
    expect(mayDecide(own, people('submitter'), 'submitter')).toEqual({ say: 'submitter' })
    expect(mayDecide(ticket, people('ann'), 'bob')).toEqual({ refused: 'not_approver' })
    expect(mayDecide(ticket, { named: ['ann'], able: new Set() }, 'ann')).toEqual({ refused: 'not_approver' })
    expect(mayDecide({ ...ticket, state: 'approved' }, people('ann'), 'ann')).toEqual({ refused: 'state' })
  })

  test('one rejection at any step rejects the ticket', () => {
    const ticket = yes(opened([step(), step({ required: 2 })]), 'ann').ticket
    const end = decide(ticket, { userId: 'bob', onBehalfOf: null, decision: 'rejected' }, 0)
    expect([end.ticket.state, end.effects]).toEqual(['rejected', ['rejected']])
  })

  test('[RES-162] a say goes over at most three links, never back, never to the requester', () => {
    let ticket = opened([step()])
    const hand = (fromId: string, toId: string, canDecide = true) =>
      delegation(ticket, ['ann'], { fromId, toId, isManager: false }, canDecide)
    expect(hand('ann', 'submitter')).toEqual({ refused: 'user_id' })
    expect(hand('ann', 'carol', false)).toEqual({ refused: 'user_id' })
    expect(hand('ann', 'ann')).toEqual({ refused: 'user_id' })
    expect(hand('bob', 'carol')).toEqual({ refused: 'not_approver' })
    for (const [from, to] of [
      ['ann', 'carol'],
      ['carol', 'dave'],
      ['dave', 'erin'],
    ] as const) {
      const made = hand(from, to)
      expect(made).toEqual({ originId: 'ann', fromId: from, toId: to })
      if ('toId' in made) ticket = { ...ticket, delegations: [...ticket.delegations, made] }
    }
    expect(hand('erin', 'frank')).toEqual({ refused: 'user_id' })
    expect(hand('erin', 'ann')).toEqual({ refused: 'user_id' })
    expect(mayDecide(ticket, people('ann'), 'carol')).toEqual({ refused: 'not_approver' })
    expect(deciders(ticket, people('ann')).sort()).toEqual(['ann', 'erin'])
  })

  test('[RES-163] a delegate decides on behalf, and the first approver may be faster', () => {
    const ticket = opened([step({ required: 2 })], { delegations: [{ originId: 'ann', fromId: 'ann', toId: 'carol' }] })
    expect(mayDecide(ticket, people('ann', 'bob'), 'carol')).toEqual({ say: 'ann' })
    const taken = yes(ticket, 'ann').ticket
    expect(mayDecide(taken, people('ann', 'bob'), 'carol')).toEqual({ refused: 'not_approver' })
    const used = yes(ticket, 'carol', 'ann').ticket
    expect(mayDecide(used, people('ann', 'bob'), 'ann')).toEqual({ refused: 'not_approver' })
  })

  test('[RES-164] a ticket whose people are too few is blocked, and a delegation by a manager frees it', () => {
    const ticket = opened([step()])
    const gone = { named: ['ann'], able: new Set(['carol']) }
    expect(isBlocked(ticket, gone)).toBe(true)
    const made = delegation(ticket, ['ann'], { fromId: 'ann', toId: 'carol', isManager: true }, true)
    const freed = { ...ticket, delegations: 'toId' in made ? [made] : [] }
    expect([isBlocked(freed, gone), deciders(freed, gone)]).toEqual([false, ['carol']])
    expect(isBlocked(opened([step({ required: 2 })]), people('ann', 'submitter'))).toBe(true)
  })

  test('the clock: ok, due soon under a quarter, overdue', () => {
    const ticket = opened([step()])
    expect([0, 6 * HOUR_MS, 6 * HOUR_MS + 1, 8 * HOUR_MS].map(ms => slaStateOf(ticket, ms))).toEqual([
      'ok',
      'ok',
      'due_soon',
      'overdue',
    ])
  })

  test('[RES-165] an overdue step escalates once, with a new clock, and then only tells', () => {
    const ticket = opened([step({ onOverdue: 'escalate', escalateTo: { ...nobody, users: ['boss'] } })])
    const soon = tick(ticket, 7 * HOUR_MS)
    expect([soon.effects, tick(soon.ticket, 7 * HOUR_MS).effects]).toEqual([['due_soon'], []])
    const late = tick(soon.ticket, 8 * HOUR_MS)
    expect(late).toMatchObject({
      ticket: { isEscalated: true, stepStartedAtMs: 8 * HOUR_MS },
      effects: ['overdue', 'escalated'],
    })
    expect(tick(late.ticket, 8 * HOUR_MS).effects).toEqual([])
    const again = tick({ ...late.ticket, dueSoonTold: true }, 16 * HOUR_MS)
    expect([again.effects, tick(again.ticket, 99 * HOUR_MS).effects]).toEqual([['overdue'], []])
    expect(again.ticket.state).toBe('pending')
  })

  test('[RES-166] an overdue step may reject, and a ticket past its time expires; time approves nothing', () => {
    const rejecting = opened([step({ onOverdue: 'reject' })])
    expect(tick(rejecting, 8 * HOUR_MS)).toMatchObject({ ticket: { state: 'rejected' }, effects: ['rejected'] })
    expect(tick(opened([step()]), 168 * HOUR_MS)).toMatchObject({ ticket: { state: 'expired' }, effects: ['expired'] })
    expect(tick({ ...opened([step()]), state: 'approved' }, 999 * HOUR_MS).effects).toEqual([])
  })

  test('[RES-164] at a step that its workflow does not have nobody can decide, and only time ends it', () => {
    const ticket = opened([step()], { step: 1 })
    expect(isBlocked(ticket, people())).toBe(true)
    expect(slaStateOf(ticket, HOUR_MS)).toBe('overdue')
    expect(tick(ticket, HOUR_MS)).toMatchObject({ ticket: { state: 'pending' }, effects: ['overdue'] })
    expect(tick(ticket, 168 * HOUR_MS).effects).toEqual(['expired'])
  })
})

describe('matching of workflows', () => {
  const workflow = (name: string, more = {}) => ({ name, kinds: [], actions: [], match: {}, priority: 100, ...more })
  const subject = { kind: 'server', action: 'create', environments: ['prod'], tags: ['web'], company: ['id-1', 'acme'] }
  const named = (...list: ReturnType<typeof workflow>[]) => workflowsFor(list, subject).map(each => each.name)

  test('[RES-151] kinds, actions and match must all hold', () => {
    expect(named(workflow('all'), workflow('k', { kinds: ['check'] }), workflow('a', { actions: ['delete'] }))).toEqual(
      ['all'],
    )
    const match = { environments: ['prod', 'dev'], tags: ['web'], companies: ['acme'] }
    expect(named(workflow('m', { match }), workflow('n', { match: { ...match, tags: ['db'] } }))).toEqual(['m'])
    expect(workflowsFor([workflow('all')], { ...subject, action: 'none' })).toEqual([])
  })

  test('[RES-152] several are needed together, listed by priority', () => {
    expect(named(workflow('b'), workflow('a'), workflow('first', { priority: 1 }))).toEqual(['first', 'a', 'b'])
  })
})
