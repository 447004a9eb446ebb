// What tests of zones and name servers share: a hub that may reach this host, zones, records and runs of their sync.
import { afterAll, beforeAll, expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

export const at = (of: Json, id = ''): string => `/dns/zones/${of.id}/records${id && `/${id}`}`
export const A = (name: string, value = '192.0.2.1', more: Json = {}) => ({ name, type: 'A', value, ...more })

/** What the tests of one file have once they run. */
export class DnsRig {
  hub!: TestHub
  tenant!: Tenant
  folder = ''
  private zoneCount = 0

  constructor() {
    beforeAll(async () => {
      this.folder = mkdtempSync(join(tmpdir(), 'dns-'))
      this.hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
      this.tenant = await this.hub.tenant()
    })
    afterAll(async () => {
      await this.hub.stop()
      rmSync(this.folder, { recursive: true, force: true })
    })
  }

  /** A name that no other zone of the file has. */
  readonly newName = (prefix = 'z'): string => `${prefix}${this.zoneCount++}.example.com`

  readonly made = async (path: string, body: Json): Promise<Json> => {
    const answer = await this.tenant.call('POST', path, body)
    if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }

  readonly zone = (more: Json = {}): Promise<Json> =>
    this.made('/dns/zones', { name: this.newName(), verify_interval_minutes: 0, ...more })

  readonly shown = async (of: Json): Promise<Json> => (await this.tenant.call('GET', `/dns/zones/${of.id}`)).body.data

  readonly run = async (of: Json, body: Json = {}): Promise<Json> => {
    const answer = await this.tenant.call('POST', `/dns/zones/${of.id}/sync`, body)
    expect(answer.status).toBe(202)
    return until('the run', async () => {
      const { last_run } = await this.shown(of)
      return last_run?.id === answer.body.data.id && last_run.finished_at !== null && last_run
    })
  }
}
