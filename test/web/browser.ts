// A real browser without a window. Where none is installed the tests fail and say what to install.
import { existsSync, readFileSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { SiteProcess } from '../support/site.ts'

const places = [process.env.CHROMIUM ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

export async function startBrowser(): Promise<Browser> {
  const executablePath = places.find(path => path !== '' && existsSync(path))
  if (executablePath === undefined)
    throw new Error('no Chromium is installed, which the tests of the web interface need: apt-get install chromium')
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

/** Fills in the login form that the page shows. */
export async function signIn(page: Page, { facts }: SiteProcess, password = facts.user_password ?? ''): Promise<void> {
  await page.fill('#email', facts.user_email)
  await page.fill('#password', password)
  await page.click('button[type=submit]')
}

const AXE = readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')

type Violation = { readonly id: string; readonly help: string; readonly nodes: readonly { readonly html: string }[] }

/** What axe-core knows to be wrong on the page as it is: the rule, and where. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  const violations = (await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'] }).then(found => found.violations)",
  )) as Violation[]
  return violations.map(({ id, help, nodes }) => {
    const places = nodes.slice(0, 2).map(node => node.html.slice(0, 160))
    return `${id}, ${help}: ${places.join(' | ')}`
  })
}
