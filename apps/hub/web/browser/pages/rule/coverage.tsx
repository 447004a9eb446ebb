// Whom a rule covers, what it does there now, and whom it does not cover and why.
import type { CoveredServer, RuleView } from '../../../views/rule.ts'
import { rulesWords } from '../../../words/rules.ts'
import { setParams } from '../../address/router.ts'
import { count } from '../../format.ts'
import { DecisionText } from '../../parts/decision.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { textsOf } from '../../session.ts'
import { scopeText } from '../rules/condition-text.ts'
import { ServerLink } from './rule-panels.tsx'

const t = textsOf(rulesWords)

type Props = { readonly data: RuleView }

const MARKS = { pending: 'warning', ok: 'ok', none: 'unknown', unjudged: 'unknown' } as const

/** What the rule does on a server, and why. */
function OnServer({ server, data }: { readonly server: CoveredServer; readonly data: RuleView }) {
  const { rule } = data
  if (server.status === 'draft') return <span class="muted">{t('is_draft')}</span>
  if (!server.hasAgent) return <span class="muted">{t('no_agent')}</span>
  if (!rule.isEnabled) return <span class="muted">{t('rule_is_off')}</span>
  if (rule.kind === 'agent_down') return <StateMark state={server.connectivity} />
  if (server.now === null) return <span class="muted">{t('now_unknown')}</span>
  const { state } = server.now
  // What a server said last is not what it is like now.
  const isOfNow = state !== 'ok' || server.connectivity === 'online'
  const mark: MarkedState = state === 'firing' ? rule.severity : isOfNow ? MARKS[state] : 'unknown'
  return (
    <>
      <StateMark state={mark} isOutlined={state === 'pending'} text={t(isOfNow ? `now_${state}` : 'now_not_of_now')} />
      <DecisionText now={server.now} unit={rule.unit} />
    </>
  )
}

const stateOf = ({ status, isSilenced, connectivity }: CoveredServer): MarkedState =>
  status === 'active' ? (isSilenced ? 'silenced' : connectivity) : status

export function CoveredPanel({ data }: Props) {
  const { total, offset, rows } = data.covered
  return (
    <section class="panel wide" aria-labelledby="covered">
      <h2 id="covered">
        {t('covered')} <span class="muted">{count(total)}</span>
      </h2>
      {total === 0 ? (
        <p>{t('covered_none')}</p>
      ) : (
        <table class="plain-table covered-servers">
          <thead>
            <tr>
              <th scope="col">{t('server')}</th>
              <th scope="col">{t('state')}</th>
              <th scope="col">{t('now')}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(server => (
              <tr key={server.id}>
                <th scope="row">
                  <ServerLink id={server.id} name={server.name} />
                </th>
                <td>
                  <StateMark state={stateOf(server)} />
                </td>
                <td>
                  <OnServer server={server} data={data} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {total > rows.length ? (
        <p class="pager">
          <button
            type="button"
            disabled={offset === 0}
            onClick={() => setParams({ offset: Math.max(0, offset - 15) || null })}
          >
            {t('previous')}
          </button>
          <button
            type="button"
            disabled={offset + rows.length >= total}
            onClick={() => setParams({ offset: offset + 15 })}
          >
            {t('next')}
          </button>
        </p>
      ) : null}
    </section>
  )
}

export function UncoveredPanel({ data }: Props) {
  const { total, rows } = data.uncovered
  if (total === 0) return null
  return (
    <section class="panel" aria-labelledby="uncovered">
      <h2 id="uncovered">
        {t('uncovered')} <span class="muted">{count(total)}</span>
      </h2>
      <p>{t('uncovered_why', { scope: scopeText(data.rule.scope) })}</p>
      <ul class="plain">
        {rows.map(({ id, name, tags, environment, role, datacenter }) => (
          <li key={id}>
            <ServerLink id={id} name={name} />{' '}
            <span class="muted">{[...tags, environment, role, datacenter].filter(Boolean).join(', ')}</span>
          </li>
        ))}
      </ul>
      {total > rows.length ? <p class="muted">{t('and_more', { count: total - rows.length })}</p> : null}
    </section>
  )
}
