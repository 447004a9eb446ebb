// A real browser without a window. Where none is installed the tests fail and say what to install.
import { existsSync, readFileSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { TestHub } from '../api/hub-harness.ts'
import { atEnd } from '../support/at-end.ts'
import type { SiteProcess } from '../support/site.ts'
import { logIn, newPerson, slugOf } from './visitor.ts'

/** First the one that is built without a window: it draws the same pages with two thirds of the processor. */
const places = [
  process.env.CHROMIUM ?? '',
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

export async function startBrowser(): Promise<Browser> {
  const executablePath = places.find(path => path !== '' && existsSync(path))
  if (executablePath === undefined)
    throw new Error(
      'no Chromium is installed, which the tests of the web interface need: apt-get install chromium-headless-shell',
    )
  return chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

let shared: Browser | null = null

/** The browser that the test files of a process share: each opens its own contexts, and ends with `closeContexts`. */
export async function sharedBrowser(): Promise<Browser> {
  if (shared?.isConnected()) return shared
  const started = await startBrowser()
  atEnd(() => started.close())
  shared = started
  return started
}

/** Leaves no page of a test file behind in the shared browser. */
export async function closeContexts(): Promise<void> {
  for (const context of shared?.contexts() ?? []) await context.close()
}

/** A page of a company as a new person with these rights sees it, in a context of its own. */
export async function visitAs(
  hub: TestHub,
  path: string,
  companyId: string,
  rights: readonly string[] = ['*'],
): Promise<Page> {
  const session = await logIn(hub.url, (await newPerson(hub, companyId, rights)).email)
  const [name = '', value = ''] = session.cookie.split('=')
  const browser = await sharedBrowser()
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB' })
  await context.addCookies([{ name, value, url: hub.url }])
  const page = await context.newPage()
  await page.goto(`${hub.url}/c/${slugOf(session)}${path}`)
  return page
}

/** Fills in the login form that the page shows. */
export async function signIn(page: Page, { facts }: SiteProcess, password = facts.user_password ?? ''): Promise<void> {
  await page.fill('#email', facts.user_email)
  await page.fill('#password', password)
  await page.click('button[type=submit]')
}

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

type Violation = { readonly id: string; readonly help: string; readonly nodes: readonly { readonly html: string }[] }

/** Without the contrast that the highest level of WCAG asks for, which a run of all rules leaves out too. */
const ruleOptions = {
  all: {},
  colour: {
    runOnly: { type: 'tag', values: ['cat.color'] },
    rules: { 'color-contrast-enhanced': { enabled: false } },
  },
}

/** What axe-core knows to be wrong on the page as it is: the rule, and where. `colour`: rules of colour alone. */
export async function violationsOf(page: Page, rules: keyof typeof ruleOptions = 'all'): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE)
  const options = JSON.stringify({ resultTypes: ['violations'], ...ruleOptions[rules] })
  const violations = (await page.evaluate(
    `axe.run(document, ${options}).then(found => found.violations)`,
  )) as Violation[]
  return violations.map(({ id, help, nodes }) => {
    const places = nodes.slice(0, 2).map(node => node.html.slice(0, 160))
    return `${id}, ${help}: ${places.join(' | ')}`
  })
}
