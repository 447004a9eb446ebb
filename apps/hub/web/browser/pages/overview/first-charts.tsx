// The charts of a company's only server, of the last quarter of an hour: who has just begun sees values come in. Loaded
// when there is something to draw; others do without it.
import { useEffect, useMemo } from 'preact/hooks'
import type { ChartsView } from '../../../views/server/charts.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { useView } from '../../view.ts'
import { MetricChart } from '../server/metric-chart.tsx'
import { groupedMetrics } from '../server/metric-groups.ts'
import { SeriesLoader } from '../server/series-loader.ts'

const SHOWN = 4
const FROM = 'now-15m'
const noAlerts: readonly never[] = []

export function FirstCharts({ serverId }: { readonly serverId: string }) {
  const view = useView<ChartsView>('server-charts', { server: serverId })
  const loader = useMemo(() => new SeriesLoader(serverId), [serverId])
  useEffect(() => {
    loader.show({ from: FROM, to: 'now', agg: 'avg', days: 0 })
    return () => loader.stop()
  }, [loader])
  const [glance] = groupedMetrics(view.data?.charts ?? [])
  const openAt = (fromMs: number, toMs: number): void => {
    const [from, to] = [fromMs, toMs].map(atMs => new Date(atMs).toISOString())
    goTo(hrefTo('server', { server: serverId }, { from, to }))
  }
  return (
    <>
      {glance?.charts.slice(0, SHOWN).map(chart => (
        <MetricChart
          key={chart.metric}
          chart={chart}
          loader={loader}
          alerts={noAlerts}
          ruleHref={null}
          onRange={openAt}
        />
      ))}
    </>
  )
}
