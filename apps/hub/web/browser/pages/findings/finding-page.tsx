// One finding in one look: what to do about it, how bad it is, who accepted it, what happened, and where else it is.
import './findings-kit.ts'
import { useState } from 'preact/hooks'
import type { FindingView } from '../../../views/finding.ts'
import { findingsWords } from '../../../words/findings.ts'
import { hrefTo } from '../../address/router.ts'
import { count, decimal, NOTHING, percent } from '../../format.ts'
import { pageTitle } from '../../frame/page-title.ts'
import { Fault } from '../../parts/fault.tsx'
import { LateExceptionDialog } from '../../parts/late-dialog.tsx'
import { NoticeLine } from '../../parts/notice-line.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import '../alert/alert.css'
import { About } from './about.tsx'
import { Due, PriorityMark } from './finding-face.tsx'
import type { ExceptionType } from './late-props.ts'
import './findings.css'

const t = textsOf(findingsWords)

function sentenceOf({ finding, exploitedDueDate }: FindingView): string {
  const { packageKey, installed, fixed, fix, needsReboot, isExploited } = finding
  const params = { package: packageKey, installed, fixed, server: finding.serverName ?? t('its_host') }
  const todo = t(fix === 'fixed' && needsReboot ? 'do_reboot' : `do_${fix}`, params)
  if (!isExploited) return todo
  const until = exploitedDueDate ? `, ${t('mend_until', { day: exploitedDueDate })}` : ''
  return `${todo} ${t('is_exploited')}${until}.`
}

const Facts = ({ data }: { readonly data: FindingView }) => {
  const { finding } = data
  const lines: readonly (readonly [title: string, text: string])[] = [
    [t('package'), finding.packageKey],
    [t('installed'), finding.installed || NOTHING],
    [t('fixed_in'), finding.fix === 'fixed' ? finding.fixed : t(`fix_${finding.fix}`)],
    [t('packages'), data.packages.map(({ name, version, arch }) => `${name} ${version} ${arch}`).join(', ') || NOTHING],
    [t('distribution'), data.ecosystem],
    [t('risk'), count(finding.risk)],
    [t('severity'), data.severity || NOTHING],
    [t('cvss'), data.cvss === null ? NOTHING : [decimal(data.cvss), data.vector ?? ''].join(' ')],
    [t('epss'), data.epss === null ? NOTHING : percent(data.epss * 100)],
    [t('also_known'), data.aliases.join(', ') || NOTHING],
    [t('advisories'), data.advisories.join(', ') || NOTHING],
  ]
  return (
    <section class="panel">
      <h2>{t('facts')}</h2>
      <dl class="facts">
        {lines.map(([title, text]) => (
          <>
            <dt>{title}</dt>
            <dd class="text">{text}</dd>
          </>
        ))}
        <dt>{t('first_seen')}</dt>
        <dd>
          <Time atMs={finding.firstSeenAtMs} form="when" />
        </dd>
        <dt>{t('last_seen')}</dt>
        <dd>
          <Time atMs={data.lastSeenAtMs} form="when" />
        </dd>
        <dt>{t('due')}</dt>
        <dd>
          <Due {...finding} />
        </dd>
      </dl>
    </section>
  )
}

const Exceptions = ({ data: { exceptions } }: { readonly data: FindingView }) => (
  <section class="panel">
    <h2>{t('exceptions')}</h2>
    {exceptions.length === 0 ? <p class="muted">{t('nothing')}</p> : null}
    <ol class="plain story">
      {exceptions.map(({ id, type, state, reason, by, atMs }) => (
        <li key={id}>
          <Time atMs={atMs} form="when" />
          <span class="text">
            <strong>
              {t(`type_${type}`)}: {t(`exception_${state}`)}
            </strong>{' '}
            {reason} {by === null ? '' : `(${by})`}
          </span>
        </li>
      ))}
    </ol>
  </section>
)

const eventTexts: Readonly<Record<string, keyof typeof findingsWords>> = {
  'finding.opened': 'event_opened',
  'finding.updated': 'event_updated',
  'finding.resolved': 'event_resolved',
}

/** Found, while it was open: whoever asks the matcher to tell anew what is open hears of it again. */
const isToldAgain = (events: FindingView['events'], at: number): boolean =>
  events[at]?.type === 'finding.opened' &&
  events.slice(at + 1).find(({ type }) => type !== 'finding.updated')?.type === 'finding.opened'

const Timeline = ({ data }: { readonly data: FindingView }) => (
  <section class="panel">
    <h2>{t('timeline')}</h2>
    {data.resolvedReason === null ? null : <p class="text">{t('resolved_because', { reason: data.resolvedReason })}</p>}
    <ol class="plain story">
      {data.events.map(({ id, type, atMs }, at) => {
        const text = isToldAgain(data.events, at)
          ? 'event_told_again'
          : Object.hasOwn(eventTexts, type)
            ? eventTexts[type]
            : undefined
        return (
          <li key={id}>
            <Time atMs={atMs} form="when" />
            <strong class="text">{text === undefined ? type : t(text)}</strong>
          </li>
        )
      })}
    </ol>
  </section>
)

const Others = ({ data: { others, finding } }: { readonly data: FindingView }) => (
  <section class="panel">
    <h2>{t('others')}</h2>
    {others.length === 0 ? <p class="muted">{t('nothing')}</p> : null}
    <ul class="plain">
      {others.map(({ id, serverName, packageKey }) => (
        <li key={id}>
          <a class="text" href={hrefTo('finding', { finding: id })}>
            {serverName} · {packageKey}
          </a>
        </li>
      ))}
    </ul>
    {others.length === 0 ? null : (
      <p>
        <a href={hrefTo('vulnerability', { cve: finding.vulnId })}>{t('all_of_it', { name: finding.vulnId })}</a>
      </p>
    )}
  </section>
)

export function FindingPage() {
  const { data, fault, reload } = usePageView<FindingView>('finding')
  const [asked, setAsked] = useState<ExceptionType | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const { finding } = data
  pageTitle.value = finding.vulnId
  return (
    <>
      <div class="page-head">
        <h1 class="text">{finding.vulnId}</h1>
        <PriorityMark {...finding} />
        <span class="muted">{t(`state_${finding.state}`)}</span>
        <NoticeLine onUndone={reload} />
      </div>
      {finding.title === null ? null : <p class="text">{finding.title}</p>}
      <p class="alert-sentence text">{sentenceOf(data)}</p>
      <div class="toolbar">
        {finding.state === 'resolved' ? null : (
          <>
            <button type="button" onClick={() => setAsked('accepted')}>
              {t('accept')}
            </button>
            <button type="button" onClick={() => setAsked('false_positive')}>
              {t('false_positive')}
            </button>
          </>
        )}
        {finding.serverId === null ? null : (
          <a class="finding-links text" href={hrefTo('server', { server: finding.serverId }, { tab: 'security' })}>
            {finding.serverName}
          </a>
        )}
      </div>
      <div class="finding-panels">
        <Facts data={data} />
        <About {...data} />
        <Exceptions data={data} />
        <Timeline data={data} />
        <Others data={data} />
      </div>
      {asked === null ? null : (
        <LateExceptionDialog
          type={asked}
          target={{ ids: [finding.id], names: [finding.vulnId] }}
          onClose={() => setAsked(null)}
          onDone={reload}
        />
      )}
    </>
  )
}
