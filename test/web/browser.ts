// A real browser without a window. Where none is installed the tests fail and say what to install.
import { existsSync } from 'node:fs'
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
