// Tabs that are one table each: checks, agents, history.
import type { ComponentChildren } from 'preact'
import type { AgentsView, ChecksView, HistoryView } from '../../../views/server/records.ts'
import { agentSaysWords } from '../../../words/agent-says.ts'
import { checksWords } from '../../../words/checks.ts'
import { serverTabWords } from '../../../words/server-tabs.ts'
import { serversWords } from '../../../words/servers.ts'
import { hrefTo } from '../../address/router.ts'
import { duration, NOTHING, valueText } from '../../format.ts'
import { Buffered, LastWarning } from '../../parts/agent-says.tsx'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf } from '../../session.ts'
import { useView, type ViewState } from '../../view.ts'
import type { TabProps } from './late-props.ts'

const t = textsOf(serverTabWords)
const fleet = textsOf(serversWords)
const checkText = textsOf(checksWords)
const says = textsOf(agentSaysWords)

type AgentOfServer = AgentsView['agents'][number]

/** The view's table, or what stands in its place. */
function Shown<T>({
  view,
  children,
}: {
  readonly view: ViewState<T>
  readonly children: (data: T) => ComponentChildren
}) {
  if (view.data !== null) return <>{children(view.data)}</>
  return view.fault === null ? <Skeleton /> : <Fault fault={view.fault} onRetry={view.reload} />
}

function Table({ heads, children }: { readonly heads: readonly string[]; readonly children: ComponentChildren }) {
  return (
    <div class="server-table">
      <table class="table">
        <thead>
          <tr>
            {heads.map(head => (
              <th scope="col" key={head}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

const CHECK_HEADS = [
  ...[t('check'), t('last_result'), t('since_hour'), t('response'), t('check_type'), t('target')],
  ...[t('interval'), t('state')],
]

/** The last result with its age. One that is old is told as what it was, and nobody is told that all is well. */
function CheckResult({
  check,
  isSilent,
}: {
  readonly check: ChecksView['checks'][number]
  readonly isSilent: boolean
}) {
  const { isWell, atMs, isStale } = check
  if (isWell === null) return <StateMark state="unknown" text={t(isSilent ? 'not_known' : 'no_result')} />
  const text = t(isWell ? 'check_well' : 'check_failed')
  const mark = isStale ? 'unknown' : isWell ? 'ok' : 'critical'
  return (
    <>
      <StateMark state={mark} text={isStale ? t('stale_result', { result: text }) : text} />{' '}
      {atMs === null ? null : (
        <span class="muted">
          <Time atMs={atMs} />
        </span>
      )}
    </>
  )
}

/** Which version the company's newest agent has, where this one has another. */
const AgentVersion = ({ agent, newest }: { readonly agent: AgentOfServer; readonly newest: string | null }) =>
  agent.isOutdated ? (
    <>
      <StateMark state="warning" text={agent.agentVersion ?? NOTHING} />{' '}
      <span class="muted">{t('newest', { version: newest ?? NOTHING })}</span>
    </>
  ) : (
    <span>{agent.agentVersion}</span>
  )

export function ChecksTab({ serverId }: TabProps) {
  const view = useView<ChecksView>('server-checks', { server: serverId })
  return (
    <Shown view={view}>
      {({ checks, isSilent }) =>
        checks.length === 0 ? (
          <p>{t('no_checks')}</p>
        ) : (
          <>
            {isSilent ? (
              <p class="banner" role="status">
                {t('checks_silent')}
              </p>
            ) : null}
            <Table heads={CHECK_HEADS}>
              {checks.map(check => (
                <tr key={check.id}>
                  <th scope="row">
                    <a href={hrefTo('check', { check: check.id })}>{check.name}</a>
                  </th>
                  <td>
                    <CheckResult check={check} isSilent={isSilent} />
                  </td>
                  <td data-title={t('since_hour')}>
                    {check.isWell === null ? (
                      NOTHING
                    ) : check.sinceMs === null ? (
                      t('over_a_day')
                    ) : (
                      <Time atMs={check.sinceMs} form="when" />
                    )}
                  </td>
                  <td data-title={t('response')}>{valueText('s', check.seconds)}</td>
                  <td data-title={t('check_type')}>{checkText(`type_${check.type}`)}</td>
                  <td data-title={t('target')} class="mono">
                    {check.target}
                  </td>
                  <td data-title={t('interval')}>{duration(check.intervalSeconds * 1000)}</td>
                  <td>{t(check.isEnabled ? 'enabled' : 'disabled')}</td>
                </tr>
              ))}
            </Table>
          </>
        )
      }
    </Shown>
  )
}

/** An agent of a host whose name is not known joins by a licence that is for this server alone. */
const OwnLicence = ({ serverId }: { readonly serverId: string }) =>
  may('monitoring.manage') ? (
    <p>
      <a class="button" href={hrefTo('add_servers', {}, { server: serverId })}>
        {t('own_licence')}
      </a>
    </p>
  ) : null

export function AgentsTab({ serverId }: TabProps) {
  const view = useView<AgentsView>('server-agents', { server: serverId })
  return (
    <Shown view={view}>
      {({ agents, newestVersion }) =>
        agents.length === 0 ? (
          <>
            <p>{t('no_agents')}</p>
            <OwnLicence serverId={serverId} />
          </>
        ) : (
          <Table
            heads={[
              ...[t('agent'), t('state'), fleet('seen'), t('agent_version'), says('buffer'), says('last_warning')],
              ...[t('system'), t('collector'), t('enrolled')],
            ]}
          >
            {agents.map(agent => (
              <tr key={agent.id}>
                <th scope="row" class="text">
                  {agent.hostname ?? agent.id}
                </th>
                <td title={agent.revokedReason ?? undefined}>
                  {agent.state === 'active' ? (
                    <StateMark state={agent.connectivity} />
                  ) : (
                    <StateMark state="unknown" text={t(`agent_${agent.state}`)} />
                  )}
                </td>
                <td data-title={fleet('seen')}>
                  {agent.lastSeenAtMs === null ? '–' : <Time atMs={agent.lastSeenAtMs} />}
                </td>
                <td data-title={t('agent_version')}>
                  <AgentVersion agent={agent} newest={newestVersion} />
                </td>
                <td data-title={says('buffer')}>
                  {agent.buffer === null ? NOTHING : <Buffered buffer={agent.buffer} />}
                </td>
                <td data-title={says('last_warning')} class="agent-warning">
                  {agent.lastWarning === null ? NOTHING : <LastWarning {...agent.lastWarning} />}
                </td>
                <td data-title={t('system')}>{[agent.os, agent.arch].filter(each => each !== null).join(' ')}</td>
                <td data-title={t('collector')} class="text">
                  {agent.collector}
                </td>
                <td data-title={t('enrolled')}>
                  <Time atMs={agent.enrolledAtMs} />
                </td>
              </tr>
            ))}
          </Table>
        )
      }
    </Shown>
  )
}

const ACTS = ['create', 'update', 'approve', 'delete', 'restore', 'apply'] as const

/** `server.create` in words; an act that is not known changed something. */
function actText(action: string): string {
  const verb = action.slice(action.indexOf('.') + 1)
  return t(`act_${ACTS.find(act => act === verb) ?? 'update'}`)
}

const FIELDS = [
  ...(['name', 'hostname', 'ip_address', 'environment', 'role', 'datacenter', 'subnet_id', 'tags'] as const),
  ...(['operating_system', 'cpu_cores', 'memory_mb', 'disk_gb', 'status', 'notes'] as const),
]
const STATUSES = ['active', 'maintenance', 'decommissioned'] as const

function fieldText(name: string): string {
  const known = FIELDS.find(field => field === name)
  return known === undefined ? name : t(`field_${known}`)
}

function shownValue(field: string, value: string): string {
  if (value === '') return t('nothing')
  if (field !== 'status') return value
  const status = STATUSES.find(each => each === value)
  return status === undefined ? t('status_draft') : fleet(`status_${status}`)
}

/** A text so long is opened: it would push the rest of the history away. */
const LONG_CHARS = 400
const SHORT_CHARS = 160

function Changed({ text }: { readonly text: string }) {
  if (text.length <= LONG_CHARS) return <>{text}</>
  return (
    <details>
      <summary>{t('begins', { text: Array.from(text.slice(0, SHORT_CHARS)).slice(0, -1).join('') })}</summary>
      {text}
    </details>
  )
}

export function HistoryTab({ serverId }: TabProps) {
  const view = useView<HistoryView>('server-history', { server: serverId })
  return (
    <Shown view={view}>
      {({ entries, isTruncated }) =>
        entries.length === 0 ? (
          <p>{t('no_history')}</p>
        ) : (
          <>
            <ol class="plain history">
              {entries.map(entry => (
                <li key={entry.id}>
                  <p>
                    <Time atMs={entry.atMs} form="when" /> <strong class="text">{entry.actor ?? '–'}</strong>{' '}
                    {actText(entry.action)}
                  </p>
                  {entry.changes.length === 0 ? null : (
                    <dl>
                      {entry.changes.map(([field, before, after]) => (
                        <div key={field}>
                          <dt>{fieldText(field)}</dt>
                          <dd class="text">
                            <Changed
                              text={t('before_after', {
                                before: shownValue(field, before),
                                after: shownValue(field, after),
                              })}
                            />
                          </dd>
                        </div>
                      ))}
                    </dl>
                  )}
                </li>
              ))}
            </ol>
            {isTruncated ? <p class="muted">{t('last_rows', { count: entries.length })}</p> : null}
          </>
        )
      }
    </Shown>
  )
}
