// The silences: which hold, which are to come, which are over; end, extend, make one again.
import { useState } from 'preact/hooks'
import type { SilenceRow, SilencesView } from '../../../views/silences.ts'
import { shellWords } from '../../../words/shell.ts'
import { silencesWords } from '../../../words/silences.ts'
import { param, setParams } from '../../address/router.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { count, dayAndClock, NOTHING, weekdayText } from '../../format.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { LateSilenceDialog } from '../../parts/late-dialog.tsx'
import { NoticeLine, say } from '../../parts/notice-line.tsx'
import type { SilenceStart } from '../../parts/silence-dialog-props.ts'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'

const t = textsOf(silencesWords)
const shell = textsOf(shellWords)

const HOUR_MS = 3_600_000

function scopeText({ scope, serverCount, serverNames }: SilenceRow): string {
  if (scope.all) return t('all_servers')
  const keys = [
    ...scope.tags.map(tag => `tag:${tag}`),
    ...scope.environments.map(name => `env:${name}`),
    ...scope.roles.map(name => `role:${name}`),
    ...scope.datacenters.map(name => `dc:${name}`),
  ]
  if (keys.length > 0) return `${keys.join(' ')} · ${t('servers_count', { count: serverCount ?? 0 })}`
  return t('servers_of', { count: serverCount ?? 0, names: serverNames.join(', ') })
}

const named = ({ id, name }: SilenceRow['rules'][number]) => ({ id, name: name ?? t('deleted_rule') })

/** The same again: whom it covered, of which rules that are left, and why. None left is refused: it never means all. */
function startOf({ scope, rules, reason }: SilenceRow): SilenceStart {
  const left = rules.filter(({ name }) => name !== null)
  return { scope, rules: (left.length > 0 ? left : rules).map(named), isOfRule: rules.length > 0, reason }
}

const iso = (atMs: number): string => new Date(atMs).toISOString()

const endAt = ({ id }: SilenceRow, atMs: number): Promise<ApiResult> =>
  send('PATCH', `/monitoring/silences/${id}`, { ends_at: iso(atMs) })

/**
 * What was ended stays so: another takes its place, of the rules that are left, until it would have ended. What recurs
 * begins when it did: its first window says when the others are.
 */
const makeAgain = (row: SilenceRow): Promise<ApiResult> =>
  send('POST', '/monitoring/silences', {
    ...{ scope: row.scope, reason: row.reason, recurrence: row.recurrence, ends_at: iso(row.endsAtMs) },
    starts_at: row.recurrence === null && row.status === 'active' ? null : iso(row.startsAtMs),
    rule_ids: startOf(row).rules?.map(({ id }) => id) ?? [],
  })

const rulesText = ({ rules }: SilenceRow): string =>
  rules.length === 0 ? t('all_rules') : rules.map(rule => named(rule).name).join(', ')

/** ` · every week, Mon, Fri` */
function repeatText({ recurrence }: SilenceRow): string {
  if (recurrence === null) return ''
  return ` · ${[t(`repeat_${recurrence.frequency}`), ...recurrence.weekdays.map(weekdayText)].join(', ')}`
}

const STATES = { current: ['active', 'scheduled'], past: ['expired', 'cancelled'] } as const
const REPEATS = ['daily', 'weekly'] as const

const isOver = ({ status }: SilenceRow): boolean => status === 'expired' || status === 'cancelled'

/** What may be longer than its column: pointed at it is all said, since no other page does. */
const Cut = ({ text }: { readonly text: string }) => (
  <span class="text" title={text}>
    {text}
  </span>
)

const columnsOf = (acts: (row: SilenceRow) => preact.ComponentChildren): readonly Column<SilenceRow>[] => [
  {
    key: 'status',
    title: t('status'),
    cell: row => (
      <StateMark state={row.status === 'active' ? 'silenced' : 'unknown'} text={t(`status_${row.status}`)} />
    ),
  },
  { key: 'reason', title: t('reason'), isName: true, cell: row => <Cut text={row.reason} /> },
  { key: 'scope', title: t('scope'), cell: row => <Cut text={scopeText(row)} /> },
  {
    key: 'rules',
    title: t('rules'),
    from: 'medium',
    cell: row => <Cut text={rulesText(row)} />,
  },
  { key: 'from', title: t('from'), from: 'medium', cell: row => <Time atMs={row.startsAtMs} form="when" /> },
  {
    key: 'until',
    title: t('until'),
    cell: row => (
      <>
        <Time atMs={row.endsAtMs} form="when" />
        {repeatText(row)}
      </>
    ),
  },
  { key: 'by', title: t('by'), from: 'wide', cell: row => row.by ?? NOTHING },
  { key: 'hides', title: t('hides'), isNumber: true, cell: row => (isOver(row) ? NOTHING : count(row.hiddenAlerts)) },
  { key: 'acts', title: t('acts'), cell: acts },
]

type ToolsProps = { readonly isPast: boolean; readonly onNew: () => void }

const Tools = ({ isPast, onNew }: ToolsProps) => (
  <>
    <div class="toolbar">
      <button type="button" class="primary" onClick={onNew}>
        {t('new')}
      </button>
      <button type="button" aria-pressed={!isPast} onClick={() => setParams({ past: null, offset: null })}>
        {t('current')}
      </button>
      <button type="button" aria-pressed={isPast} onClick={() => setParams({ past: '1', offset: null })}>
        {t('past')}
      </button>
    </div>
    <div class="toolbar">
      <FilterField
        facets={{
          state: STATES[isPast ? 'past' : 'current'].map(state => [state, -1] as const),
          repeat: REPEATS.map(frequency => [frequency, -1] as const),
        }}
      />
    </div>
  </>
)

export function SilencesPage() {
  const { data, fault, reload } = usePageView<SilencesView>('silences')
  const [start, setStart] = useState<SilenceStart | null>(null)
  const [actFault, setActFault] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const isPast = param('past') !== ''
  const act = async (said: string, request: Promise<ApiResult>, undo: () => Promise<ApiResult>): Promise<void> => {
    const result = await request
    setActFault(result.ok ? null : result.fault)
    if (result.ok) say(said, undo)
    reload()
  }
  const extend = (row: SilenceRow) => {
    const lateMs = row.endsAtMs + HOUR_MS
    const said = row.recurrence === null ? t('extended', { time: dayAndClock(lateMs) }) : t('extended_each')
    return act(said, endAt(row, lateMs), () => endAt(row, row.endsAtMs))
  }
  const end = (row: SilenceRow) =>
    act(t('ended'), send('POST', `/monitoring/silences/${row.id}/end`), () => makeAgain(row))
  const columns = columnsOf(row =>
    isOver(row) ? (
      <button type="button" onClick={() => setStart(startOf(row))}>
        {t('again')}
      </button>
    ) : (
      <span class="row-acts">
        <button type="button" onClick={() => void extend(row)}>
          {t('extend')}
        </button>
        <button type="button" onClick={() => void end(row)}>
          {t('end')}
        </button>
      </span>
    ),
  )
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
        <span class="muted">{shell('rows_of', { count: data.matching, total: data.total })}</span>
        <NoticeLine onUndone={reload} />
      </div>
      <Tools isPast={isPast} onNew={() => setStart({})} />
      <ActFault fault={actFault} />
      {data.total === 0 ? (
        <p class="muted">{t(isPast ? 'none_past' : 'none')}</p>
      ) : data.matching === 0 ? (
        <NothingMatches />
      ) : (
        <Table
          label={t('title')}
          columns={columns}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={row => row.reason}
          total={data.matching}
          offset={data.offset}
          onOffset={offset => setParams({ offset: offset || null }, 'replace')}
        />
      )}
      {start === null ? null : <LateSilenceDialog start={start} onClose={() => setStart(null)} onDone={reload} />}
    </>
  )
}
