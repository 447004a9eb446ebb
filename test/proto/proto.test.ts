// The agent contract as files: generated code is what the generator makes, and a change that would break agents in the
// field is refused.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import {
  AgentRecordSchema,
  EnrollRequestSchema,
  EnrollResponseSchema,
  file_svc_agent_v1_agent,
  InventoryFactsSchema,
  MetricsAckSchema,
  MetricsBatchSchema,
  UpdateManifestSchema,
} from '../../proto/gen/svc/agent/v1/agent_pb.ts'

const root = resolve(import.meta.dir, '../..')
let dir = ''
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'proto-'))
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

async function buf(...args: string[]): Promise<{ code: number; said: string }> {
  const child = Bun.spawn([join(root, 'node_modules/.bin/buf'), ...args], {
    cwd: root,
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` },
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, said: out + err }
}

test('the generated code is what the generator makes of the contract', async () => {
  const { code, said } = await buf('generate', 'proto', '--template', 'proto/buf.gen.yaml', '-o', dir)
  expect(said).toBe('')
  expect(code).toBe(0)
  const file = 'proto/gen/svc/agent/v1/agent_pb.ts'
  expect(readFileSync(join(dir, file), 'utf8')).toBe(readFileSync(join(root, file), 'utf8'))
})

const breaks = async (name: string, from: string, to: string) => {
  const copy = join(dir, name)
  cpSync(join(root, 'proto'), copy, { recursive: true })
  const path = join(copy, 'svc/agent/v1/agent.proto')
  const text = readFileSync(path, 'utf8')
  expect(text).toContain(from)
  writeFileSync(path, text.replace(from, to))
  return buf('breaking', copy, '--against', 'proto/image.binpb')
}

test('[WIRE-035, WIRE-036, WIRE-039] a number that changes, or one that is used again, is refused; a field that is added is not', async () => {
  expect((await breaks('changed', 'int64 sent_at_ms = 2;', 'int64 sent_at_ms = 9;')).code).not.toBe(0)
  expect((await breaks('reused', 'int64 sent_at_ms = 2;', 'string zone = 2;')).code).not.toBe(0)
  expect((await breaks('removed', '  int64 sent_at_ms = 2;\n', '')).code).not.toBe(0)
  expect(await breaks('added', 'AgentStats stats = 4;', 'AgentStats stats = 4;\n  string zone = 5;')).toEqual({
    code: 0,
    said: '',
  })
})

test('[WIRE-011, WIRE-012, WIRE-013, WIRE-014, WIRE-017, WIRE-020, WIRE-021, WIRE-022, WIRE-053] package, names and numbers are those of the documents', () => {
  expect(file_svc_agent_v1_agent.proto.package).toBe('svc.agent.v1')
  const numbered = (schema: { fields: readonly { name: string; number: number }[] }) =>
    schema.fields.map(field => `${field.number} ${field.name}`).join(', ')
  expect(numbered(EnrollRequestSchema)).toBe(
    '1 license, 2 hostname, 3 ip_addresses, 4 machine_id, 5 os, 6 agent_version',
  )
  expect(numbered(EnrollResponseSchema)).toBe('1 agent_id, 2 agent_token, 3 collector_url, 4 config, 5 server_time_ms')
  expect(numbered(MetricsBatchSchema)).toBe('1 seq, 2 sent_at_ms, 3 series, 4 stats')
  expect(numbered(MetricsAckSchema)).toBe(
    '1 server_time_ms, 2 ack_seq, 3 config_etag, 4 accepted_points, 5 dropped_points, 6 warnings',
  )
  expect(numbered(InventoryFactsSchema)).toBe(
    '1 os, 2 cpu, 3 memory_total_bytes, 4 disks, 5 nics, 6 boot_time_ms, 7 timezone, 8 agent_build',
  )
  expect(numbered(UpdateManifestSchema)).toBe(
    '1 version, 2 url, 3 sha256, 4 signature_ed25519, 5 min_version, 6 rollout_percent, 7 released_at_ms, 8 os, 9 arch, 10 channel, 11 size_bytes, 12 key_id, 13 revoked_versions',
  )
  expect(numbered(AgentRecordSchema)).toStartWith(
    '1 company_id, 2 server_id, 3 state, 4 token_hash, 5 prev_token_hash, 6 prev_token_expires_at, 7 version',
  )
})
