// How secure a server is: first what its last scan did not see, since an empty list is good news only without that;
// then its open findings, the highest risk first.

import { toggledTerm } from '../../../address/filter-language.ts'
import type { SecurityView } from '../../../views/server/security.ts'
import { findingsWords } from '../../../words/findings.ts'
import { serverSecurityWords } from '../../../words/server-security.ts'
import { hrefTo } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { useView } from '../../view.ts'
import { findingColumns, inEveryState } from '../findings/finding-columns.tsx'
import { databaseText, priorityText } from '../findings/finding-face.tsx'
import type { TabProps } from './late-props.ts'

const t = textsOf(serverSecurityWords)
const findings = textsOf(findingsWords)

/** With one of these a report opens and resolves nothing. */
const FAILED: ReadonlySet<string> = new Set([
  'packages_unreadable',
  'no_packages',
  'too_many_packages',
  'os_release_missing',
])
const columns = findingColumns.filter(({ key }) => key !== 'server')

type Texts = keyof typeof serverSecurityWords
/** A code or word of a newer scanner is shown as it is. */
const textOr = (name: string, word: string): string =>
  Object.hasOwn(serverSecurityWords, name) ? t(name as Texts, {}) : word

/** Why findings may be missing or out of date, the most important first; empty when the last scan saw everything. */
function doubtsOf({ host, scan, matcher }: SecurityView): readonly string[] {
  const doubts: string[] = []
  if (scan === null && host === null) doubts.push(t('never'))
  else if (host === null) doubts.push(t('detached'))
  else if (host.state !== 'active') doubts.push(t('revoked'))
  else if (host.isInactive) doubts.push(t('inactive'))
  else if (scan === null || scan.isOfOtherHost) doubts.push(t(host.lastReportAtMs === null ? 'waiting' : 'uncompared'))
  else if (host.isStale) doubts.push(t('stale'))
  if (scan !== null && scan.match !== 'ok') doubts.push(t(`match_${scan.match}`, { os: scan.os || NOTHING }))
  if (!matcher.isThere) doubts.push(findings('no_matcher'))
  return doubts
}

const Codes = ({ codes }: { readonly codes: readonly string[] }) => (
  <ul>
    {codes.map(code => (
      <li key={code} class="text">
        <code>{code}</code> {textOr(`code_${code}`, '')}
      </li>
    ))}
  </ul>
)

function Doubts({ data }: { readonly data: SecurityView }) {
  const codes = data.scan?.errorCodes ?? []
  const isFailed = codes.some(code => FAILED.has(code))
  return (
    <>
      {doubtsOf(data).map(text => (
        <p key={text} class="banner text">
          {text}
        </p>
      ))}
      {codes.length === 0 ? null : (
        <section class={isFailed ? 'banner' : 'muted'}>
          <p>{t(isFailed ? 'failed' : 'partial')}</p>
          <Codes codes={codes} />
        </section>
      )}
    </>
  )
}

const yesNo = (value: boolean | null): string => t(value === null ? 'unknown' : value ? 'yes' : 'no')
const When = ({ atMs }: { readonly atMs: number | null }) => (
  <dd>{atMs === null ? NOTHING : <Time atMs={atMs} form="when" />}</dd>
)

function LastScan({ data: { host, scan, matcher } }: { readonly data: SecurityView }) {
  if (host === null && scan === null) return null
  const lines: readonly (readonly [title: string, text: string])[] =
    scan === null
      ? []
      : [
          [t('system'), scan.os || NOTHING],
          [t('support'), scan.support === null ? t('unknown') : textOr(`support_${scan.support}`, scan.support)],
          [t('kernel'), scan.kernel || NOTHING],
          [t('reboot'), yesNo(scan.needsReboot)],
          [t('livepatch'), yesNo(scan.isLivepatched)],
          [t('packages'), scan.packages === null ? NOTHING : count(scan.packages)],
          [t('scanner'), scan.scannerVersion ?? NOTHING],
          [t('database'), scan.dbVersion === 0 ? NOTHING : String(scan.dbVersion)],
        ]
  return (
    <section aria-labelledby="last-scan">
      <h2 id="last-scan">{t('last_scan')}</h2>
      <dl class="server-facts">
        <div>
          <dt>{t('scanned')}</dt>
          <When atMs={scan?.scannedAtMs ?? null} />
        </div>
        {host === null ? null : (
          <>
            <div>
              <dt>{t('last_report')}</dt>
              <When atMs={host.lastReportAtMs} />
            </div>
            <div>
              <dt>{t('scanner_seen')}</dt>
              <When atMs={host.lastSeenAtMs} />
            </div>
          </>
        )}
        {lines.map(([title, text]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd class="text">{text}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">{databaseText(matcher.databaseHours)}</p>
      {matcher.fault === null ? null : (
        <p class="banner text">{findings('database_fault', { fault: matcher.fault })}</p>
      )}
    </section>
  )
}

function OpenFindings({ data, serverName }: { readonly data: SecurityView; readonly serverName: string }) {
  const { rows, matching, byPriority, byStatus, scan } = data
  const isSeen = doubtsOf(data).length === 0 && !scan?.errorCodes.some(code => FAILED.has(code))
  const q = toggledTerm('', 'server', serverName)
  return (
    <section aria-labelledby="open-findings">
      <h2 id="open-findings">{t('open_findings')}</h2>
      <div class="tiles">
        {(['p1', 'p2', 'p3', 'p4'] as const).map(priority => (
          <a
            key={priority}
            class={byPriority[priority] === 0 ? 'tile calm' : 'tile'}
            href={hrefTo('findings', {}, { q: toggledTerm(q, 'priority', priority) })}
          >
            <span class="tile-number">{count(byPriority[priority])}</span> <span>{priorityText(priority)}</span>
          </a>
        ))}
      </div>
      <p>
        <a href={hrefTo('findings', {}, { q: inEveryState(q) })}>{t('all_findings')}</a>{' '}
        <span class="muted">
          {t('others', {
            ...{ accepted: byStatus.accepted, resolved: byStatus.resolved, not_affected: byStatus.false_positive },
          })}
          {matching > rows.length ? ` · ${t('first_of', { shown: rows.length, count: matching })}` : ''}
        </span>
      </p>
      {rows.length === 0 ? (
        <p>{t(isSeen ? 'none_open' : 'none_known')}</p>
      ) : (
        <Table
          isTall
          label={t('open_findings')}
          columns={columns}
          rows={rows}
          keyOf={row => row.id}
          nameOf={row => `${row.vulnId} · ${row.packageKey}`}
          hrefOf={row => hrefTo('finding', { finding: row.id })}
        />
      )}
    </section>
  )
}

export function SecurityTab({ server, serverId }: TabProps) {
  const { data, fault, reload } = useView<SecurityView>('server-security', { server: serverId })
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <Doubts data={data} />
      <LastScan data={data} />
      {data.host === null && data.scan === null ? null : <OpenFindings data={data} serverName={server.name} />}
    </>
  )
}
