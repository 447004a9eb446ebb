// SIGHUP at the all-in-one: every part reads again what it reads again when it runs alone, and the site goes on.
import { afterAll, expect, test } from 'bun:test'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newTempDir, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'

const root = newTempDir()
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('[ADM-007] SIGHUP reads the settings of all parts again and does not end the site; wrong ones change nothing', async () => {
  const configFile = join(root, 'site.yaml')
  writeFileSync(configFile, 'rate: { default_per_minute: 600 }\n')
  const site = await startSiteProcess({ args: ['--no-local-agent', '--config', configFile] })
  try {
    const log = () => readFileSync(join(site.dataDir, 'logs', 'site.log'), 'utf8')
    const limit = async () => {
      const headers = { authorization: `Bearer ${site.facts.api_token}` }
      return (await fetch(`${site.facts.hub_url}/api/v1/me`, { headers })).headers.get('x-ratelimit-limit')
    }
    expect(await limit()).toBe('600')
    writeFileSync(configFile, 'rate: { default_per_minute: 700 }\n')
    process.kill(site.pid, 'SIGHUP')
    for (const part of ['update manifest', 'agent API', 'admin API', 'hub', 'matcher'])
      await until(`the word of the ${part}`, () =>
        log()
          .split('\n')
          .some(line => line.includes('"msg":"read again"') && line.includes(`"part":"${part}"`)),
      )
    expect(await limit()).toBe('700')
    writeFileSync(configFile, 'rate: { default_per_minute: many }\n')
    process.kill(site.pid, 'SIGHUP')
    await until('the word of the fault', () => log().includes('cannot reload'))
    expect(await limit()).toBe('700')
    expect((await site.api('GET', '/api/v1/servers')).status).toBe(200)
  } finally {
    await site.stop()
  }
}, 90_000)
