import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parse } from 'csv-parse/sync'
import { csvCell } from '../../apps/hub/security/exports/export-lines.ts'
import { deleteOldExports } from '../../apps/hub/security/exports/exports.ts'
import { disagreement, operationFor } from './answers.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import { finding, seedFindings, seedHost } from './security-rig.ts'

let hub: TestHub
let tenant: Tenant
let hostId: string

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  hostId = await seedHost(hub, tenant.companyId)
})
afterAll(() => hub.stop())

const start = (body: Json, by: Pick<Tenant, 'call'> = tenant) => by.call('POST', '/security/exports', body)
const download = (id: string, token: string = tenant.token, accept = '*/*') =>
  fetch(`${hub.url}/api/v1/security/exports/${id}/download`, {
    headers: { Authorization: `Bearer ${token}`, Accept: accept },
  })
async function exported(body: Json, by: Pick<Tenant, 'call' | 'token'> = tenant): Promise<Response> {
  const { status, body: made } = await start(body, by)
  expect(status).toBe(202)
  return until('the export is ready', async () => {
    const response = await download(made.data.id, by.token)
    return response.status === 200 ? response : null
  })
}
const vuln = () => `CVE-2024-${Math.floor(Math.random() * 1e9)}`

test('[SECU-009] a filtered export has every finding once, in the order of the list, as CSV and as JSON lines', async () => {
  const id = vuln()
  const rows = Array.from({ length: 1234 }, (_, index) =>
    finding(tenant.companyId, hostId, { vuln_id: id, risk: index % 100, package_key: `p${index}` }),
  )
  await seedFindings(hub, [...rows, finding(tenant.companyId, hostId)])
  const csv = await exported({ format: 'csv', filters: { vuln_id: id } })
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(csv.headers.get('content-disposition')).toMatch(/^attachment; filename="findings-\d{4}-\d\d-\d\d\.csv"$/)
  const lines: Json[] = parse(await csv.text(), { columns: true })
  expect(lines.map(line => line.id).sort()).toEqual(rows.map(row => row.id).sort())
  const risks = lines.map(line => Number(line.risk))
  expect(risks).toEqual(risks.toSorted((a, b) => b - a))
  const jsonl = await exported({ format: 'jsonl', filters: { vuln_id: id } })
  const objects: Json[] = (await jsonl.text())
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(objects.map(object => object.id)).toEqual(lines.map(line => line.id))
  const [listed] = (await tenant.call('GET', `/security/findings?vuln_id=${id}`)).body.data
  expect(objects[0]).toEqual(listed)
  // Who asks for the type that the file has gets it, and the document names both.
  const { pathname } = new URL(jsonl.url)
  const exportId = pathname.split('/').at(-2) ?? ''
  expect((await download(exportId, tenant.token, 'application/jsonl')).status).toBe(200)
  const documented = operationFor('GET', pathname)
  const fault = documented ? disagreement(documented, 200, jsonl.headers.get('content-type'), '') : 'no operation'
  expect(fault).toBeNull()
})

test('[SECU-009] no text of a finding becomes a formula or a further row of a table', async () => {
  const hostile = [
    '=HYPERLINK("http://evil.example","x")',
    '+1+1',
    '-2+3',
    '@SUM(A1)',
    '\t=1',
    '\r\n=1',
    ' =1',
    'a,b";c\r\nd',
    '"quoted"',
    '＝1',
    '|calc',
    'a;=1',
    'a\r\n=1',
    '; -1',
  ]
  const id = vuln()
  await seedFindings(
    hub,
    hostile.map(text => finding(tenant.companyId, hostId, { vuln_id: id, package_key: text, fixed_version: text })),
  )
  const rows: Json[] = parse(await (await exported({ format: 'csv', filters: { vuln_id: id } })).text(), {
    columns: true,
  })
  expect(rows).toHaveLength(hostile.length)
  // Programs that end cells at semicolons do so within quotes too.
  for (const row of rows)
    for (const cell of [row.package_key, row.fixed_version, row.packages])
      for (const piece of cell.split(/[\r\n;]/)) expect(piece).not.toMatch(/^[\s]*[=+\-@|＝]/)
  const plain = (cell: string): string => cell.replaceAll(/(^|[\r\n;]\s*)'/g, '$1')
  expect(rows.map(row => plain(row.package_key)).sort()).toEqual(hostile.toSorted())
  const lines = (await (await exported({ format: 'jsonl', filters: { vuln_id: id } })).text()).trimEnd().split('\n')
  expect(lines.map(line => JSON.parse(line).package_key).sort()).toEqual(hostile.toSorted())
  expect([csvCell(-5), csvCell(null), csvCell(true), csvCell('plain')]).toEqual(['-5', '', 'true', 'plain'])
})

test('[SECU-009] exports need security.export; what the requester may not see is not in them, and others do not reach it', async () => {
  const secret = finding(tenant.companyId, hostId, { kind: 'secret', vuln_id: vuln() })
  await seedFindings(hub, [secret])
  const exporter = await hub.user(tenant.companyId, ['security.export'])
  const viewer = await hub.user(tenant.companyId, ['security.view'])
  expect((await start({ format: 'csv' }, viewer)).status).toBe(403)
  const filters = { vuln_id: secret.vuln_id }
  expect(await (await exported({ format: 'jsonl', filters }, exporter)).text()).toBe('')
  const { data } = (await start({ format: 'jsonl', filters })).body
  await until('it is ready', async () => (await download(data.id)).status === 200)
  expect((await (await download(data.id)).text()).trim()).toContain(secret.id)
  expect((await download(data.id, exporter.token)).status).toBe(404)
  expect((await download(data.id, viewer.token)).status).toBe(403)
  expect((await download(data.id, (await hub.tenant()).token)).status).toBe(404)
  expect((await download(data.id, tenant.token, 'text/csv')).status).toBe(200)
})

test.each([
  ['another format', { format: 'xlsx' }, 'format'],
  ['a wrong filter', { format: 'csv', filters: { priority: 'p9' } }, 'filters.priority'],
])('[SECU-009] %s is refused', async (_name, body, field) => {
  const { status, body: answered } = await start(body)
  expect([status, Object.keys(answered.errors)]).toEqual([422, [field]])
})

test('[SECU-009] a try that counts as lost and still writes adds nothing to the export of the next one', async () => {
  const owner = await hub.tenant()
  await seedFindings(hub, [finding(owner.companyId, await seedHost(hub, owner.companyId))])
  const { client } = hub.hub.database
  const id = await client.begin(async blocker => {
    await blocker`lock table security_findings in access exclusive mode`
    const made = (await start({ format: 'jsonl' }, owner)).body.data.id
    await until('the try to have begun', async () => {
      const [row] = await client`select status from security_exports where id = ${made}`
      return row?.status === 'running'
    })
    // As the next try does.
    await client`update security_exports set attempt = gen_random_uuid() where id = ${made}`
    return made
  })
  await until('the job to end', async () => {
    const jobs = await client`
      select from pgboss.job where name = 'security.export' and data->>'export_id' = ${id} and state = 'completed'`
    return jobs.length === 1
  })
  const [row] =
    await client`select status, (select count(*)::int from security_export_parts where export_id = id) as parts
    from security_exports where id = ${id}`
  expect(row).toEqual({ status: 'running', parts: 0 })
})

test('[SECU-009] an export is kept for 24 hours, and a company has so many of them', async () => {
  const owner = await hub.tenant()
  const { data } = (await start({ format: 'csv' }, owner)).body
  expect(data).toMatchObject({ format: 'csv', filters: {}, download: `/api/v1/security/exports/${data.id}/download` })
  expect(Date.parse(data.expires_at) - Date.parse(data.created_at)).toBe(24 * 3_600_000)
  await until('it is ready', async () => (await download(data.id, owner.token)).status === 200)
  // As it is read, and not as a whole.
  expect((await download(data.id, owner.token)).headers.get('transfer-encoding')).toBe('chunked')
  const { client } = hub.hub.database
  await client`update security_exports set expires_at = now() - interval '1 second' where id = ${data.id}`
  expect((await download(data.id, owner.token)).status).toBe(404)
  await deleteOldExports(hub.hub)
  expect(await client`select part from security_export_parts where export_id = ${data.id}`).toHaveLength(0)
  for (let index = 0; index < 20; index++) expect((await start({ format: 'csv' }, owner)).status).toBe(202)
  expect((await start({ format: 'csv' }, owner)).status).toBe(422)
})
