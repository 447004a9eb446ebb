// The alerts that are open: as rows, the worst first, or in groups; acts on single ones and on all that match.
import { useState } from 'preact/hooks'
import { parseFilter } from '../../../address/filter-language.ts'
import type { AlertsView } from '../../../views/alerts.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { shellWords } from '../../../words/shell.ts'
import { hrefTo, param, setParams } from '../../address/router.ts'
import type { ApiFault } from '../../api.ts'
import { usePageKeys } from '../../keys.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { LateSilenceDialog } from '../../parts/late-dialog.tsx'
import { NoticeLine } from '../../parts/notice-line.tsx'
import type { Selection } from '../../parts/selection.ts'
import { SelectionBar } from '../../parts/selection-bar.tsx'
import type { SilenceStart } from '../../parts/silence-dialog-props.ts'
import { Skeleton } from '../../parts/skeleton.tsx'
import { Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { faultFrom } from '../../view-request.ts'
import { type ActTarget, type AlertAct, AlertActDialog } from './alert-acts.tsx'
import { alertListColumns } from './alert-columns.tsx'
import { titleOf } from './alert-face.tsx'
import { groupColumns, groupName } from './alert-groups.tsx'
import { AlertWeek } from './alert-week.tsx'
import { groupKeyOf, useSelectedAlerts } from './selected-alerts.ts'

const t = textsOf(alertsWords)
const shell = textsOf(shellWords)

/** Whether a filter asks only which servers: a silence of these hides what it finds, and no others. */
const isOfServers = (text: string): boolean =>
  parseFilter(text).every(({ key }) => key !== null && ['server', 'tag', 'env', 'role', 'dc'].includes(key))

const groupings = ['', 'rule', 'server', 'severity', 'tag', 'dc', 'incident'] as const

type GroupingProps = { readonly at: 0 | 1; readonly chosen: readonly string[] }

/** An incident is one cause and stands in no other group. */
const choicesAt = ({ at, chosen }: GroupingProps) =>
  groupings.filter(name => at === 0 || (name !== chosen[0] && name !== 'incident'))

function Grouping({ at, chosen }: GroupingProps) {
  const choose = (name: string): void => {
    const next = at === 0 ? [name, ...chosen.slice(1).filter(each => each !== name)] : [chosen[0] ?? '', name]
    // Who groups no more has no groups within groups either.
    setParams({ group: next[0] === '' ? null : next.filter(each => each !== '').join(','), offset: null })
  }
  return (
    <label class="inline">
      <span class="muted">{t(at === 0 ? 'group_by' : 'group_then')}</span>
      <select value={chosen[at] ?? ''} onChange={event => choose(event.currentTarget.value)}>
        {choicesAt({ at, chosen }).map(name => (
          <option value={name} key={name}>
            {t(name === '' ? 'group_none' : `group_${name}`)}
          </option>
        ))}
      </select>
    </label>
  )
}

function GroupChoice() {
  const chosen = param('group').split(',')
  return (
    <>
      <Grouping at={0} chosen={chosen} />
      {chosen[0] === '' ? null : <Grouping at={1} chosen={chosen} />}
    </>
  )
}

const ActButtons = ({ onAsk }: { readonly onAsk: (act: AlertAct | 'silence') => void }) => (
  <>
    <button type="button" title="a" onClick={() => onAsk('acknowledge')}>
      {t('acknowledge')}
    </button>
    <button type="button" title="m" onClick={() => onAsk('silence')}>
      {t('silence')}
    </button>
    <button type="button" title="n" onClick={() => onAsk('comment')}>
      {t('comment')}
    </button>
    <button type="button" title="Shift E" onClick={() => onAsk('close')}>
      {t('close')}
    </button>
  </>
)

type Asked =
  | { readonly act: AlertAct; readonly target: ActTarget }
  | { readonly act: 'silence'; readonly start: SilenceStart }

/** How much is selected: alerts, or groups, of which only the hub knows how many alerts are in two of them. */
function selectedOf({ groups, matching }: AlertsView, selection: Selection) {
  if (groups !== null && selection.isOfAll) return { selected: matching }
  const selected = selection.size
  return groups === null ? { selected } : { selected, text: t('groups_selected', { count: selected }) }
}

export function AlertsPage() {
  const { data, fault, reload } = usePageView<AlertsView>('alerts')
  const { selection, selectMatching, matching, target } = useSelectedAlerts(data)
  const [asked, setAsked] = useState<Asked | null>(null)
  const [askFault, setAskFault] = useState<ApiFault | null>(null)
  const tried = (act: () => Promise<void>): void => {
    setAskFault(null)
    act().catch((error: unknown) => setAskFault(faultFrom(error)))
  }
  const ask = (act: AlertAct | 'silence'): void => {
    if (!may('monitoring.manage') || selection.size === 0) return
    tried(async () => {
      const { serverIds, ...about } = await target()
      setAsked(act === 'silence' ? { act, start: { serverIds } } : { act, target: about })
    })
  }
  const silenceMatching = (): void =>
    tried(async () => {
      const { serverIds, scope } = await matching()
      setAsked({ act: 'silence', start: scope === null ? { serverIds } : { scope } })
    })
  usePageKeys({ a: () => ask('acknowledge'), m: () => ask('silence'), n: () => ask('comment'), E: () => ask('close') })
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  const done = (): void => {
    selection.clear()
    reload()
  }
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
        <span class="muted">{shell('rows_of', { count: data.matching, total: data.total })}</span>
        <NoticeLine onUndone={reload} />
      </div>
      <div class="toolbar">
        <FilterField facets={data.facets} />
        <GroupChoice />
        {may('monitoring.manage') && param('q') !== '' && isOfServers(param('q')) && data.matching > 0 ? (
          <button type="button" onClick={silenceMatching}>
            {shell('silence_matching')}
          </button>
        ) : null}
      </div>
      <AlertWeek week={data.week} />
      {may('monitoring.manage') && data.matching > 0 ? (
        <SelectionBar
          {...selectedOf(data, selection)}
          matching={data.matching}
          onSelectMatching={() => tried(selectMatching)}
          onClear={() => selection.clear()}
        >
          <ActButtons onAsk={ask} />
        </SelectionBar>
      ) : null}
      <ActFault fault={askFault} />
      <AlertList data={data} selection={may('monitoring.manage') ? selection : undefined} />
      {asked?.act === 'silence' ? (
        <LateSilenceDialog start={asked.start} onClose={() => setAsked(null)} onDone={done} />
      ) : asked === null ? null : (
        <AlertActDialog act={asked.act} target={asked.target} onClose={() => setAsked(null)} onDone={done} />
      )}
    </>
  )
}

type ListProps = { readonly data: AlertsView; readonly selection: Selection | undefined }

function AlertList({ data, selection }: ListProps) {
  if (data.total === 0 && param('q') === '')
    return (
      <div class="notice">
        <p>{t('none')}</p>
        <a href={hrefTo('alerts', {}, { q: 'state:resolved' })}>{t('past')}</a>
      </div>
    )
  if (data.matching === 0) return <NothingMatches />
  if (data.groups !== null)
    return (
      <Table
        label={t('title')}
        columns={groupColumns()}
        rows={data.groups}
        keyOf={groupKeyOf}
        nameOf={groupName}
        selection={selection}
      />
    )
  return (
    <Table
      isTall
      label={t('title')}
      columns={alertListColumns}
      rows={data.rows}
      keyOf={row => row.id}
      nameOf={row => `${titleOf(row)} · ${row.serverName}`}
      total={data.matching}
      offset={data.offset}
      onOffset={offset => setParams({ offset: offset || null }, 'replace')}
      selection={selection}
    />
  )
}
