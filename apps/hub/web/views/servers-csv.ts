// The servers that match a filter as a file of comma-separated values: what the list shows, and the chosen metrics.
import { cellOf } from '../../exports/export-format.ts'
import type { LiveServer } from '../live/live-servers.ts'
import { listedServers, toServerRow } from './servers.ts'
import type { ViewContext } from './view.ts'

/** As many as an act on all that match is done with. */
const ROWS_MAX = 10_000

const columns: Readonly<Record<string, (server: LiveServer) => unknown>> = {
  name: server => server.name,
  hostname: server => server.hostname,
  address: server => server.address,
  status: server => server.status,
  connectivity: server => server.connectivity,
  environment: server => server.environment,
  role: server => server.role,
  datacenter: server => server.datacenter,
  tags: server => server.tags,
  cpu_usage_percent: server => server.values?.cpu,
  mem_used_percent: server => server.values?.memory,
  disk_used_percent: server => server.values?.disk,
  disk_mount: server => server.values?.mount,
  cpu_load1: server => server.values?.load,
  open_alerts: server => server.openAlerts,
  worst_severity: server => server.worst,
  last_seen_at: server => {
    const { lastSeenAtMs } = toServerRow(server)
    return lastSeenAtMs === null ? null : new Date(lastSeenAtMs)
  },
  agent_version: server => server.agentVersion,
}

export const csvParams = ['q', 'sort', 'cols'] as const

/** CSV by RFC 4180 with a head, UTF-8 with its mark, no cell a formula (decision R-071). Sorted as the list is. */
export async function serversCsv(context: ViewContext): Promise<string> {
  const { matching, metrics } = await listedServers(context)
  const all = [
    ...Object.entries(columns),
    ...metrics
      .filter(({ name }) => !Object.hasOwn(columns, name))
      .map(({ name, newestOf }) => [name, newestOf] as const),
  ]
  const line = (cells: readonly unknown[]): string =>
    cells.map(cell => cellOf(cell, { delimiter: ',', bom: true, raw: false })).join(',')
  const lines = [line(all.map(([name]) => name))]
  for (const server of matching.slice(0, ROWS_MAX)) lines.push(line(all.map(([, newestOf]) => newestOf(server))))
  return `\ufeff${lines.join('\r\n')}\r\n`
}
