// What stands beside the coverage of a rule: its alerts, its versions with their differences, the silences that meet
// it.
import type { RuleView } from '../../../views/rule.ts'
import { rulesWords } from '../../../words/rules.ts'
import { hrefTo } from '../../address/router.ts'
import { duration, valueText, whenText } from '../../format.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { nowMs, textsOf } from '../../session.ts'

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

const ACTS = ['create', 'update', 'enable', 'disable', 'duplicate'] as const
const actText = (action: string): string => {
  const known = ACTS.find(act => action === `rule.${act}`)
  return t(known ? `act_${known}` : 'act_other')
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null))

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
                          <th scope="row" class="mono">
                            {field}
                          </th>
                          <td class="mono">{shown(change.old)}</td>
                          <td class="mono">{shown(change.new)}</td>
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
