import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { file_svc_agent_v1_agent as file } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'

/** `name=number` of every field of a message. */
const fieldsOf = (message: string): string[] => {
  const found = file.messages.find(candidate => candidate.name === message)
  if (!found) throw new Error(`there is no message ${message}`)
  return found.fields.map(field => `${field.name}=${field.number}`)
}

test('[WIRE-011] the package is version 1', () => {
  expect(file.proto.package).toBe('svc.agent.v1')
})

test('[WIRE-012] [WIRE-013] [WIRE-014] [WIRE-015] [WIRE-016] [WIRE-017] [WIRE-018] [WIRE-020] [WIRE-021] [WIRE-022] the messages have the fields of the contract', () => {
  const f = (message: string, fields: string) => {
    const names = fieldsOf(message).map(field => field.split('=')[0])
    expect(names.slice(0, fields.split(' ').length).join(' '), message).toBe(fields)
    expect(
      fieldsOf(message).map(field => Number(field.split('=')[1])),
      message,
    ).toEqual(names.map((_, index) => index + 1))
  }
  f('PingResponse', 'server_time_ms proto_min proto_max')
  f('EnrollRequest', 'license hostname ip_addresses machine_id os agent_version')
  f('Os', 'family name version kernel arch')
  f('EnrollResponse', 'agent_id agent_token collector_url config server_time_ms')
  f('MetricsBatch', 'seq sent_at_ms series stats')
  f('Series', 'name labels points')
  f('Point', 'ts_ms value')
  f('MetricsAck', 'server_time_ms ack_seq config_etag accepted_points dropped_points warnings')
  f('AgentConfig', 'etag interval_seconds collectors checks limits min_agent_version collector_url log_level')
  f('Limits', 'max_series max_batch_bytes buffer_bytes')
  f('InventoryFacts', 'os cpu memory_total_bytes disks nics boot_time_ms timezone agent_build')
  f('Cpu', 'model cores threads')
  f('Disk', 'mount fstype total_bytes')
  f('Nic', 'name ips')
  f('AgentBuild', 'version commit go_version')
  f('UpdateManifest', 'version url sha256 signature_ed25519 min_version rollout_percent released_at_ms')
  f('AgentRecord', 'company_id server_id state token_hash prev_token_hash prev_token_expires_at version')
})

test('[WIRE-035] [WIRE-036] [WIRE-039] the linter finds no breaking change against the contract as it was released', () => {
  const root = join(import.meta.dir, '../../..')
  const run = Bun.spawnSync(
    [join(root, 'node_modules/.bin/buf'), 'breaking', 'proto', '--against', 'proto/image.binpb'],
    { cwd: root },
  )
  expect(run.stdout.toString() + run.stderr.toString()).toBe('')
  expect(run.exitCode).toBe(0)
})
