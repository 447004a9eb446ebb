// Resources, manifests and approvals in a real browser, by role and accessible name.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser } from 'playwright-core'
import { kinds } from '../../../apps/hub/kinds.ts'
import { sitePages } from '../../../apps/hub/web/address/site-map.ts'
import { type Json, type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { closeContexts, sharedBrowser } from '../browser.ts'
import { logIn, newPerson, slugOf } from '../visitor.ts'

let hub: TestHub
let browser: Browser
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start({ 'rate.session_per_minute': 100_000, 'rate.web_per_minute': 100_000 })
  tenant = await hub.tenant()
  browser = await sharedBrowser()
}, 120_000)
afterAll(async () => {
  await closeContexts()
  await hub?.stop()
}, 120_000)

async function visitAs(email: string, path: string) {
  const session = await logIn(hub.url, email)
  const [name = '', value = ''] = session.cookie.split('=')
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}${path}`)
  return page
}
const visit = async (path: string, permissions: readonly string[] = ['*']) =>
  visitAs((await newPerson(hub, tenant.companyId, permissions)).email, path)

const made = async (path: string, body: Json): Promise<Json> => {
  const answer = await tenant.call('POST', path, body)
  expect([path, answer.status, answer.body.errors]).toEqual([path, 201, undefined])
  return answer.body.data
}

test('the pages of resources are shown to who may see some kind, whichever it is', () => {
  const keys = new Set(kinds.map(({ info }) => info.permissions.view))
  expect(new Set(sitePages.resources.anyOf)).toEqual(keys)
})

test('[RES-023] a subnet is added, changed, deleted and restored by its form; what is refused stands at its field', async () => {
  const page = await visit('/infrastructure')
  await page.getByRole('table', { name: 'Kinds' }).getByRole('link', { name: 'subnets' }).click()
  await page.getByText('There are no subnets yet.').waitFor()
  await page.getByRole('button', { name: 'Add subnet' }).click()
  const form = page.getByRole('dialog', { name: 'Add subnet' })
  await form.getByLabel('name').fill('office')
  await form.getByLabel('cidr').fill('10.9.0.300/24')
  await form.getByLabel('tags').fill('lan\nb')
  await form.getByLabel('reserved').fill('[{"from": "10.9.0.2"')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('This is no JSON').waitFor()
  await form.getByLabel('reserved').fill('[{"from": "10.9.0.2", "to": "10.9.0.9"}]')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByLabel('cidr').and(page.locator('[aria-invalid=true]')).waitFor()
  expect(await form.getByLabel('tags').inputValue()).toBe('lan\nb')
  await form.getByLabel('cidr').fill('10.9.0.0/24')
  await form.getByRole('button', { name: 'Save' }).click()

  await page.getByRole('heading', { name: 'office', level: 1 }).waitFor()
  const { body } = await tenant.call('GET', '/subnets?search=office')
  expect(body.data).toHaveLength(1)
  expect(body.data[0]).toMatchObject({ cidr: '10.9.0.0/24', tags: ['b', 'lan'] })
  const path = `/subnets/${body.data[0].id}`

  await page.getByRole('button', { name: 'Edit' }).click()
  const edit = page.getByRole('dialog', { name: 'Edit office' })
  await edit.getByLabel('gateway').fill('10.9.0.1')
  await edit.getByRole('button', { name: 'Save' }).click()
  await until('the gateway', async () => (await tenant.call('GET', path)).body.data.gateway === '10.9.0.1')
  await page.getByText('subnet.update').waitFor()

  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('There are no subnets yet.').waitFor()
  await page.getByRole('button', { name: 'Trash' }).click()
  await page.getByRole('link', { name: 'office' }).click()
  await page.getByRole('button', { name: 'Restore' }).click()
  await page.getByRole('button', { name: 'Edit' }).waitFor()
  expect((await tenant.call('GET', path)).status).toBe(200)
}, 120_000)

test('a form that is refused has the focus at its first field at fault, in sight; sent twice in a row it is sent once', async () => {
  const page = await visit('/infrastructure/subnet')
  await page.setViewportSize({ width: 1280, height: 500 })
  await page.getByRole('button', { name: 'Add subnet' }).click()
  const form = page.getByRole('dialog', { name: 'Add subnet' })
  await form.getByLabel('name').fill('twice')
  await form.getByLabel('cidr').fill('10.9.1.300/24')
  let sent = 0
  let goOn = () => {}
  const mayGoOn = new Promise<void>(done => {
    goOn = done
  })
  await page.route('**/api/v1/subnets', async route => {
    sent += 1
    await mayGoOn
    await route.continue()
  })
  const save = form.getByRole('button', { name: 'Save' })
  await save.focus()
  await page.keyboard.press('Enter')
  await form.getByRole('button', { name: 'Save', disabled: true }).and(page.locator(':focus')).waitFor()
  await page.keyboard.press('Enter')
  await form.getByLabel('cidr').press('Enter')
  goOn()
  const cidr = form.getByLabel('cidr').and(page.locator('[aria-invalid=true]:focus'))
  await cidr.waitFor()
  const box = await cidr.boundingBox()
  expect(box === null ? null : box.y >= 0 && box.y + box.height <= 500).toBe(true)
  expect(sent).toBe(1)
}, 60_000)

test('what an address asks for that is none changes nothing: an order that no list has, a window beyond all numbers', async () => {
  await made('/subnets', { name: 'asked for', cidr: '10.6.0.0/24' })
  const session = await logIn(hub.url, (await newPerson(hub, tenant.companyId, ['*'])).email)
  const seen = async (view: string, asked: Record<string, string>): Promise<Json> => {
    const search = new URLSearchParams({ company: slugOf(session), ...asked })
    const answer = await fetch(`${hub.url}/web/view/${view}?${search}`, { headers: { cookie: session.cookie } })
    expect([view, asked, answer.status]).toEqual([view, asked, 200])
    return answer.json()
  }
  for (const sort of ['constructor', 'toString', '-nothing'])
    expect((await seen('resources', { kind: 'subnet', sort })).rows.length).toBeGreaterThan(0)
  for (const offset of ['1e300', 'Infinity', '-1', 'x']) {
    await seen('resources', { kind: 'subnet', offset })
    await seen('iac-runs', { offset })
    await seen('approvals', { past: '1', offset })
    await seen('findings', { offset })
  }
}, 60_000)

test('who may see one kind alone sees no other, may change nothing, and no other company', async () => {
  const subnet = await made('/subnets', { name: 'seen', cidr: '10.8.0.0/24' })
  const zone = await made('/dns/zones', { name: 'zone.example.test' })
  const page = await visit(`/infrastructure/subnet/${subnet.id}`, ['network.view'])
  await page.getByRole('heading', { name: 'seen', level: 1 }).waitFor()
  expect(await page.getByRole('button', { name: 'Edit' }).count()).toBe(0)
  const base = page.url().replace(/\/infrastructure.*/, '')
  await page.goto(`${base}/infrastructure/dns_zone/${zone.id}`)
  await page.getByText('dns.view').waitFor()
  await page.goto(`${base}/infrastructure`)
  await page.getByRole('link', { name: 'addresses' }).waitFor()
  expect(await page.getByRole('link', { name: 'zones' }).count()).toBe(0)

  const other = await hub.tenant()
  const stranger = await newPerson(hub, other.companyId, ['*'])
  const theirs = await visitAs(stranger.email, `/infrastructure/subnet/${subnet.id}`)
  await theirs.getByRole('heading', { name: 'There is nothing here' }).waitFor()
}, 120_000)

test('a number that names something is no amount: VLANs, serials and ports stand without marks between their digits', async () => {
  const subnet = await made('/subnets', { name: 'tagged', cidr: '10.5.0.0/24', vlan_id: 2345 })
  const { id: zoneId } = await made('/dns/zones', { name: 'serial.example.test', default_ttl: 7200 })
  const { serial } = (await tenant.call('GET', `/dns/zones/${zoneId}`)).body.data
  const page = await visit(`/infrastructure/subnet/${subnet.id}`)
  await page.getByRole('definition').getByText('2345', { exact: true }).waitFor()
  await page.goto(page.url().replace(/subnet.*/, `dns_zone/${zoneId}`))
  await page.getByRole('definition').getByText(String(serial), { exact: true }).first().waitFor()
  await page.getByRole('definition').getByText('7,200', { exact: true }).waitFor()
}, 60_000)

test('at 360 px words of what a resource holds stay whole: in its small tables, which scroll, and in what it says within', async () => {
  const block = '2001:db8:aaaa:bbbb'
  const reserved = [{ from: `${block}:1111:2222:3333:4444`, to: `${block}:1111:2222:3333:5555` }]
  const subnet = await made('/subnets', { name: 'narrow', cidr: `${block}::/64`, reserved })
  const soa = { primary: 'primary.narrow.example.test', contact: 'hostmaster@narrow.example.test' }
  const zone = await made('/dns/zones', { name: 'narrow.example.test', soa })
  const page = await visit(`/infrastructure/subnet/${subnet.id}`)
  await page.setViewportSize({ width: 360, height: 800 })
  const cells = page.locator('.value-rows').filter({ hasText: block }).getByRole('cell')
  await cells.first().waitFor()
  const heights = await cells.evaluateAll(all => all.map(cell => cell.getBoundingClientRect().height))
  expect(Math.max(...heights)).toBeLessThan(45)
  const scrolled = () => page.evaluate<number>('document.documentElement.scrollWidth')
  expect(await scrolled()).toBeLessThanOrEqual(360)
  await page.goto(page.url().replace(/subnet.*/, `dns_zone/${zone.id}`))
  const within = page.getByRole('definition').getByRole('definition')
  const primary = within.filter({ hasText: soa.primary })
  expect((await primary.boundingBox())?.height).toBeLessThan(50)
  expect(await scrolled()).toBeLessThanOrEqual(360)
}, 60_000)

test('what can be done with a resource has a button, which the API knows; what is refused is said, what runs is listed', async () => {
  const { paths } = (await (await fetch(`${hub.url}/openapi.json`)).json()) as Json
  const asked = Object.entries<Json>(paths).filter(([, { post }]) => post?.requestBody?.required !== true)
  for (const { info, parameter, buttons } of kinds)
    for (const act of Object.keys(buttons))
      expect(asked.map(([path]) => path)).toContain(`/api/v1${info.path}/{${parameter}}/${act}`)
  const zone = await made('/dns/zones', { name: 'buttons.example.test' })
  const page = await visit(`/infrastructure/dns_zone/${zone.id}`)
  await page.getByRole('button', { name: 'sync' }).click()
  await page.getByRole('listitem').filter({ hasText: 'sync' }).first().waitFor()
  const device = await made('/load-balancers', { name: 'front', vendor: 'haproxy', integration: 'none' })
  await page.goto(page.url().replace(/dns_zone.*/, `load_balancer/${device.id}`))
  await page.getByRole('button', { name: 'sync' }).click()
  await page.getByRole('alert').waitFor()
  const reader = await visit(`/infrastructure/dns_zone/${zone.id}`, ['dns.view'])
  await reader.getByRole('heading', { name: 'buttons.example.test', level: 1 }).waitFor()
  expect(await reader.getByRole('button', { name: 'sync' }).count()).toBe(0)
}, 120_000)

test('manifests are submitted, what they would change is shown, and a yes and a press apply it', async () => {
  const approver = await newPerson(hub, tenant.companyId, [
    'approvals.view',
    'approvals.decide',
    'iac.view',
    'network.view',
  ])
  const { body: users } = await tenant.call('GET', `/users?search=${encodeURIComponent(approver.email)}`)
  await made('/approvals/workflows', {
    name: 'Networks',
    kinds: ['subnet'],
    steps: [{ name: 'Network team', required: 1, sla_hours: 24, user_ids: [users.data[0].id] }],
  })
  const slug = (await tenant.call('GET', '/me')).body.data.company.slug
  const page = await visit('/iac')
  await page.getByRole('button', { name: 'Submit manifests' }).click()
  const form = page.getByRole('dialog', { name: 'Submit manifests' })
  await form.getByLabel('Title').fill('A network for the lab')
  await form
    .getByLabel('Manifest', { exact: true })
    .fill(`apiVersion: hub/v1\nkind: subnet\nmetadata:\n  company: ${slug}\n  name: lab\nspec:\n  cidr: 10.7.0.0/24\n`)
  await form.getByRole('button', { name: 'Submit manifests' }).click()
  await page.getByRole('heading', { name: 'A network for the lab', level: 1 }).waitFor()
  await page.getByText('1 to create, 0 to change').waitFor()
  await page.getByRole('row').filter({ hasText: 'cidr' }).getByText('10.7.0.0/24').waitFor()

  const theirs = await visitAs(approver.email, '/approvals')
  await theirs.getByRole('button', { name: 'Decide on subnet lab' }).click()
  const decide = theirs.getByRole('dialog', { name: 'Decide on subnet lab' })
  await decide.getByLabel('Comment').fill('fine')
  await decide.getByRole('button', { name: 'Approve' }).click()
  await theirs.getByText('Nothing waits for anybody.').waitFor()

  await page.getByText('1 of 1 approvals').waitFor()
  await page.getByRole('button', { name: 'Apply' }).click()
  await until('the subnet', async () => (await tenant.call('GET', '/subnets?search=lab')).body.data.length === 1)
  await page.getByText('Applied').first().waitFor()
}, 120_000)
