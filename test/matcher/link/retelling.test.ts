// A hub that knows another server of a host than its feed has told yet: what it rejects is told anew, never in a loop.
import { afterEach, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import { until } from '../../support/until.ts'
import { nameDatabase } from '../databases.ts'
import { openFindings, Rig } from '../rig.ts'
import { packagesOf, reportOf, type ScanClient } from '../scan-client.ts'

let rig: Rig
afterEach(() => rig.dispose())

const affected = packagesOf(['openssl', '3.0.11-1~deb12u2'])
const fixed = packagesOf(['openssl', '3.0.13-1~deb12u1'])

/** The feed is asked at the start only, but for what the matcher itself asks. */
async function start(): Promise<ScanClient> {
  rig = await new Rig({
    keys: { 'hosts.sync_interval': '1h' },
    prepare: async dir =>
      void (await nameDatabase(dir, { openssl: { 'CVE-2024-0001': '3.0.13-1~deb12u1', 'CVE-2024-0002': null } })),
  }).start()
  await until('the database', () => rig.state.feed().syncedAtMs !== null && rig.state.currentVersion() > 0)
  rig.hub.script = ({ path, body }) => (path === '/events' ? judge(body as { events: SecurityEvent[] }) : null)
  return rig.enrolled('web')
}

/** As decision G-156 has it: null, or the server that the hub knows. */
function judge({ events }: { events: SecurityEvent[] }): Response {
  const isKnown = ({ host_id, server_id }: SecurityEvent): boolean =>
    server_id === null || rig.hub.hosts.get(host_id)?.server_id === server_id
  const taken = events.filter(isKnown)
  rig.hub.taken.push(...taken)
  const rejected = events.filter(event => !isKnown(event))
  return rig.hub.ok({
    accepted: taken.map(event => event.event_id),
    rejected: rejected.map(event => ({ event_id: event.event_id, reason: 'unknown_server' })),
  })
}

const openAtHub = (host: string): string[] =>
  [...openFindings(rig.told(host)).values()].map(finding => finding.vuln_id).toSorted()

/** Attaches at the hub and lets the matcher know. */
async function attach(client: ScanClient): Promise<string> {
  const server = randomUUID()
  rig.hub.putHost({ host_id: client.hostId, server_id: server })
  await rig.state.applyHostsPage(
    [
      {
        hostId: client.hostId,
        companyId: rig.company,
        serverId: server,
        publicKey: client.publicKey,
        state: 'active',
        isInactive: false,
        version: rig.hub.hosts.get(client.hostId)!.sync_version,
        isDeleted: false,
      },
    ],
    { nextSince: rig.hub.hosts.get(client.hostId)!.sync_version, isLast: true },
  )
  return server
}

const eventsSent = (): SecurityEvent[] =>
  rig.hub.to('/events').flatMap(request => (request.body as { events: SecurityEvent[] }).events)

test('[MAT-053] [MAT-164] a report after a detachment that the feed has not told yet: opened, resolved and scanned reach the hub', async () => {
  const client = await start()
  await client.report(reportOf('web', { packages: affected }))
  await until('both findings', () => openAtHub(client.hostId).length === 2)
  await attach(client)
  rig.hub.putHost({ host_id: client.hostId, server_id: null })
  await client.report(reportOf('web', { packages: fixed }))
  await until('the resolution', () => openAtHub(client.hostId).join() === 'CVE-2024-0002')
  await rig.delivered()
  const told = rig.told(client.hostId)
  expect(told.at(-1)).toMatchObject({ type: 'server.scanned', server_id: null, payload: { open_findings: 1 } })
  expect(told.filter(({ type }) => type === 'finding.resolved')).toMatchObject([
    { server_id: null, payload: { resolved_reason: 'package_updated' } },
  ])
  const sent = eventsSent()
  expect(new Set(sent.map(({ event_id }) => event_id)).size).toBe(sent.length)
  expect(rig.state.host(client.hostId)?.serverId).toBeNull()
})

test('[MAT-053] [MAT-164] a finding that is rejected while the host moves to another server is opened there', async () => {
  const client = await start()
  await attach(client)
  const server = randomUUID()
  rig.hub.putHost({ host_id: client.hostId, server_id: server })
  await client.report(reportOf('web', { packages: affected }))
  await until('both findings', () => openAtHub(client.hostId).length === 2)
  expect(rig.told(client.hostId).every(event => event.server_id === server)).toBe(true)
})

test('[MAT-164] a hub that rejects every event of a host is told anew once for each change of the host, and no more', async () => {
  const client = await start()
  await attach(client)
  rig.hub.script = ({ path, body }) =>
    path === '/events'
      ? rig.hub.ok({
          accepted: [],
          rejected: (body as { events: SecurityEvent[] }).events.map(({ event_id }) => ({
            event_id,
            reason: 'unknown_server',
          })),
        })
      : null
  const pulls = (): number => rig.hub.to('/scan-hosts').length
  const before = pulls()
  await client.report(reportOf('web', { packages: affected }))
  await rig.delivered()
  await until('the pull', () => pulls() > before)
  await client.report(reportOf('web', { packages: fixed }))
  await rig.delivered()
  // What two reports told: the findings, a resolution, an update, and the scans.
  expect(eventsSent()).toHaveLength(6)
  expect(pulls()).toBe(before + 1)
  await attach(client)
  // The resolution, the finding that is open and the scan, once more.
  await until('the retelling', () => eventsSent().length === 9)
  await rig.delivered()
  await until('the pull', () => pulls() === before + 2)
  expect(eventsSent()).toHaveLength(9)
  expect(
    eventsSent()
      .slice(6)
      .map(({ type }) => type),
  ).toEqual(['finding.resolved', 'finding.opened', 'server.scanned'])
})

test('[MAT-054] [MAT-209] what was rejected of a host that is revoked or purged is told no more', async () => {
  const client = await start()
  const server = await attach(client)
  rig.hub.putHost({ host_id: client.hostId, server_id: randomUUID() })
  let isHeld = true
  const { script } = rig.hub
  rig.hub.script = request =>
    request.path === '/scan-hosts' && isHeld ? rig.hub.error(503, 'unavailable') : script(request)
  await client.report(reportOf('web', { packages: affected }))
  await rig.delivered()
  expect((await rig.admin('DELETE', `/servers/${server}/data?company_id=${rig.company}`)).status).toBe(204)
  isHeld = false
  await attach(client)
  await rig.delivered()
  expect(rig.told(client.hostId)).toEqual([])
  expect(eventsSent()).toHaveLength(3)
})
