// Why an alert opened, why it ended or was kept from people, and what the collector says of its series now.
import type { AlertView } from '../../../views/alert.ts'
import { alertWords } from '../../../words/alert.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { hrefTo } from '../../address/router.ts'
import { conditionPart } from '../../condition-part.ts'
import { count, valueText } from '../../format.ts'
import { metricTitle } from '../../metric-title.ts'
import { DecisionText } from '../../parts/decision.tsx'
import { may, textsOf } from '../../session.ts'

const t = textsOf({ ...alertsWords, ...alertWords })

const seriesOf = ({ alert }: AlertView): string =>
  [alert.metric === null ? '' : metricTitle(alert.metric), alert.series].filter(part => part !== '').join(' ')

/** `Disk usage mount=/ over 95 % for 5m` */
function conditionOf(data: AlertView): string | null {
  const { alert, rule } = data
  if (rule === null || rule.operator === null || alert.threshold === null) return null
  const value = valueText(alert.unit, alert.threshold)
  return conditionPart({ series: seriesOf(data), operator: rule.operator, value, forSeconds: rule.forSeconds })
}

function firedText(data: AlertView): string | null {
  const { alert, openedValue } = data
  switch (alert.type) {
    case 'agent_down':
      return openedValue === null ? null : t('fired_down', { seconds: count(openedValue) })
    case 'group_down':
      return t('fired_group', { group: alert.series })
    case 'no_data':
      return t('fired_no_data', { series: seriesOf(data) })
    case 'threshold':
    case 'check': {
      const condition = conditionOf(data)
      if (condition === null) return null
      return t('fired', { condition, value: valueText(alert.unit, openedValue ?? alert.lastValue) })
    }
  }
}

const endings = ['recovered', 'no_data', 'data_returned', 'rule_changed', 'out_of_scope', 'rule_removed'] as const
const reasons = ['maintenance', 'silence', 'decommissioned'] as const

function endedText({ resolvedReason }: AlertView): string | null {
  const ending = endings.find(each => each === resolvedReason)
  return ending === undefined ? null : t(`ended_${ending}`)
}

function quietText({ alert, suppressReason }: AlertView): string | null {
  const reason = alert.isSuppressed ? reasons.find(each => each === suppressReason) : undefined
  return reason === undefined ? null : t(`quiet_${reason}`)
}

export function Why({ data }: { readonly data: AlertView }) {
  const { rule, alert, peakValue } = data
  const isOver = alert.endedAtMs !== null
  const said = [firedText(data), endedText(data), quietText(data)].filter(text => text !== null)
  return (
    <section class="panel" aria-labelledby="why">
      <h2 id="why">{t('why')}</h2>
      {said.map(text => (
        <p class="text" key={text}>
          {text}
        </p>
      ))}
      {isOver ? null : data.why === null ? (
        <p class="text">{t('why_unknown')}</p>
      ) : (
        <DecisionText now={data.why} unit={alert.unit} />
      )}
      <dl class="facts">
        {alert.ruleName === null ? null : (
          <>
            <dt>{t('rule')}</dt>
            <dd class="text">
              {rule !== null && may('monitoring.manage') ? (
                <a href={hrefTo('rule', { rule: rule.id })}>{alert.ruleName}</a>
              ) : (
                alert.ruleName
              )}
            </dd>
          </>
        )}
        <dt>{t('series')}</dt>
        <dd class="mono">{data.seriesKey}</dd>
      </dl>
      {peakValue === null ? null : <p class="muted">{t('peak', { value: valueText(alert.unit, peakValue) })}</p>}
    </section>
  )
}
