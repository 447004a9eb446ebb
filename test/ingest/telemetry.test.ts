import { expect, test } from 'bun:test'
import { type CollectorRole, createCollectorMetrics } from '../../apps/collector/telemetry.ts'

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
