// Who is told by which channel, without a hub: thresholds, scopes, addresses that two name, and webhooks.
import { describe, expect, test } from 'bun:test'
import {
  type Attributes,
  bellsOf,
  devicesOf,
  reaches,
  type ToTell,
  webhooksOf,
} from '../../apps/hub/notifications/choose-channels.ts'
import { mailboxesOf } from '../../apps/hub/notifications/one-message-a-mailbox.ts'
import type { Recipient } from '../../apps/hub/notifications/recipients.ts'

const LEVELS = ['info', 'warning', 'critical'] as const

const person = (more: Partial<Recipient> = {}): Recipient => ({
  id: crypto.randomUUID(),
  email: 'lan@example.net',
  language: 'vi',
  isUnconfirmed: false,
  bellFrom: 'info',
  emailFrom: 'info',
  ...more,
})
const server = (more: Partial<Attributes> = {}): Attributes => ({
  id: 's1',
  tags: [],
  environment: null,
  role: null,
  datacenter: null,
  ...more,
})
const toTell = (more: Partial<ToTell> = {}): ToTell => ({
  type: 'security.finding.p1_opened',
  severity: 'warning',
  people: [],
  isForGroups: true,
  servers: [server()],
  ...more,
})
const group = (more: Partial<Parameters<typeof mailboxesOf>[1][number]> = {}) => ({
  type: 'email',
  address: 'ops@example.net',
  minSeverity: 'info',
  scope: { all: true },
  ...more,
})

test('a severity reaches what begins at it or below; off is never reached', () => {
  for (const [at, severity] of LEVELS.entries()) {
    for (const [from, level] of LEVELS.entries())
      expect([severity, level, reaches(severity, level)]).toEqual([severity, level, at >= from])
    expect(reaches(severity, 'off')).toBe(false)
  }
})

test('bells and devices are chosen each by their own level', () => {
  const people = [person({ id: 'a', bellFrom: 'critical' }), person({ id: 'b' }), person({ id: 'c', bellFrom: 'off' })]
  expect(bellsOf(toTell({ people })).map(({ id }) => id)).toEqual(['b'])
  expect(bellsOf(toTell({ people, severity: 'critical' })).map(({ id }) => id)).toEqual(['a', 'b'])
  const devices = [{ from: 'warning' }, { from: 'critical' }, { from: 'off' }]
  expect(devicesOf('warning', devices)).toEqual([{ from: 'warning' }])
})

describe('mailboxes', () => {
  const addresses = (telling: ToTell, ...groups: ReturnType<typeof group>[]) =>
    mailboxesOf(telling, groups).map(({ address }) => address)

  test('an address that a group and a person name gets one message, in the language of the person', () => {
    const people = [person({ email: 'Ops@Example.net', isUnconfirmed: true })]
    expect(mailboxesOf(toTell({ people }), [group(), group({ address: 'other@example.net' })])).toEqual([
      { address: 'Ops@Example.net', language: 'vi', isUnconfirmed: true },
      { address: 'other@example.net', language: 'en', isUnconfirmed: true },
    ])
  })

  test('a group is left out where no permission is held for it, below its severity, and when it is no mailbox', () => {
    expect(addresses(toTell({ isForGroups: false }), group())).toEqual([])
    expect(addresses(toTell(), group({ minSeverity: 'critical' }), group({ minSeverity: 'off' }))).toEqual([])
    expect(addresses(toTell(), group({ type: 'webhook' }))).toEqual([])
    expect(addresses(toTell({ people: [person({ emailFrom: 'critical' })] }))).toEqual([])
  })

  test('a scope covers by id, tag, environment, role or datacenter; what is about no server concerns only a scope of all', () => {
    const own = server({ tags: ['web', 'eu'], environment: 'prod', role: 'db', datacenter: 'hn' })
    const covering = [
      { server_ids: ['s0', 's1'] },
      { tags: ['eu'] },
      { environments: ['prod'] },
      { roles: ['db'] },
      { datacenters: ['hn'] },
    ]
    for (const scope of covering) {
      expect([scope, addresses(toTell({ servers: [own] }), group({ scope }))]).toEqual([scope, ['ops@example.net']])
      // One of several servers is enough, another server is none of it, and an absent attribute matches nothing.
      expect(addresses(toTell({ servers: [server({ id: 's9' }), own] }), group({ scope }))).toHaveLength(1)
      expect([scope, addresses(toTell({ servers: [server({ id: 's9' })] }), group({ scope }))]).toEqual([scope, []])
      expect(addresses(toTell({ servers: [] }), group({ scope }))).toEqual([])
    }
    expect(addresses(toTell({ servers: [] }), group())).toHaveLength(1)
    for (const scope of [{}, { all: false }, { tags: 'eu' }, { environments: [null] }, { server_ids: null }])
      expect([scope, addresses(toTell(), group({ scope }))]).toEqual([scope, []])
  })
})

test('a webhook is called for the types that it names, or for all, and with those items that its scope concerns', () => {
  const hook = (more: object = {}) => ({ events: [] as string[], minSeverity: 'info', scope: { all: true }, ...more })
  const items = [
    { id: 1, servers: [server({ tags: ['web'] })] },
    { id: 2, servers: [] },
  ]
  const chosen = (...hooks: ReturnType<typeof hook>[]) =>
    webhooksOf(toTell(), hooks, items).map(each => each.items.map(({ id }) => id))
  expect(chosen(hook())).toEqual([[1, 2]])
  expect(chosen(hook({ events: ['security.finding.p1_opened'] }), hook({ events: ['alert.opened'] }))).toEqual([[1, 2]])
  expect(chosen(hook({ minSeverity: 'critical' }), hook({ minSeverity: 'off' }))).toEqual([])
  expect(chosen(hook({ scope: { tags: ['web'] } }), hook({ scope: { tags: ['db'] } }))).toEqual([[1], []])
})
