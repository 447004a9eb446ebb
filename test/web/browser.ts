// A real browser without a window. Where none is installed the tests fail and say what to install.
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

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
