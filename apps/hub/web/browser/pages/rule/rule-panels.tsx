// What stands beside the coverage of a rule: its alerts, its versions with their differences, the silences that meet
// it.
import type { RuleView } from '../../../views/rule.ts'
import { rulesWords } from '../../../words/rules.ts'
import { hrefTo } from '../../address/router.ts'
import { duration, valueText, whenText } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { actText, changedText, fieldText } from './version-text.ts'

const t = textsOf(rulesWords)

type Props = { readonly data: RuleView }

export const ServerLink = ({ id, name }: { readonly id: string; readonly name: string }) => (
  <a href={hrefTo('server', { server: id })}>{name}</a>
)

export function AlertsPanel({ data }: Props) {
  return (
    <section class="panel wide" aria-labelledby="alerts">
      <h2 id="alerts">{t('alerts')}</h2>
      {data.alerts.length === 0 ? (
        <p>{t('alerts_none')}</p>
      ) : (
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">{t('opened')}</th>
              <th scope="col">{t('lasted')}</th>
              <th scope="col">{t('server')}</th>
              <th scope="col">{t('series')}</th>
              <th scope="col">{t('worst_value')}</th>
            </tr>
          </thead>
          <tbody>
            {data.alerts.map(alert => (
              <tr key={alert.id}>
                <td>
                  <a href={hrefTo('alert', { alert: alert.id })}>
                    <Time atMs={alert.openedAtMs} form="when" />
                  </a>
                </td>
                <td>
                  {alert.resolvedAtMs === null ? (
                    <StateMark state={alert.severity} text={t('still_open')} />
                  ) : (
                    duration(alert.resolvedAtMs - alert.openedAtMs)
                  )}
                </td>
                <td>
                  <ServerLink id={alert.serverId} name={alert.serverName} />
                </td>
                <td class="mono">{alert.series}</td>
                <td>{valueText(data.rule.unit, alert.peak)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

export function VersionsPanel({ data }: Props) {
  return (
    <section class="panel wide" aria-labelledby="versions">
      <h2 id="versions">{t('versions')}</h2>
      {data.versions === null ? (
        <p class="muted">{t('versions_hidden')}</p>
      ) : (
        <ol class="plain versions">
          {data.versions.map(({ action, by, atMs, changes }) => {
            const fields = Object.entries(changes).filter(([field]) => field !== 'version')
            // Of another metric the numbers had another unit.
            const unit = 'metric' in changes ? null : data.rule.unit
            return (
              <li key={atMs}>
                <p>
                  <Time atMs={atMs} form="when" /> {actText(action)} {by === null ? null : t('by', { name: by })}
                </p>
                {fields.length === 0 ? null : (
                  <table class="plain-table differences">
                    <thead>
                      <tr>
                        <th scope="col">{t('field')}</th>
                        <th scope="col">{t('before')}</th>
                        <th scope="col">{t('after')}</th>
                      </tr>
                    </thead>
                    <tbody>
                      {fields.map(([field, change]) => (
                        <tr key={field}>
                          <th scope="row">{fieldText(field)}</th>
                          <td class="text">{changedText(field, change.old, unit)}</td>
                          <td class="text">{changedText(field, change.new, unit)}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                )}
              </li>
            )
          })}
        </ol>
      )}
    </section>
  )
}

export function SilencesPanel({ data }: Props) {
  return (
    <section class="panel" aria-labelledby="silences">
      <h2 id="silences">{t('silences')}</h2>
      {data.silences.length === 0 ? (
        <p>{t('silences_none')}</p>
      ) : (
        <ul class="plain">
          {data.silences.map(({ id, reason, startsAtMs, endsAtMs, isOfRule }) => (
            <li key={id}>
              {reason}{' '}
              <span class="muted">
                {t('from_to', { from: whenText(startsAtMs, nowMs()), to: whenText(endsAtMs, nowMs()) })}
                {isOfRule ? `, ${t('silence_of_rule')}` : ''}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
