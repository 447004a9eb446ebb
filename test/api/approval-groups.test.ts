// Teams and roles that steps of approval workflows name, when they are deleted.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Answer, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let own: Tenant
let count = 0

beforeAll(async () => {
  hub = await TestHub.start()
  own = await hub.tenant()
})
afterAll(() => hub.stop())

const fresh = (what: string): string => `${what} ${++count}`
async function made(path: string, body: Json): Promise<Json> {
  const { status, body: answered } = await own.call('POST', path, body)
  expect(status, JSON.stringify(answered)).toBe(201)
  return answered.data
}
const teamOf = () => made('/teams', { name: fresh('team') })
const roleOf = () => made('/roles', { name: fresh('role'), permissions: ['approvals.decide'] })
const workflow = (steps: Json[]) => made('/approvals/workflows', { name: fresh('flow'), kinds: ['silence'], steps })
const shown = async ({ id }: Json): Promise<Json> => (await own.call('GET', `/approvals/workflows/${id}`)).body.data
const remove = (path: string, { id }: Json): Promise<Answer> => own.call('DELETE', `${path}/${id}`)

test('[RES-172] a team or role that a step cannot do without is not deleted, and the workflows are named', async () => {
  const [team, role] = [await teamOf(), await roleOf()]
  const flow = await workflow([{ user_ids: [own.userId] }, { team_id: team.id }])
  const ofRole = await workflow([{ approver_role: role.name }])
  for (const [path, group, field, of] of [
    ['/teams', team, 'steps.1.team_id', flow],
    ['/roles', role, 'steps.0.approver_role', ofRole],
  ] as const) {
    const { status, body } = await remove(path, group)
    expect([status, body.reason, body.referrers_total]).toEqual([409, 'in_use', 1])
    expect(body.referrers).toEqual([{ kind: 'approval_workflow', id: of.id, name: of.name, field }])
    expect((await own.call('GET', `${path}/${group.id}`)).status).toBe(200)
    expect(await shown(of)).toEqual(of)
  }
})

test('[RES-172] nor is one without which too few people are left to approve', async () => {
  const team = await teamOf()
  await workflow([{ team_id: team.id, user_ids: [own.userId], required: 2 }])
  expect((await remove('/teams', team)).status).toBe(409)
})

test('nor is one to which alone a step is handed on when it is overdue', async () => {
  const team = await teamOf()
  const flow = await workflow([{ user_ids: [own.userId], on_overdue: 'escalate', escalate_to: { team_id: team.id } }])
  const { status, body } = await remove('/teams', team)
  expect([status, body.referrers[0].field]).toEqual([409, 'steps.0.escalate_to.team_id'])
  expect(await shown(flow)).toEqual(flow)
})

test('[RES-017] from a step with others it goes, which makes another version of the workflow and stands in the audit log', async () => {
  const team = await teamOf()
  const people = { team_id: team.id, user_ids: [own.userId] }
  const flow = await workflow([{ ...people, escalate_to: people }])
  const apart = await workflow([{ user_ids: [own.userId] }])
  expect((await remove('/teams', team)).status).toBe(204)
  const after = await shown(flow)
  expect([after.version, (await shown(apart)).version]).toEqual([flow.version + 1, apart.version])
  expect(after.steps).toMatchObject([
    { team_id: null, user_ids: [own.userId], escalate_to: { team_id: null, user_ids: [own.userId] } },
  ])
  const log: Json[] = (await own.call('GET', `/audit-log?subject=${flow.id}`)).body.data
  const [entry] = log.filter(each => each.action === 'approval_workflow.update')
  expect(entry?.changes.steps.old[0].team_id).toBe(team.id)
  expect(entry?.changes.steps.new[0].team_id).toBeNull()
})

test('who may not see workflows is told how many need it', async () => {
  const team = await teamOf()
  await workflow([{ team_id: team.id }])
  const other = await hub.user(own.companyId, ['identity.manage', 'identity.view'])
  const { status, body } = await other.call('DELETE', `/teams/${team.id}`)
  expect([status, body.referrers, body.referrers_total]).toEqual([409, [], 1])
})

test('[RES-172] beside a deletion a workflow that names what goes is refused, or the deletion is', async () => {
  const ways: [string, () => Promise<Json>, (group: Json) => Json][] = [
    ['/roles', roleOf, ({ id }) => ({ approver_role: id })],
    ['/teams', teamOf, ({ id }) => ({ team_id: id })],
    ['/teams', teamOf, ({ id }) => ({ user_ids: [own.userId], on_overdue: 'escalate', escalate_to: { team_id: id } })],
  ]
  for (const [path, make, step] of ways)
    for (let turn = 0; turn < 5; turn++) {
      const group = await make()
      const body = { name: fresh('flow'), kinds: ['silence'], steps: [step(group)] }
      const [created, removed] = await Promise.all([
        own.call('POST', '/approvals/workflows', body),
        remove(path, group),
      ])
      expect([201, 422]).toContain(created.status)
      expect([path, removed.status]).toEqual([path, created.status === 201 ? 409 : 204])
    }
})
