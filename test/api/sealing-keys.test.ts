// Hubs that share a database need the same key for what is sealed in it: who lacks one says so.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import type { Logger } from 'pino'
import { loadHubConfig } from '../../apps/hub/config.ts'
import { createHub, openHubDatabase } from '../../apps/hub/hub.ts'
import { forgetKey } from '../../apps/hub/identity/sealing-keys.ts'
import { createLogger } from '../../apps/hub/platform/telemetry.ts'
import { stopPostgres } from '../support/postgres.ts'
import { TestHub, until } from './hub-harness.ts'

let folder = ''
let first: TestHub
const hubs: TestHub[] = []
const dir = (name: string): string => join(folder, name)
const keyFile = (name: string): string => join(dir(name), 'hub-secret.key')
const started = async (hub: Promise<TestHub>): Promise<TestHub> => {
  hubs.push(await hub)
  return hub
}
const peer = (settings: Record<string, unknown>, log?: Logger) => started(first.peer(settings, log))
/** A hub on the database of the first one, and what it says at its start. */
async function peerSaying(settings: Record<string, unknown>): Promise<{ hub: TestHub; said: string }> {
  const lines: string[] = []
  const hub = await peer(settings, createLogger('error', { write: line => lines.push(line) }))
  return { hub, said: lines.join('') }
}
const saidBy = async (settings: Record<string, unknown>): Promise<string> => (await peerSaying(settings)).said
const configWith = (settings: Record<string, unknown>) => loadHubConfig(undefined, settings).config
/** What a command of the hub with these keys of configuration comes to. */
async function command(settings: Record<string, unknown>): Promise<string> {
  const config = configWith({ 'database.url': first.databaseUrl, ...settings })
  const database = await openHubDatabase(config)
  try {
    return (await createHub(config, createLogger('silent'), database)).sealer.seal('of a command')
  } catch (error) {
    return error instanceof Error ? error.message : ''
  } finally {
    await database.close()
  }
}
const webhook = async (hub: TestHub): Promise<string> => {
  const own = await hub.tenant()
  const made = await own.call('POST', '/webhooks', { name: 'x', url: 'http://127.0.0.1:9/' })
  return made.body.data.id
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealing-keys-'))
})
afterEach(async () => {
  await Promise.all(hubs.splice(0).map(hub => hub.running.stop()))
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await stopPostgres()
})

const OPEN = { 'webhooks.allow_private': true }

describe('a hub that lacks a key of its database', () => {
  test('says which one and what to do, and seals what every hub opens', async () => {
    first = await started(TestHub.start({ ...OPEN, data_dir: dir('a') }))
    const { keyId } = first.hub.sealer
    const { hub: other, said } = await peerSaying({ data_dir: dir('b') })
    expect(said).toContain(`keys are in use that are not here (${keyId})`)
    expect(said).toContain(`copy hub-secret.key of the hub that has them to ${keyFile('b')}`)
    expect(said).toContain(`\`hub forget-key ${keyId}\``)
    expect(existsSync(keyFile('b'))).toBe(false)
    expect(first.hub.sealer.open(other.hub.sealer.seal('of the other'))).toBe('of the other')
    for (const settings of [{}, { 'secret.key': 'another' }]) expect(await saidBy(settings)).toContain(keyId)
    expect(first.hub.sealer.open(await command({ data_dir: dir('b') }))).toBe('of a command')
    mkdirSync(dir('b'))
    copyFileSync(keyFile('a'), keyFile('b'))
    const { hub: second, said: nothing } = await peerSaying({ data_dir: dir('b'), 'secret.key': 'another' })
    expect(nothing).toBe('')
    expect(second.hub.sealer.open(first.hub.sealer.seal('shared'))).toBe('shared')
    // A command that has no key but the database's seals what every hub opens.
    expect(first.hub.sealer.open(await command({}))).toBe('of a command')
  })

  test('makes a key of its own once the lost one is given up', async () => {
    first = await started(TestHub.start({ ...OPEN, data_dir: dir('e') }))
    const { keyId } = first.hub.sealer
    await webhook(first)
    const { db } = first.hub.database
    const other = configWith({})
    await expect(forgetKey(db, other, '00000000')).rejects.toThrow('no key 00000000 is in use')
    await expect(forgetKey(db, configWith({ data_dir: dir('e') }), keyId)).rejects.toThrow('is here and not lost')
    await forgetKey(db, other, keyId)
    expect([
      ...(await db.execute(sql`select actor_name, subject_name from audit_log where action = 'sealing_key.forget'`)),
    ]).toEqual([{ actor_name: 'hub', subject_name: keyId }])
    expect(await saidBy({ data_dir: dir('f') })).toBe('')
    expect(existsSync(keyFile('f'))).toBe(true)
  })
})

describe('a database of a version that kept no ids', () => {
  const forgotten = () => first.hub.database.client`delete from system_settings where key = 'hub.sealing_keys'`

  test('is whole for the hub that sealed what is in it, and for no other', async () => {
    first = await started(TestHub.start({ ...OPEN, data_dir: dir('g') }))
    await webhook(first)
    await forgotten()
    expect(await saidBy({ data_dir: dir('h') })).toContain(first.hub.sealer.keyId)
    expect(await saidBy({ data_dir: dir('g') })).toBe('')
    expect(await saidBy({ data_dir: dir('h') })).toContain(first.hub.sealer.keyId)
  })

  test('is whole for any hub while nothing is sealed but what every hub opens', async () => {
    first = await started(TestHub.start(OPEN))
    await webhook(first)
    await forgotten()
    expect(await saidBy({ data_dir: dir('i') })).toBe('')
  })

  test('is whole with what a key lost long ago has sealed', async () => {
    first = await started(TestHub.start({ ...OPEN, data_dir: dir('j') }))
    await webhook(first)
    rmSync(keyFile('j'))
    await forgetKey(first.hub.database.db, configWith({}), first.hub.sealer.keyId)
    await webhook(await peer({ ...OPEN, data_dir: dir('j') }))
    await forgotten()
    expect(await saidBy({ data_dir: dir('j') })).toBe('')
  })
})

test('a key that is replaced is needed until everything is sealed anew', async () => {
  first = await started(TestHub.start({ ...OPEN, data_dir: dir('k') }))
  await webhook(first)
  const { keyId } = first.hub.sealer
  const next = await peer({ data_dir: dir('k'), 'secret.key': 'the next one' })
  expect(await saidBy({ 'secret.key': 'the next one' })).toContain(keyId)
  await hubs.shift()?.running.stop()
  const { companyId } = await next.tenant()
  const { call } = await next.user(companyId, ['*'], { superAdmin: true })
  const run = await call('POST', '/system/commands/reseal-secrets/run', { confirm: true })
  await until('it is sealed anew', async () => {
    const { body } = await call('GET', `/system/command-runs/${run.body.data.id}`)
    return body.data.state === 'done'
  })
  expect(await saidBy({ 'secret.key': 'the next one' })).toBe('')
})
