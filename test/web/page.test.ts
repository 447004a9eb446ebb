// The web interface as a person meets it: a real site, a real browser, agents that report over the real protocol.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Browser, Page } from 'playwright-core'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { type Json, type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'
import { startBrowser } from './browser.ts'

let site: SiteProcess
let browser: Browser
let page: Page
/** What must not happen: errors of the script, refusals of the policy, requests to other hosts. */
const faults: string[] = []

beforeAll(async () => {
  browser = await startBrowser()
  const config = 'rate:\n  default_per_minute: 100000\n'
  site = await startSiteProcess({ args: ['--no-local-agent'], config })
  page = await browser.newPage({ viewport: { width: 1280, height: 800 }, locale: 'en-GB' })
  page.setDefaultTimeout(20_000)
  page.on('pageerror', error => faults.push(`script: ${error.message}`))
  page.on('console', message => {
    // A refused login is a 401, which the browser notes.
    if (message.type() === 'error' && !message.text().includes('401')) faults.push(`console: ${message.text()}`)
  })
  page.on('request', request => {
    if (new URL(request.url()).origin !== site.facts.hub_url) faults.push(`another host: ${request.url()}`)
  })
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await site?.stop()
}, 30_000)

const api = async (method: string, path: string, body?: unknown): Promise<Json> => {
  const answer = await site.api(method, `/api/v1${path}`, body)
  expect(answer.status).toBeLessThan(300)
  return answer.body
}

async function signIn(where: Page, password: string): Promise<void> {
  await where.fill('#email', site.facts.user_email)
  await where.fill('#password', password)
  await where.click('button[type=submit]')
}

/** Newest values, and the same for the twenty minutes before. */
async function report(agent: SimulatedAgent, values: Readonly<Record<string, number>>): Promise<void> {
  const nowMs = Date.now()
  const labelsOf = (name: string): Record<string, string> =>
    name === 'disk_used_percent' ? { mount: '/', device: 'sda1', fstype: 'ext4' } : {}
  const times = Array.from({ length: 40 }, (_, index) => nowMs - (39 - index) * 30_000)
  const series = Object.entries(values).map(([name, value]) => ({
    name,
    labels: labelsOf(name),
    points: times.map(ts => [ts, value] as const),
  }))
  expect((await agent.send(series)).status).toBe(200)
}

const NAME = `web-01 <img src="x"> & 'co'`
let license = ''
const card = () => page.locator('.card', { hasText: 'web-01' })

test('a wrong password is refused on the page, the right one opens it, and a newcomer is told what to do', async () => {
  await page.goto(site.facts.hub_url)
  await signIn(page, 'wrong')
  await page.getByRole('alert').getByText('E-mail or password is wrong.').waitFor()
  await signIn(page, site.facts.user_password ?? '')
  await page.getByRole('heading', { name: 'No servers yet' }).waitFor()
  await page.getByLabel('Name of the server').fill(NAME)
  await page.getByRole('button', { name: 'Add and create its licence' }).click()
  const command = page.locator('pre', { hasText: /SVC_LICENSE=lic_\w{20,}/ })
  await command.waitFor()
  license = /SVC_LICENSE=(lic_\w+)/.exec((await command.textContent()) ?? '')?.[1] ?? ''
  await card().getByText('never seen').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await command.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'Add a server' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByLabel('Name of the server').waitFor({ state: 'hidden' })
}, 60_000)

test('once its agent has enrolled with that licence the server is online by itself, with its values and curve; its name is text', async () => {
  const agent = await SimulatedAgent.enroll(site.facts.agent_url, license, 'web-01.example.test')
  await report(agent, { cpu_usage_percent: 42.4, mem_used_percent: 63.2, disk_used_percent: 97, cpu_load1: 1.5 })
  await card().getByText('42 %').waitFor()
  const text = await card().textContent()
  for (const shown of [NAME, 'Online', '63 %', '97 %', '1.50']) expect(text).toContain(shown)
  await card().locator('.uplot canvas').waitFor()
  expect(await page.locator('.tile-online').textContent()).toContain('1')
}, 60_000)

test('an alert appears by itself; acknowledged on the page it is acknowledged in the API; closing takes a second press', async () => {
  await api('POST', '/monitoring/rules', {
    name: 'Disk above 90',
    kind: 'threshold',
    scope: { all: true },
    metric: 'disk_used_percent',
    operator: '>',
    threshold: 90,
    for_seconds: 0,
    severity: 'critical',
  })
  const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, await secondServer())
  const alert = page.locator('.alert', { hasText: 'Disk above 90' })
  await until(
    'the alert on the page',
    async () => {
      await report(agent, { cpu_usage_percent: 5, mem_used_percent: 10, disk_used_percent: 96.5, cpu_load1: 0.1 })
      return alert.waitFor({ timeout: 16_000 }).then(
        () => true,
        () => false,
      )
    },
    60_000,
  )
  const text = await alert.textContent()
  for (const shown of ['Critical', 'db-01', 'mount=/', '96.5 %, threshold 90.0 %']) expect(text).toContain(shown)

  const state = async (): Promise<string> => {
    const { data } = await api('GET', '/monitoring/alerts?severity=critical')
    return data.find((item: Json) => item.rule?.name === 'Disk above 90' && item.server.name === 'db-01')?.state
  }
  await alert.getByRole('button', { name: 'Acknowledge' }).click()
  await alert.getByText('Acknowledged by').waitFor()
  expect(await state()).toBe('acknowledged')
  await alert.getByRole('button', { name: 'Close' }).click()
  await alert.getByRole('button', { name: 'Really close' }).click()
  await alert.waitFor({ state: 'detached' })
  expect(await state()).toBe('closed')
}, 90_000)

const secondServer = async (): Promise<string> => {
  await api('POST', '/servers', { name: 'db-01', hostname: 'db-01.example.test' })
  return 'db-01.example.test'
}

test('search and state choose what is shown, and the address keeps the choice', async () => {
  await page.getByRole('searchbox').fill('db-')
  await card().waitFor({ state: 'detached' })
  expect(await page.locator('.card h3').allTextContents()).toEqual(['db-01'])
  expect(new URL(page.url()).search).toBe('?search=db-')
  await page.getByRole('button', { name: 'Down' }).click()
  await page.getByText('No server matches.').waitFor()
  await page.reload()
  await page.getByText('No server matches.').waitFor()
  await page.getByRole('button', { name: 'Show all servers' }).click()
  await card().waitFor()
  expect(await page.locator('.card').count()).toBe(2)
}, 60_000)

test('on a phone, in the dark and in Vietnamese, nothing runs over the edge', async () => {
  const context = await browser.newContext({
    viewport: { width: 390, height: 844 },
    colorScheme: 'dark',
    locale: 'vi-VN',
    isMobile: true,
    hasTouch: true,
  })
  const phone = await context.newPage()
  await phone.goto(site.facts.hub_url)
  await signIn(phone, site.facts.user_password ?? '')
  await phone.getByText('Trực tiếp').waitFor()
  await phone.locator('.uplot canvas').first().waitFor()
  expect(await phone.evaluate('document.documentElement.scrollWidth')).toBe(390)
  await context.close()
}, 60_000)

test('the page of the API documents works under its policy', async () => {
  await page.goto(`${site.facts.hub_url}/docs`)
  const servers = page.locator('details').filter({ hasText: '/api/v1/servers' }).first()
  await servers.locator('summary').click()
  await servers.getByText('422').waitFor()
  expect(await page.evaluate('getComputedStyle(document.body).maxWidth')).toBe('960px')
  await page.fill('#find', 'overview')
  await servers.waitFor({ state: 'hidden' })
  await page.goto(site.facts.hub_url)
}, 60_000)

test('signing out ends the session, and the page had no errors and asked no other host', async () => {
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await page.goto(site.facts.hub_url)
  await page.locator('#password').waitFor()
  expect(faults).toEqual([])
}, 60_000)
