// What will need somebody soon: licences and the plan near their end, old agents, a collector that has become silent.
import type { ComponentChildren } from 'preact'
import type { OverviewView } from '../../../views/overview.ts'
import { overviewWords } from '../../../words/overview.ts'
import { hrefTo } from '../../address/router.ts'
import { clockMs } from '../../connection/live.ts'
import { ago } from '../../format.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import { textsOf } from '../../session.ts'
import { isNearlyFull } from './plan-nearly-full.ts'

const t = textsOf(overviewWords)

/** As the hub calls a collector offline (180 s). */
const SILENT_MS = 180_000
/** Ages are said in steps of so much: a text that changes each second is noise. */
const AGE_STEP_MS = 10_000

type Standing = OverviewView['standing']

const Entry = ({ state, children }: { readonly state: 'warning' | 'info'; readonly children: ComponentChildren }) => (
  <li class="soon-entry">
    <StateMark state={state} />
    <span class="text">{children}</span>
  </li>
)

function Quota({ quota: { used, max } }: Standing) {
  if (max === null || !isNearlyFull({ used, max })) return null
  const left = Math.max(0, max - used)
  return (
    <Entry state={left === 0 ? 'warning' : 'info'}>
      <a href={hrefTo('licenses')}>{t('soon_quota', { left, max })}</a>
    </Entry>
  )
}

function Collector({ collectorHeardAtMs: heardAtMs }: Standing) {
  if (heardAtMs === null) return <p class="muted">{t('collector_never')}</p>
  const ageMs = Math.max(0, clockMs.value - heardAtMs)
  const when = ago(clockMs.value - Math.ceil(ageMs / AGE_STEP_MS) * AGE_STEP_MS, clockMs.value)
  if (ageMs <= SILENT_MS) return <p class="muted">{t('collector_age', { when })}</p>
  return (
    <p>
      <StateMark state="warning" text={t('collector_age', { when })} />
    </p>
  )
}

export function Soon({ standing }: { readonly standing: Standing }) {
  const { quota, endingLicenses, outdatedAgents, newestVersion } = standing
  const isNear = isNearlyFull(quota)
  const isEmpty = !isNear && endingLicenses.length === 0 && outdatedAgents === 0
  return (
    <section class="panel" aria-labelledby="soon">
      <h2 id="soon">{t('soon')}</h2>
      {isEmpty ? <p class="muted">{t('soon_nothing')}</p> : null}
      <ul class="plain">
        <Quota {...standing} />
        {endingLicenses.map(({ id, name, expiresAtMs }) => (
          <Entry state="info" key={id}>
            <a href={hrefTo('licenses', {}, { q: name })}>
              {t('soon_license', { name, when: ago(expiresAtMs, clockMs.value) })}
            </a>
          </Entry>
        ))}
        {outdatedAgents === 0 ? null : (
          <Entry state="info">
            <a href={hrefTo('agents', {}, { q: 'state:outdated' })}>
              {t('soon_outdated', { count: outdatedAgents, version: newestVersion ?? '' })}
            </a>
          </Entry>
        )}
      </ul>
      <Collector {...standing} />
    </section>
  )
}
