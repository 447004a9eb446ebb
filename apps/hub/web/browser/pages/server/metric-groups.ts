// The groups in which charts stand, by the names of the catalogue. A metric of no group stands among the others: none
// is left out.
import type { ChartOfMetric } from '../../../views/server/charts.ts'

/** What one looks at first; these do not stand in their own groups again. */
const GLANCE = [
  'cpu_usage_percent',
  'mem_used_percent',
  'disk_used_percent',
  'load_per_core_5m',
  'net_rx_bytes_per_second',
  'net_tx_bytes_per_second',
]

const groupNames = [
  'glance',
  'cpu',
  'load',
  'memory',
  'swap',
  'disks',
  'disk_io',
  'network',
  'checks',
  'other',
] as const
type GroupName = (typeof groupNames)[number]

/** The first that fits. */
const forms: readonly (readonly [RegExp, GroupName])[] = [
  [/^(cpu_load|load_)/, 'load'],
  [/^cpu_/, 'cpu'],
  [/^mem_/, 'memory'],
  [/^swap_/, 'swap'],
  [/^disk_(read_|write_|reads_|writes_|io_)/, 'disk_io'],
  [/^disk_/, 'disks'],
  [/^net_/, 'network'],
  [/^(service|port|tcp|http|cert)_/, 'checks'],
]

export type MetricGroup = { readonly name: GroupName; readonly charts: readonly ChartOfMetric[] }

const groupOf = (metric: string): GroupName =>
  GLANCE.includes(metric) ? 'glance' : (forms.find(([form]) => form.test(metric))?.[1] ?? 'other')

/** Groups that have charts, each in the order of the catalogue; at a glance in the order of interest. */
export function groupedMetrics(charts: readonly ChartOfMetric[]): MetricGroup[] {
  return groupNames
    .map(name => {
      const own = charts.filter(({ metric }) => groupOf(metric) === name)
      if (name === 'glance') own.sort((one, other) => GLANCE.indexOf(one.metric) - GLANCE.indexOf(other.metric))
      return { name, charts: own }
    })
    .filter(group => group.charts.length > 0)
}
