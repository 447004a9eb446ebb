// Approvals: workflows, tickets, decisions, delegation, the clock (resources.md §7).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { tickTickets } from '../../apps/hub/approvals/ticket-clock.ts'
import { type Answer, type Json, type Tenant, TestHub } from './hub-harness.ts'
import { type Acme, acme, applied, manifest, submit } from './iac-rig.ts'

let hub: TestHub
let own: Acme
type Person = Omit<Tenant, 'companyId'>
let ann: Person
let bob: Person
let carol: Person

const approver = () => hub.user(own.companyId, ['approvals.view', 'approvals.decide', 'iac.view'])

beforeAll(async () => {
  hub = await TestHub.start()
  own = await acme(hub)
  ann = await approver()
  bob = await approver()
  carol = await approver()
})
afterAll(() => hub.stop())

const HOUR_MS = 3_600_000

let counter = 0
const fresh = (prefix: string): string => `${prefix}-${++counter}`
const server = (name: string, spec: Json = {}) => manifest(own.slug, 'server', name, spec)
const step = (people: readonly Person[], more: Json = {}): Json => ({
  user_ids: people.map(each => each.userId),
  ...more,
})
/** A workflow for the servers of one tag, so that tests do not meet. */
async function workflow(tag: string, steps: Json[], more: Json = {}): Promise<Json> {
  const { status, body } = await own.call('POST', '/approvals/workflows', {
    name: fresh('flow'),
    kinds: ['server'],
    match: { tags: [tag] },
    steps,
    ...more,
  })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.data
}
/** A run of one server that needs approval. */
async function asked(tag: string, name = fresh('asked')): Promise<{ run: Json; ticket: Json; name: string }> {
  const run = await submit(hub, own, [server(name, { tags: [tag] })])
  const { data } = (await own.call('GET', `/approvals/tickets?run_id=${run.id}`)).body
  return { run, ticket: data[0], name }
}
const act = (by: Person, ticket: Json, what: string, body: Json = {}) =>
  by.call('POST', `/approvals/tickets/${ticket.id}/${what}`, body)
const shown = async (ticket: Json): Promise<Json> =>
  (await own.call('GET', `/approvals/tickets/${ticket.id}`)).body.data
const inbox = async (by: Person): Promise<string[]> =>
  (await by.call('GET', '/approvals/inbox')).body.data.map((each: Json) => each.id)

describe('workflows', () => {
  test('are created with steps, listed by priority, changed, switched and deleted', async () => {
    const made = await workflow(
      fresh('t'),
      [step([ann]), step([bob, carol], { name: 'second', required: 2, sla_hours: 8 })],
      {
        priority: 7,
      },
    )
    expect(made).toMatchObject({
      priority: 7,
      enabled: true,
      allow_self: false,
      distinct_approvers: false,
      actions: ['create', 'update', 'delete'],
      expire_hours: 168,
      version: 1,
      steps: [
        { position: 1, user_ids: [ann.userId], required: 1, sla_hours: 24, on_overdue: 'notify' },
        { position: 2, name: 'second', required: 2, sla_hours: 8 },
      ],
    })
    const path = `/approvals/workflows/${made.id}`
    // It said nothing of its hours, so it goes on following the setting.
    await hub.hub.database.client`
      insert into setting_values (key, company_id, value) values ('approvals.expire_hours', ${own.companyId}, '24')`
    expect((await own.call('GET', path)).body.data.expire_hours).toBe(24)
    await hub.hub.database.client`delete from setting_values where company_id = ${own.companyId}`
    expect((await own.call('PATCH', path, { priority: 8 })).body.data).toMatchObject({ priority: 8, version: 2 })
    const added = await own.call('POST', `${path}/steps`, step([carol], { position: 1, name: 'first' }))
    expect([added.status, added.body.data.position]).toEqual([201, 1])
    const { data } = (await own.call('GET', path)).body
    expect(data.steps.map((each: Json) => each.name)).toEqual(['first', 'approval', 'second'])
    expect((await own.call('PATCH', `${path}/steps/${data.steps[0].id}`, { required: 2 })).body.errors).toHaveProperty(
      'required',
    )
    const moved = await own.call('PATCH', `${path}/steps/${data.steps[0].id}`, { position: 3, sla_hours: 2 })
    expect(moved.body.data).toMatchObject({ position: 3, sla_hours: 2 })
    for (const each of data.steps.slice(1))
      expect((await own.call('DELETE', `${path}/steps/${each.id}`)).status).toBe(204)
    const last = await own.call('DELETE', `${path}/steps/${data.steps[0].id}`)
    expect([last.status, Object.keys(last.body.errors)]).toEqual([422, ['steps']])
    expect((await own.call('POST', `${path}/disable`)).body.data.enabled).toBe(false)
    expect((await own.call('DELETE', `${path}/steps/${data.steps[0].id}`)).status).toBe(204)
    expect((await own.call('POST', `${path}/enable`)).body.errors).toHaveProperty('steps')
    expect((await own.call('DELETE', path)).status).toBe(204)
    expect((await own.call('GET', path)).status).toBe(404)
  })

  test('[RES-008] [RES-009] a change to the same raises nothing, an old version is refused', async () => {
    const path = `/approvals/workflows/${(await workflow(fresh('t'), [step([ann])])).id}`
    const entries = async (): Promise<number> =>
      (await own.call('GET', '/audit-log?action=approval_workflow.update')).body.meta.total
    const before = await entries()
    const change = (priority: number, more: Json = {}, headers: Record<string, string> = {}) =>
      own.call('PATCH', path, { priority, ...more }, headers)
    expect((await change(100)).body.data.version).toBe(1)
    expect((await change(100, { actions: ['delete', 'create', 'update'] })).body.data.version).toBe(1)
    // An answer can be sent back as it came.
    const answered = (await own.call('GET', path)).body.data
    expect((await own.call('PATCH', path, answered)).body.data).toEqual(answered)
    expect(await entries()).toBe(before)
    expect((await change(5)).body.data.version).toBe(2)
    const [header, member] = [await change(6, {}, { 'If-Match': '"1"' }), await change(6, { version: 1 })]
    expect([header, member].map(({ status, body }) => [status, body.reason, body.current_version])).toEqual([
      [412, 'version_conflict', 2],
      [409, 'version_conflict', 2],
    ])
    const changed = await change(6, { version: 2 }, { 'If-Match': '"2"' })
    expect(changed.body.data).toMatchObject({ priority: 6, version: 3 })
    expect([changed, await own.call('GET', path)].map(each => each.headers.get('etag'))).toEqual(['"3"', '"3"'])
    const made = await own.call('POST', '/approvals/workflows', { name: fresh('flow'), enabled: false })
    expect([made.headers.get('etag'), made.headers.get('location')]).toEqual([
      '"1"',
      `/api/v1/approvals/workflows/${made.body.data.id}`,
    ])
    expect(await entries()).toBe(before + 2)
    const [{ id }] = (await own.call('GET', path)).body.data.steps
    const ofSteps = async (): Promise<number> =>
      (await own.call('GET', '/audit-log?action=approval_workflow.step_update')).body.meta.total
    const stepsBefore = await ofSteps()
    for (const same of [{}, { position: 1, sla_hours: 24, user_ids: [ann.userId] }, { position: 9, name: null }])
      expect((await own.call('PATCH', `${path}/steps/${id}`, same)).status).toBe(200)
    expect((await own.call('GET', path)).body.data.version).toBe(3)
    expect(await ofSteps()).toBe(stepsBefore)
  })

  test('[RES-171] [RES-172] people of another company, no people and too few people are refused on their fields', async () => {
    const other = await hub.tenant()
    const team = (await other.call('POST', '/teams', { name: 'theirs' })).body.data
    const post = async (one: Json) =>
      Object.keys((await own.call('POST', '/approvals/workflows', { name: fresh('w'), steps: [one] })).body.errors)
    expect(await post({ user_ids: [other.userId] })).toEqual(['steps.0.user_ids.0'])
    expect(await post({ team_id: team.id })).toEqual(['steps.0.team_id'])
    expect(await post({ approver_role: 'nobody knows' })).toEqual(['steps.0.approver_role'])
    expect(await post({})).toEqual(['steps.0.required'])
    expect(await post(step([ann], { required: 2 }))).toEqual(['steps.0.required'])
    expect(await post({ approver_role: 'admin', required: 5, on_overdue: 'escalate' })).toEqual(['steps.0.escalate_to'])
    const { id } = await workflow(fresh('t'), [step([ann])])
    const one = await own.call('POST', `/approvals/workflows/${id}/steps`, { team_id: team.id })
    expect(Object.keys(one.body.errors)).toEqual(['team_id'])
  })

  test('[R-044] steps changed at once: the last one of an enabled workflow stays, positions are 1..n', async () => {
    for (let round = 0; round < 8; round++) {
      const made = await workflow(fresh('t'), [step([ann]), step([bob])])
      const path = `/approvals/workflows/${made.id}`
      const remove = ({ id }: Json) => own.call('DELETE', `${path}/steps/${id}`)
      const add = () => own.call('POST', `${path}/steps`, step([carol], { position: 1 }))
      const left = async () => (await own.call('GET', path)).body.data
      const removed = await Promise.all(made.steps.map(remove))
      expect(removed.map(({ status }) => status).sort()).toEqual([204, 422])
      const [last] = (await left()).steps
      expect((await left()).steps).toMatchObject([{ position: 1 }])
      // Switched on again while its only step goes: one of the two is refused.
      await own.call('POST', `${path}/disable`)
      const [enabled, gone] = await Promise.all([own.call('POST', `${path}/enable`), remove(last)])
      expect([enabled.status, gone.status].sort()).toEqual(enabled.status === 200 ? [200, 422] : [204, 422])
      const [first] = (await left()).steps
      const changed = await Promise.all([add(), add(), ...(first ? [remove(first)] : []), add()])
      const { steps } = await left()
      expect(steps).toHaveLength(3 + (first ? 1 : 0) - changed.filter(({ status }) => status === 204).length)
      expect(steps.map(({ position }: Json) => position)).toEqual(steps.map((_: Json, at: number) => at + 1))
    }
  })

  test('[RES-170] one with pending tickets is not deleted', async () => {
    const tag = fresh('t')
    const made = await workflow(tag, [step([ann])])
    await asked(tag)
    const refused = await own.call('DELETE', `/approvals/workflows/${made.id}`)
    expect([refused.status, refused.body.reason, refused.body.referrers_total]).toEqual([409, 'in_use', 1])
  })

  test('[RES-152] of several that match all are needed, by priority', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])], { priority: 2, name: `${tag} second` })
    await workflow(tag, [step([bob])], { priority: 1, name: `${tag} first` })
    const { run } = await asked(tag)
    expect(run.approval_timeline.map((entry: Json) => entry.flow)).toEqual([`${tag} first`, `${tag} second`])
    expect(run.items[0].approvals).toEqual({ required: 2, given: 0 })
  })
})

describe('tickets', () => {
  test('[RES-151] [RES-123] [IAC-016] [G-183] an item that nobody approved is not applied; the others are', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])])
    const [held, free] = [fresh('held'), fresh('free')]
    const run = await submit(hub, own, [server(held, { tags: [tag] }), server(free)])
    const after = await applied(own, run.id)
    expect(after.status).toBe('partially-applied')
    expect(after.items.map((item: Json) => [item.name, item.status]).sort()).toEqual([
      [free, 'applied'],
      [held, 'planned'],
    ])
    const { data } = (await own.call('GET', `/approvals/tickets?run_id=${run.id}`)).body
    expect(data).toMatchObject([
      { state: 'pending', subject: { type: 'iac_item', name: held, action: 'create' }, may_decide: false },
    ])
    // Nothing is left to apply before somebody decides.
    const again = await applied(own, run.id)
    expect([again.status, again.applied_at, again.items]).toEqual(['partially-applied', after.applied_at, after.items])
    expect((await act(ann, data[0], 'approve')).body.data.state).toBe('approved')
    const done = await applied(own, run.id)
    expect([done.status, done.applied_at > after.applied_at]).toEqual(['applied', true])
  })

  test('[check 16.30] [RES-154] [RES-157] two steps, two people each: not applied before all four decisions', async () => {
    const tag = fresh('t')
    const dan = await approver()
    await workflow(tag, [step([ann, bob], { required: 2 }), step([carol, dan], { required: 2 })])
    const { run, ticket } = await asked(tag)
    expect((await act(carol, ticket, 'approve')).body.reason).toBe('not_approver')
    expect((await act(ann, ticket, 'approve', { comment: 'fine' })).status).toBe(200)
    const twice = await act(ann, ticket, 'approve')
    expect([twice.status, Object.keys(twice.body.errors)]).toEqual([422, ['decision']])
    expect((await applied(own, run.id)).status).toBe('planned')
    expect((await act(bob, ticket, 'approve')).body.data.step).toMatchObject({ position: 2, given: 0, required: 2 })
    expect((await act(carol, ticket, 'approve')).body.data.state).toBe('pending')
    expect((await applied(own, run.id)).status).toBe('planned')
    const done = await act(dan, ticket, 'approve')
    const decisions = [{ step: 1 }, { step: 1 }, { step: 2 }, { step: 2 }]
    expect(done.body.data).toMatchObject({ state: 'approved', decisions })
    const late = await act(carol, ticket, 'approve')
    expect([late.status, Object.keys(late.body.errors)]).toEqual([422, ['state']])
    const after = await applied(own, run.id)
    expect([after.status, after.items[0].approvals]).toEqual(['applied', { required: 4, given: 4 }])
  })

  test('[RES-155] [RES-156] the submitter may not decide, a super administrator neither, unless allow_self; nor who is no approver', async () => {
    const tag = fresh('t')
    await workflow(tag, [{ approver_role: 'admin', user_ids: [own.userId] }])
    const { ticket } = await asked(tag)
    for (const [what, body] of [
      ['approve', {}],
      ['reject', { comment: 'no' }],
    ] as const) {
      const { status, body: answer } = await act(own, ticket, what, body)
      expect([status, answer.reason]).toEqual([403, 'self_approval'])
    }
    const root = await hub.user(own.companyId, ['*'], { superAdmin: true })
    expect((await act(root, ticket, 'approve')).body.reason).toBe('not_approver')
    const self = fresh('t')
    await workflow(self, [step([own])], { allow_self: true })
    const { ticket: mine } = await asked(self)
    expect(await inbox(own)).not.toContain(mine.id)
    expect((await act(own, mine, 'approve')).body.data.state).toBe('approved')
  })

  test('[RES-158] a rejection needs a comment, and the item is never applied', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])])
    const { run, ticket } = await asked(tag)
    expect(Object.keys((await act(ann, ticket, 'reject')).body.errors)).toEqual(['comment'])
    expect((await act(ann, ticket, 'reject', { comment: 'not now' })).body.data.state).toBe('rejected')
    const after = await applied(own, run.id)
    expect([after.status, after.items[0].status]).toEqual(['planned', 'skipped'])
    expect(after.apply_error).not.toBeNull()
  })

  test('[IAC-017] an apply for which everything waited says so, in words that stay true once it is approved', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])])
    const { run, ticket } = await asked(tag)
    const said = async (): Promise<string> => (await own.call('GET', `/iac/runs/${run.id}`)).body.data.apply_error
    expect((await applied(own, run.id)).status).toBe('planned')
    expect(await said()).toBe('nothing was applied: 1 item waited for approval')
    expect((await act(ann, ticket, 'approve')).body.data.state).toBe('approved')
    expect(await said()).toBe('nothing was applied: 1 item waited for approval')
    expect((await applied(own, run.id)).apply_error).toBeNull()
  })

  test('[RES-160] of two approvals at once one counts', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann, bob])])
    const { ticket } = await asked(tag)
    const both = await Promise.all([act(ann, ticket, 'approve'), act(bob, ticket, 'approve')])
    expect(both.map(each => each.status).sort()).toEqual([200, 422])
    expect((await shown(ticket)).decisions).toHaveLength(1)
  })

  test('[RES-161] who left the team cannot decide, who joined it can', async () => {
    const tag = fresh('t')
    const team = (await own.call('POST', '/teams', { name: fresh('team') })).body.data
    await own.call('POST', `/teams/${team.id}/members`, { user_id: ann.userId })
    await workflow(tag, [{ team_id: team.id }])
    const { ticket } = await asked(tag)
    expect(await inbox(ann)).toContain(ticket.id)
    await own.call('DELETE', `/teams/${team.id}/members/${ann.userId}`)
    await own.call('POST', `/teams/${team.id}/members`, { user_id: bob.userId })
    expect((await act(ann, ticket, 'approve')).body.reason).toBe('not_approver')
    expect((await act(bob, ticket, 'approve')).status).toBe(200)
  })

  test('[RES-162] [RES-163] a say is handed on to a colleague who decides on behalf, and to nobody else', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])])
    const { run, ticket } = await asked(tag)
    const other = await hub.tenant()
    for (const userId of [own.userId, other.userId, ann.userId]) {
      const refused = await act(ann, ticket, 'delegate', { user_id: userId })
      expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['user_id']])
    }
    expect((await act(bob, ticket, 'delegate', { user_id: carol.userId })).body.reason).toBe('not_approver')
    expect((await act(ann, ticket, 'delegate', { user_id: bob.userId, comment: 'away' })).status).toBe(200)
    expect((await act(bob, ticket, 'delegate', { user_id: ann.userId })).status).toBe(422)
    expect([await inbox(ann), await inbox(bob)].map(ids => ids.includes(ticket.id))).toEqual([true, true])
    const done = (await act(bob, ticket, 'approve')).body.data
    expect(done.decisions).toMatchObject([{ user: { id: bob.userId }, on_behalf_of: { id: ann.userId } }])
    const timeline = (await own.call('GET', `/iac/runs/${run.id}/timeline`)).body.data
    expect(timeline.map((entry: Json) => entry.type)).toEqual([
      'submitted',
      'planned',
      'ticket_opened',
      'delegated',
      'decided',
    ])
    expect(timeline.at(-1)).toMatchObject({
      ticket: ticket.id,
      actor: { id: bob.userId },
      text: expect.stringContaining('on behalf of'),
    })
    const log = (await own.call('GET', `/audit-log?action=approval.decide&subject=${ticket.id}`)).body.data
    expect(log[0].changes.on_behalf_of.new).toBe(ann.userId)
  })

  test('[check 16.31] [RES-164] [RES-048] without approvers a ticket is blocked, and a manager delegates for one who is gone', async () => {
    const tag = fresh('t')
    const gone = await approver()
    await workflow(tag, [step([gone])])
    const { run, ticket } = await asked(tag)
    await own.call('PATCH', `/users/${gone.userId}`, { enabled: false })
    await hub.hub.database.client`update users set disabled_at = now() where id = ${gone.userId}`
    expect((await shown(ticket)).blocked).toBe('not_enough_approvers')
    const blocked = (await own.call('GET', '/approvals/tickets?blocked=1')).body.data.map((each: Json) => each.id)
    expect(blocked).toContain(ticket.id)
    const refused = await act(ann, ticket, 'delegate', { user_id: bob.userId, from_user_id: gone.userId })
    expect(refused.status).toBe(403)
    await act(own, ticket, 'delegate', { user_id: bob.userId, from_user_id: gone.userId })
    expect((await shown(ticket)).blocked).toBeNull()
    expect((await act(bob, ticket, 'approve')).body.data.state).toBe('approved')
    expect((await applied(own, run.id)).status).toBe('applied')
    const timeline: Json[] = (await own.call('GET', `/iac/runs/${run.id}/timeline`)).body.data
    const by = (type: string) => timeline.filter(entry => entry.type === type).map(entry => entry.actor?.id)
    expect([by('submitted'), by('delegated'), by('decided')]).toEqual([[own.userId], [own.userId], [bob.userId]])
    const { name } = (await own.call('GET', `/users/${gone.userId}`)).body.data
    expect(timeline.find(entry => entry.type === 'delegated').text).toContain(name)
  })

  test('[RES-164] [R-048] a manager delegates for one who was deleted, and the step goes on to be changed', async () => {
    const tag = fresh('t')
    const gone = await approver()
    const { id, steps } = await workflow(tag, [step([gone])])
    const { ticket } = await asked(tag)
    expect((await own.call('DELETE', `/users/${gone.userId}`)).status).toBe(204)
    expect((await shown(ticket)).blocked).toBe('not_enough_approvers')
    const path = `/approvals/workflows/${id}/steps/${steps[0].id}`
    expect((await own.call('PATCH', path, { sla_hours: 3 })).body.data).toMatchObject({ sla_hours: 3 })
    expect((await own.call('PATCH', path, { user_ids: [gone.userId] })).body.errors).toHaveProperty(['user_ids.0'])
    const handed = await act(own, ticket, 'delegate', { user_id: bob.userId, from_user_id: gone.userId })
    expect([handed.status, handed.body.data.blocked]).toEqual([200, null])
    expect((await act(bob, ticket, 'approve')).body.data.state).toBe('approved')
  })

  test('[RES-165] [RES-169] an overdue step is escalated once, to those who then see it', async () => {
    const tag = fresh('t')
    await workflow(tag, [
      step([ann], { sla_hours: 1, on_overdue: 'escalate', escalate_to: { user_ids: [carol.userId] } }),
    ])
    const { run, ticket } = await asked(tag)
    expect(await inbox(carol)).not.toContain(ticket.id)
    await hub.hub.database
      .client`update approval_tickets set step_started_at = now() - interval '2 hours' where id = ${ticket.id}`
    const began = await hub.hub.database.client`select step_started_at from approval_tickets where id = ${ticket.id}`
    await tickTickets(hub.hub)
    await tickTickets(hub.hub)
    expect(await inbox(carol)).toContain(ticket.id)
    // What people are told of it is when it was due, not when the new clock runs out.
    const dueAt = new Date(Date.parse(began[0]!.step_started_at) + HOUR_MS).toISOString()
    const bell = (await own.call('GET', '/notifications')).body.data
    const overdue = bell.find((each: Json) => each.type === 'approval.overdue')
    expect(overdue.body).toMatch(/^1 change of .* waits since /)
    expect(overdue.body).toContain(dueAt)
    const timeline = (await own.call('GET', `/iac/runs/${run.id}/timeline`)).body.data
    expect(timeline.filter((entry: Json) => entry.type === 'escalated')).toHaveLength(1)
    const told = (await carol.call('GET', '/notifications')).body.data.filter(
      (each: Json) => each.type === 'approval.requested',
    )
    expect(told.length).toBeGreaterThan(0)
  })

  test('[RES-166] a ticket past its time is expired, its item skipped, and the requester is told', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])], { expire_hours: 1 })
    const { run, ticket } = await asked(tag)
    await hub.hub.database.client`update approval_tickets set expires_at = now() where id = ${ticket.id}`
    await tickTickets(hub.hub)
    expect((await shown(ticket)).state).toBe('expired')
    expect((await own.call('GET', `/iac/runs/${run.id}`)).body.data.items[0].status).toBe('skipped')
    const told = (await own.call('GET', '/notifications')).body.data.map((each: Json) => each.type)
    expect(told).toContain('approval.expired')
  })

  test('[R-049] [RES-159] a ticket past its end is not approved before the clock has looked', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann], { sla_hours: 1, on_overdue: 'reject' })])
    const { client } = hub.hub.database
    const asRefused = ({ status, body }: Answer) => [status, Object.keys(body.errors ?? {})]
    const [one, whole, late] = [await asked(tag), await asked(tag), await asked(tag)]
    for (const { ticket } of [one, whole])
      await client`update approval_tickets set expires_at = now() - interval '2 hours' where id = ${ticket.id}`
    await client`update approval_tickets set step_started_at = now() - interval '2 hours',
      sla_due_at = now() - interval '1 hour' where id = ${late.ticket.id}`
    expect(asRefused(await act(ann, one.ticket, 'approve'))).toEqual([422, ['state']])
    expect(asRefused(await act(ann, whole.ticket, 'approve', { all_of_run: true }))).toEqual([422, ['state']])
    expect(asRefused(await act(ann, late.ticket, 'approve'))).toEqual([422, ['state']])
    const states = [one, whole, late].map(async ({ ticket }) => (await shown(ticket)).state)
    expect(await Promise.all(states)).toEqual(['expired', 'expired', 'rejected'])
    expect((await own.call('GET', `/iac/runs/${one.run.id}`)).body.data.items[0].status).toBe('skipped')
  })

  test('[RES-167] the inbox has the most urgent first, and counts what is overdue', async () => {
    const tag = fresh('t')
    const reader = await approver()
    await workflow(tag, [step([reader], { sla_hours: 8 })])
    const tickets = [await asked(tag), await asked(tag), await asked(tag)].map(each => each.ticket.id)
    const { client } = hub.hub.database
    await client`update approval_tickets set step_started_at = now() - interval '9 hours', sla_due_at = now() - interval '1 hour' where id = ${tickets[2]!}`
    await client`update approval_tickets set step_started_at = now() - interval '7 hours', sla_due_at = now() + interval '1 hour' where id = ${tickets[1]!}`
    const { body } = await reader.call('GET', '/approvals/inbox')
    expect(body.data.map((each: Json) => each.step.sla_state)).toEqual(['overdue', 'due_soon', 'ok'])
    expect(body.data.map((each: Json) => each.id)).toEqual([tickets[2], tickets[1], tickets[0]])
    expect(body.meta).toMatchObject({ total: 3, overdue: 1 })
    expect((await reader.call('GET', '/approvals/inbox?sla_state=due_soon')).body.data).toHaveLength(1)
  })

  test('[RES-168] [RES-050] all_of_run approves what waits for the caller, names what does not, and is one message', async () => {
    const tag = fresh('t')
    const [reader, names] = [await approver(), [fresh('a'), fresh('b'), fresh('c')]]
    await workflow(tag, [step([reader])], { name: `${tag} mine` })
    await workflow(`${tag}x`, [step([bob])], { name: `${tag} theirs` })
    const run = await submit(hub, own, [
      ...names.slice(0, 2).map(name => server(name, { tags: [tag] })),
      server(names[2]!, { tags: [`${tag}x`] }),
    ])
    const bell = (await reader.call('GET', '/notifications')).body.data
    expect(bell).toMatchObject([{ type: 'approval.requested', body: expect.stringContaining('2 changes') }])
    const [first] = await inbox(reader)
    const { body } = await reader.call('POST', `/approvals/tickets/${first}/approve`, { all_of_run: true })
    expect(body.data.map((each: Json) => each.state)).toEqual(['approved', 'approved'])
    expect(body.refused).toMatchObject([
      { id: expect.any(String), reason: 'not_approver', message: expect.any(String) },
    ])
    expect((await applied(own, run.id)).status).toBe('partially-applied')
  })

  test('[RES-155] [RES-156] [RES-159] all_of_run that approves nothing answers as one decision does', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])])
    const { ticket } = await asked(tag)
    const all = { all_of_run: true }
    for (const [by, reason] of [
      [own, 'self_approval'],
      [bob, 'not_approver'],
    ] as const) {
      const { status, body } = await act(by, ticket, 'approve', all)
      expect([status, body.reason]).toEqual([403, reason])
    }
    expect((await act(ann, ticket, 'approve', all)).body.data).toMatchObject([{ state: 'approved' }])
    const late = await act(ann, ticket, 'approve', all)
    expect([late.status, Object.keys(late.body.errors)]).toEqual([422, ['state']])
  })

  test('[R-046] nobody who ever planned a run approves it', async () => {
    const tag = fresh('t')
    const planner = await hub.user(own.companyId, ['iac.submit', 'iac.apply', 'approvals.decide'])
    await workflow(tag, [step([planner, ann])])
    const { run, ticket } = await asked(tag)
    for (const by of [planner, own, own]) expect((await by.call('POST', `/iac/runs/${run.id}/replan`)).status).toBe(200)
    const refused = await act(planner, ticket, 'approve')
    expect([refused.status, refused.body.reason]).toEqual([403, 'self_approval'])
    expect((await act(ann, ticket, 'delegate', { user_id: planner.userId })).body.errors).toHaveProperty('user_id')
    expect((await act(ann, ticket, 'approve')).body.data.state).toBe('approved')
  })

  test('[RES-151] what asks for an approval does so of a change that takes it away too', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])], { match: { tags: [tag], environments: [tag] } })
    const name = fresh('guarded')
    await own.call('POST', '/servers', { name, tags: [tag], environment: tag })
    const approvals = async (spec: Json) => (await submit(hub, own, [server(name, spec)])).items[0].approvals
    expect(await approvals({ tags: [], environment: 'free' })).toEqual({ required: 1, given: 0 })
    expect(await approvals({ role: 'x' })).toEqual({ required: 1, given: 0 })
    expect(await approvals({ tags: [tag] })).toEqual({ required: 0, given: 0 })
  })

  test('[RES-153] a change of the workflow leaves open tickets as they are', async () => {
    const tag = fresh('t')
    const made = await workflow(tag, [step([ann])])
    const { ticket } = await asked(tag)
    await own.call('PATCH', `/approvals/workflows/${made.id}/steps/${made.steps[0].id}`, { user_ids: [bob.userId] })
    await own.call('POST', `/approvals/workflows/${made.id}/disable`)
    expect(await shown(ticket)).toMatchObject({ state: 'pending', workflow: { version: 1 } })
    expect((await act(ann, ticket, 'approve')).status).toBe(200)
  })

  test('[RES-153] [RES-164] steps that a workflow loses stay with open tickets; a row without its step is blocked and fails no list', async () => {
    const tag = fresh('t')
    const made = await workflow(tag, [step([ann]), step([bob])])
    const [kept, broken] = [await asked(tag), await asked(tag)]
    await act(ann, kept.ticket, 'approve')
    await own.call('POST', `/approvals/workflows/${made.id}/disable`)
    for (const { id } of made.steps)
      expect((await own.call('DELETE', `/approvals/workflows/${made.id}/steps/${id}`)).status).toBe(204)
    expect((await shown(kept.ticket)).step).toMatchObject({ position: 2, required: 1 })
    await hub.hub.database.client`update approval_tickets set step = 2 where id = ${broken.ticket.id}`
    for (const query of ['', '?blocked=1', `?run_id=${broken.run.id}`]) {
      const { status, body } = await own.call('GET', `/approvals/tickets${query}`)
      const row = body.data.find((each: Json) => each.id === broken.ticket.id)
      expect([query, status, row?.blocked]).toEqual([query, 200, 'not_enough_approvers'])
    }
    expect(await inbox(bob)).toContain(kept.ticket.id)
    expect((await act(bob, broken.ticket, 'approve')).body.reason).toBe('not_approver')
    expect((await own.call('GET', `/iac/runs/${broken.run.id}`)).status).toBe(200)
    await hub.hub.database.client`update approval_tickets set expires_at = now() where id = ${broken.ticket.id}`
    await tickTickets(hub.hub)
    expect((await shown(broken.ticket)).state).toBe('expired')
    expect((await act(bob, kept.ticket, 'approve')).body.data.state).toBe('approved')
  })

  test('[G-13] comments are written by those concerned; the requester reads a ticket without approvals.view', async () => {
    const tag = fresh('t')
    await workflow(tag, [step([ann])])
    const submitter = await hub.user(own.companyId, ['iac.submit'])
    const manager = await hub.user(own.companyId, ['approvals.manage'])
    const run = await submit(hub, submitter, [server(fresh('c'), { tags: [tag] })])
    const [ticket] = (await own.call('GET', `/approvals/tickets?run_id=${run.id}`)).body.data
    expect((await submitter.call('GET', `/approvals/tickets/${ticket.id}`)).status).toBe(200)
    expect((await submitter.call('GET', '/approvals/tickets')).status).toBe(403)
    const stranger = await hub.user(own.companyId, ['approvals.decide'])
    expect((await stranger.call('GET', `/approvals/tickets/${ticket.id}`)).status).toBe(403)
    expect((await act(stranger, ticket, 'comments', { comment: 'x' })).status).toBe(403)
    const written: Json[] = []
    const colleague = await hub.user(own.companyId, ['iac.submit', 'approvals.view'])
    for (const id of [ticket.id, crypto.randomUUID()]) {
      const { status, body } = await act(colleague, { id }, 'comments', { comment: 'x' })
      expect([status, body.reason]).toEqual([403, 'permission_denied'])
    }
    expect((await act(manager, { id: crypto.randomUUID() }, 'comments', { comment: 'x' })).status).toBe(404)
    for (const by of [submitter, ann, own, manager]) {
      const { status, body } = await act(by, ticket, 'comments', { comment: 'why' })
      expect(status).toBe(201)
      written.push(body.data)
    }
    for (const { id } of written) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/)
    // The answer to each is what the ticket shows of it, the time in the same form.
    expect((await shown(ticket)).comments).toEqual(written)
    for (const list of ['tickets', 'inbox'])
      expect((await own.call('GET', `/approvals/${list}?kind=pod`)).body.errors, list).toHaveProperty('kind')
    const other = await hub.tenant()
    expect((await other.call('GET', `/approvals/tickets/${ticket.id}`)).status).toBe(404)
    expect((await act(other, ticket, 'approve')).status).toBe(404)
  })
})
