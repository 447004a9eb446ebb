// What somebody sees who has only begun: the charts of the one server that there is, and the next step.
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { OverviewView } from '../../../views/overview.ts'
import { overviewWords } from '../../../words/overview.ts'
import { hrefTo } from '../../address/router.ts'
import { lateParts } from '../../late-parts.ts'
import { may, textsOf } from '../../session.ts'

const t = textsOf(overviewWords)

type Charts = ComponentType<{ readonly serverId: string }>

/** The charts, once their file has come; without it the link to the server remains. */
function useCharts(isWanted: boolean): Charts | null {
  const [charts, setCharts] = useState<Charts | null>(null)
  useEffect(() => {
    if (!isWanted) return
    lateParts.firstCharts?.().then(
      loaded => setCharts(() => loaded),
      () => {},
    )
  }, [isWanted])
  return charts
}

function FirstServer({ server }: { readonly server: NonNullable<OverviewView['first']> }) {
  const { id, name, hasReported } = server
  const Charts = useCharts(hasReported)
  return (
    <section class="panel first-server" aria-labelledby="first-server">
      <div class="page-head">
        <h2 id="first-server" class="text">
          {t('first', { name })}
        </h2>
        <span class="grow" />
        <a href={hrefTo('server', { server: id })}>{t('first_all', { name })}</a>
      </div>
      <div class="chart-grid first-charts">
        {hasReported ? Charts && <Charts serverId={id} /> : <p role="status">{t('first_waiting')}</p>}
      </div>
    </section>
  )
}

export function FirstSteps({ data: { first, counts } }: { readonly data: OverviewView }) {
  if (first === null && counts.all > 0) return null
  return (
    <>
      {may('monitoring.manage') ? (
        <section class="panel next-step" aria-labelledby="next-step">
          <div>
            <h2 id="next-step">{t(first === null ? 'none' : 'next')}</h2>
            <p>{t('next_text')}</p>
          </div>
          <a class="button primary" href={hrefTo('add_servers')}>
            {t('add')}
          </a>
        </section>
      ) : null}
      {first === null ? null : <FirstServer server={first} />}
    </>
  )
}
