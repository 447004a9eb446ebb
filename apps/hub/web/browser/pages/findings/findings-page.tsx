// The findings that are open, the highest risk first: what waits, what is late, and whether scans and the matcher work.
import './findings-kit.ts'
import { useState } from 'preact/hooks'
import type { FindingsView, MatchingFindingsView } from '../../../views/findings.ts'
import { findingsWords } from '../../../words/findings.ts'
import { shellWords } from '../../../words/shell.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import type { ApiFault } from '../../api.ts'
import { count } from '../../format.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { LateExceptionDialog } from '../../parts/late-dialog.tsx'
import { NoticeLine } from '../../parts/notice-line.tsx'
import { useSelection } from '../../parts/selection.ts'
import { SelectionBar } from '../../parts/selection-bar.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { askView } from '../../view-request.ts'
import { ExportFindings } from './export-findings.tsx'
import type { ExceptionTarget, ExceptionType } from './late-props.ts'
import './findings.css'
import { findingColumns } from './finding-columns.tsx'
import { databaseText, priorityText } from './finding-face.tsx'
import { GroupChoice, groupColumns, groupHref, groupName } from './finding-groups.tsx'

const t = textsOf(findingsWords)
const shell = textsOf(shellWords)

type TileProps = { readonly title: string; readonly number: number; readonly q: string }

/** A number that nobody needs to look at is quiet. */
const Tile = ({ title, number, q }: TileProps) => (
  <a class={number === 0 ? 'tile calm' : 'tile'} href={hrefTo('findings', {}, { q })}>
    <span class="tile-number">{count(number)}</span> <span>{title}</span>
  </a>
)

const Numbers = ({ data: { byPriority, exploited } }: { readonly data: FindingsView }) => (
  <section class="finding-numbers" aria-label={t('numbers')}>
    <div class="tiles">
      {(['p1', 'p2', 'p3', 'p4'] as const).map(priority => (
        <Tile key={priority} title={priorityText(priority)} number={byPriority[priority]} q={`priority:${priority}`} />
      ))}
      <Tile title={t('exploited')} number={exploited} q="exploited:yes" />
    </div>
  </section>
)

/** How much of what there is was looked at, and by what: an empty list is good news only with it. */
function Coverage({ data: { scans, matcher, overdue, dueSoon } }: { readonly data: FindingsView }) {
  const { servers, scanned, stale, neverScanned, oldestAtMs } = scans
  return (
    <>
      {matcher.isThere ? null : <p class="banner">{t('no_matcher')}</p>}
      {matcher.fault === null ? null : <p class="banner text">{t('database_fault', { fault: matcher.fault })}</p>}
      <p class="muted">
        {t('overdue')}: {count(overdue)} · {t('due_soon')}: {count(dueSoon)} ·{' '}
        {t('scans', { scanned, servers, stale, never: neverScanned })}{' '}
        {oldestAtMs === null ? null : (
          <>
            {t('oldest')} <Time atMs={oldestAtMs} />.{' '}
          </>
        )}
        {databaseText(matcher.databaseHours)}
      </p>
    </>
  )
}

type Asked = { readonly type: ExceptionType; readonly target: ExceptionTarget }

type ListProps = {
  readonly data: FindingsView
  readonly total: number
  readonly selection: ReturnType<typeof useSelection>
}

function FindingList({ data, total, selection }: ListProps) {
  if (total === 0) return <p class="muted">{t('none')}</p>
  if (data.matching === 0) return <NothingMatches />
  const window = {
    ...{ label: t('title'), total: data.matching, offset: data.offset },
    onOffset: (offset: number): void => setParams({ offset: offset || null }, 'replace'),
  }
  const { groupedBy } = data
  if (groupedBy !== null)
    return (
      <Table
        key={groupedBy}
        {...window}
        columns={groupColumns[groupedBy]}
        rows={data.groups}
        keyOf={row => row.key}
        nameOf={row => groupName(groupedBy, row)}
        hrefOf={row => groupHref(groupedBy, row)}
      />
    )
  return (
    <Table
      {...window}
      isTall
      columns={findingColumns}
      rows={data.rows}
      keyOf={row => row.id}
      nameOf={row => `${row.vulnId} · ${row.packageKey} · ${row.serverName ?? t('no_server')}`}
      hrefOf={row => hrefTo('finding', { finding: row.id })}
      selection={selection}
    />
  )
}

/** What is asked for those that are chosen, whichever way they were: one that is taken out again is not among them. */
function useAsking(data: FindingsView | null) {
  const selection = useSelection()
  const [asked, setAsked] = useState<Asked | null>(null)
  const [fault, setFault] = useState<ApiFault | null>(null)
  const selectMatching = (): Promise<void> =>
    askView<MatchingFindingsView>('matching-findings', { q: param('q') }).then(({ ids }) => {
      setFault(null)
      selection.setMatching(ids)
    }, setFault)
  const ask = (type: ExceptionType): void => {
    const names = data?.rows.filter(row => selection.has(row.id)).map(row => row.vulnId) ?? []
    setAsked({ type, target: { ids: selection.all, names: [...new Set(names)] } })
  }
  return { selection, asked, fault, ask, close: () => setAsked(null), selectMatching }
}

export function FindingsPage() {
  const { data, fault, reload } = usePageView<FindingsView>(
    param('group') === 'server' ? 'findings-by-server' : 'findings',
  )
  const { selection, asked, fault: unselected, ask, close, selectMatching } = useAsking(data)
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  const total = Object.values(data.byState).reduce((sum, number) => sum + number, 0)
  const done = (): void => {
    selection.clear()
    reload()
  }
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
        <span class="muted">{data.groupedBy === null ? shell('rows_of', { count: data.matching, total }) : null}</span>
        <NoticeLine onUndone={reload} />
        <span class="grow" />
        {may('security.export') && data.matching > 0 ? (
          <ExportFindings key={JSON.stringify(data.exported)} filters={data.exported} />
        ) : null}
      </div>
      <Numbers data={data} />
      <Coverage data={data} />
      <div class="toolbar">
        <FilterField facets={data.facets} />
        <GroupChoice />
        <span class="finding-links">
          <a href={hrefTo('findings', {}, { q: 'state:accepted' })}>{t('accepted_ones')}</a>
          <a href={hrefTo('findings', {}, { q: 'state:resolved' })}>{t('resolved_ones')}</a>
        </span>
      </div>
      {data.groupedBy === null ? (
        <SelectionBar
          selected={selection.size}
          matching={data.matching}
          onSelectMatching={() => void selectMatching()}
          onClear={() => selection.clear()}
        >
          <button type="button" onClick={() => ask('accepted')}>
            {t('accept')}
          </button>
          <button type="button" onClick={() => ask('false_positive')}>
            {t('false_positive')}
          </button>
        </SelectionBar>
      ) : null}
      <ActFault fault={unselected} />
      <FindingList data={data} total={total} selection={selection} />
      {asked === null ? null : (
        <LateExceptionDialog type={asked.type} target={asked.target} onClose={close} onDone={done} />
      )}
    </>
  )
}
