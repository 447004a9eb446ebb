import { expect, test } from 'bun:test'
import { type CollectorRole, createCollectorMetrics } from '../../apps/collector/telemetry.ts'
import { startOpsServer } from '../../apps/http/ops-server.ts'

const shown = async (role: CollectorRole): Promise<(name: string) => boolean> => {
  const text = await createCollectorMetrics('1.2.3', role).scrape()
  return name => text.includes(`\n# TYPE ${name} `) || text.startsWith(`# TYPE ${name} `)
}

for (const [role, ofIngest, ofWorker] of [
  ['ingest', true, false],
  ['worker', false, true],
  ['all', true, true],
] as const)
  test(`/metrics of ${role} shows what it counts, and no zero for what another process does`, async () => {
    const isShown = await shown(role)
    for (const name of ['svc_ingest_batches_total', 'svc_ingest_decode_seconds', 'svc_ingest_active_series'])
      expect([name, isShown(name)]).toEqual([name, ofIngest])
    for (const name of ['svc_rules_loaded', 'svc_agents_online', 'svc_query_seconds', 'svc_store_insert_seconds'])
      expect([name, isShown(name)]).toEqual([name, ofWorker])
    for (const name of ['svc_build_info', 'svc_bus_lag', 'svc_http_requests_total', 'svc_ingest_dropped_total'])
      expect([name, isShown(name)]).toEqual([name, true])
  })

test('/metrics on loopback answers to addresses, localhost and configured names, not to the name of a page elsewhere', async () => {
  const metrics = createCollectorMetrics('1.2.3', 'ingest')
  const ops = startOpsServer('127.0.0.1:0', ['metrics.example.net'], metrics, [])
  try {
    const { port } = new URL(ops.url)
    for (const path of ['/metrics', '/readyz', '/healthz']) {
      const status = async (host: string) => (await fetch(`${ops.url}${path}`, { headers: { Host: host } })).status
      for (const host of [`127.0.0.1:${port}`, 'localhost', '[::1]:80', 'metrics.example.net'])
        expect([path, host, await status(host)]).toEqual([path, host, 200])
      expect([path, await status('evil.example')]).toEqual([path, 421])
    }
  } finally {
    await ops.stop()
  }
})
