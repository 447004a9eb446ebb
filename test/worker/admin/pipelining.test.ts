// Several requests on one connection, to the admin API and to the ops listener.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCollectorMetrics } from '../../../apps/collector/telemetry.ts'
import { type OpsServer, startOpsServer } from '../../../apps/http/ops-server.ts'
import { firstCertificate } from '../../ingest/certificates.ts'
import { id } from '../../ingest/scripted-hub.ts'
import { requestOf, testPipelining } from '../../support/pipelining.ts'
import { adminToken, serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)

const directory = mkdtempSync(join(tmpdir(), 'svc-pipelining-'))
const files = { 'tls.cert_file': join(directory, 'cert.pem'), 'tls.key_file': join(directory, 'key.pem') }
writeFileSync(files['tls.cert_file'], firstCertificate.cert)
writeFileSync(files['tls.key_file'], firstCertificate.key)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

for (const isTls of [false, true])
  describe(isTls ? 'the admin API over TLS' : 'the admin API', () => {
    const rig = new WorkerRig({ withoutHub: true, keys: isTls ? files : {} })
    const company = id('pipelining company')
    const server = serverOf(company, 'a')
    beforeAll(async () => {
      rig.addServer(server)
      await rig.start()
    })
    afterAll(() => rig.close())
    const authorization = { authorization: `Bearer ${adminToken}` }
    const record = JSON.stringify({
      company_id: company,
      server_id: server.serverId,
      state: 'active',
      token_hash: 'b'.repeat(64),
      prev_token_hash: null,
      prev_token_expires_at: null,
      version: 1_000_000,
    })
    testPipelining(
      'admin',
      () => rig.running.adminUrl,
      () => [
        [requestOf('GET', '/internal/v1/status', authorization), 200],
        [requestOf('PUT', `/internal/v1/agents/${server.agentId}`, authorization, record), 200],
        [requestOf('POST', '/internal/v1/status', authorization, '{}'), 405],
        [requestOf('GET', `/internal/v1/servers/${server.serverId}/status?company_id=${company}`, authorization), 200],
        [requestOf('PUT', `/internal/v1/agents/${server.agentId}`, authorization, '{"company_id":'), 400],
        [requestOf('GET', '/internal/v1/status'), 401],
        [requestOf('GET', '/nothing'), 404],
        [requestOf('BREW', '/internal/v1/status', authorization), 501],
      ],
    )
  })

describe('the ops listener', () => {
  let ops: OpsServer
  beforeAll(() => {
    const isReady = () => new Promise<boolean>(resolve => setImmediate(() => resolve(true)))
    ops = startOpsServer('127.0.0.1:0', [], createCollectorMetrics('1.2.3', 'all'), [{ name: 'part', isReady }])
  })
  afterAll(() => ops.stop())
  testPipelining(
    'ops',
    () => ops.url,
    () => [
      [requestOf('GET', '/readyz'), 200],
      [requestOf('GET', '/metrics'), 200],
      [requestOf('GET', '/healthz'), 200],
      [requestOf('POST', '/metrics', {}, 'x=1'), 404],
      [requestOf('GET', '/nothing'), 404],
    ],
  )
  test('what is text says so', async () => {
    for (const path of ['/healthz', '/nothing'])
      expect((await fetch(ops.url + path)).headers.get('content-type')).toStartWith('text/plain')
    expect((await fetch(`${ops.url}/readyz`)).headers.get('content-type')).toStartWith('application/json')
  })
})
