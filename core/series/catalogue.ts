// The metric catalogue: the 61 metrics that rules may name and queries may read, with the labels each may carry.
// Names outside it are stored, but cannot be queried or used in rules (document 2 "Rule", decision G-64).

type Platform = 'all' | 'linux'
export type Unit = 'percent' | 'count' | 'load' | 'bytes' | 'bytes/s' | 'ops/s' | '1/s' | 's' | 'bool' | 'code' | 'days'

/** One metric: its name, the labels a series of it may carry, the unit of its values, where agents report it. */
type Metric = {
  readonly name: string
  readonly labels: readonly string[]
  readonly unit: Unit
  readonly platform: Platform
}

const NONE: readonly string[] = []
const CORE = ['core']
const FS = ['mount', 'device', 'fstype']
const DEVICE = ['device']
const INTERFACE = ['interface']
const TARGET = ['target']

const metric = (name: string, labels: readonly string[], unit: Unit, platform: Platform = 'all'): Metric => ({
  name,
  labels,
  unit,
  platform,
})

export const metrics: readonly Metric[] = [
  metric('cpu_usage_percent', NONE, 'percent'),
  metric('cpu_user_percent', NONE, 'percent'),
  metric('cpu_system_percent', NONE, 'percent'),
  metric('cpu_nice_percent', NONE, 'percent', 'linux'),
  metric('cpu_idle_percent', NONE, 'percent'),
  metric('cpu_iowait_percent', NONE, 'percent', 'linux'),
  metric('cpu_irq_percent', NONE, 'percent'),
  metric('cpu_softirq_percent', NONE, 'percent', 'linux'),
  metric('cpu_steal_percent', NONE, 'percent', 'linux'),
  metric('cpu_core_usage_percent', CORE, 'percent'),
  metric('cpu_cores', NONE, 'count'),
  metric('cpu_load1', NONE, 'load', 'linux'),
  metric('cpu_load5', NONE, 'load', 'linux'),
  metric('cpu_load15', NONE, 'load', 'linux'),
  metric('load_per_core_5m', NONE, 'load', 'linux'),
  metric('mem_total_bytes', NONE, 'bytes'),
  metric('mem_used_bytes', NONE, 'bytes'),
  metric('mem_available_bytes', NONE, 'bytes'),
  metric('mem_free_bytes', NONE, 'bytes'),
  metric('mem_cached_bytes', NONE, 'bytes', 'linux'),
  metric('mem_buffers_bytes', NONE, 'bytes', 'linux'),
  metric('mem_used_percent', NONE, 'percent'),
  metric('mem_available_percent', NONE, 'percent'),
  metric('swap_total_bytes', NONE, 'bytes'),
  metric('swap_used_bytes', NONE, 'bytes'),
  metric('swap_used_percent', NONE, 'percent'),
  metric('swap_in_bytes_per_second', NONE, 'bytes/s', 'linux'),
  metric('swap_out_bytes_per_second', NONE, 'bytes/s', 'linux'),
  metric('disk_total_bytes', FS, 'bytes'),
  metric('disk_used_bytes', FS, 'bytes'),
  metric('disk_free_bytes', FS, 'bytes'),
  metric('disk_used_percent', FS, 'percent'),
  metric('disk_inodes_total', FS, 'count', 'linux'),
  metric('disk_inodes_used', FS, 'count', 'linux'),
  metric('disk_inodes_used_percent', FS, 'percent', 'linux'),
  metric('disk_readonly', FS, 'bool'),
  metric('disk_read_bytes_per_second', DEVICE, 'bytes/s'),
  metric('disk_write_bytes_per_second', DEVICE, 'bytes/s'),
  metric('disk_reads_per_second', DEVICE, 'ops/s'),
  metric('disk_writes_per_second', DEVICE, 'ops/s'),
  metric('disk_io_util_percent', DEVICE, 'percent'),
  metric('disk_io_await_seconds', DEVICE, 's'),
  metric('disk_io_in_progress', DEVICE, 'count', 'linux'),
  metric('net_rx_bytes_per_second', INTERFACE, 'bytes/s'),
  metric('net_tx_bytes_per_second', INTERFACE, 'bytes/s'),
  metric('net_rx_packets_per_second', INTERFACE, '1/s'),
  metric('net_tx_packets_per_second', INTERFACE, '1/s'),
  metric('net_rx_errors_per_second', INTERFACE, '1/s'),
  metric('net_tx_errors_per_second', INTERFACE, '1/s'),
  metric('net_rx_dropped_per_second', INTERFACE, '1/s'),
  metric('net_tx_dropped_per_second', INTERFACE, '1/s'),
  metric('net_interface_up', INTERFACE, 'bool'),
  metric('uptime_seconds', NONE, 's'),
  metric('service_up', ['name'], 'bool'),
  metric('port_up', ['port', 'proto'], 'bool'),
  metric('tcp_connect_up', TARGET, 'bool'),
  metric('tcp_connect_seconds', TARGET, 's'),
  metric('http_up', TARGET, 'bool'),
  metric('http_duration_seconds', TARGET, 's'),
  metric('http_status_code', TARGET, 'code'),
  metric('cert_days_left', TARGET, 'days'),
]

const byName = new Map(metrics.map(m => [m.name, m]))

/** The catalogue entry of a metric, or undefined for a name outside the catalogue. */
export function metricByName(name: string): Metric | undefined {
  return byName.get(name)
}

const placeOf = new Map(metrics.map((m, index) => [m.name, index]))

/** Where in the catalogue a metric stands, from 0; a name outside it comes after all others. */
export const catalogueIndex = (name: string): number => placeOf.get(name) ?? metrics.length

/** The metrics of the admin status call and of a server's health (decision G-112). */
export const keyMetrics = [
  'cpu_usage_percent',
  'mem_used_percent',
  'disk_used_percent',
  'cpu_load1',
  'load_per_core_5m',
  'uptime_seconds',
] as const
