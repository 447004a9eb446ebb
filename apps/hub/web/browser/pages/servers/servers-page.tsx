// The servers of the company, as a table, as cards or as a map: filtered, sorted, kept up to date; acts on single ones
// and on all that match.
import { useMemo, useState } from 'preact/hooks'
import type { HostMapView } from '../../../views/host-map.ts'
import type { MatchingServersView, ServerRow, ServersView } from '../../../views/servers.ts'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { goTo, hrefTo, param, setParams } from '../../address/router.ts'
import type { ApiFault } from '../../api.ts'
import { overlay } from '../../frame/overlay.ts'
import { lateParts } from '../../late-parts.ts'
import { CollectorBanner } from '../../parts/collector-banner.tsx'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { LateServerActDialog, LateSilenceDialog } from '../../parts/late-dialog.tsx'
import { latePart } from '../../parts/late-part.tsx'
import { NothingYet } from '../../parts/nothing-yet.tsx'
import { NoticeLine } from '../../parts/notice-line.tsx'
import { type Selection, useSelection } from '../../parts/selection.ts'
import { SelectionBar } from '../../parts/selection-bar.tsx'
import type { SilenceStart } from '../../parts/silence-dialog-props.ts'
import { Skeleton } from '../../parts/skeleton.tsx'
import { Table } from '../../parts/table.tsx'
import { company, may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { askView, faultFrom } from '../../view-request.ts'
import type { MapProps, ServerAct } from './late-props.ts'
import { ServerCards } from './server-cards.tsx'
import { chosenColumns, serverColumns } from './server-columns.tsx'

const t = textsOf(serversWords)
const shell = textsOf(shellWords)

const STATES = ['online', 'down', 'unknown', 'maintenance', 'draft', 'alerts', 'silenced']
const mayChange = may('servers.manage')
const maySilence = may('monitoring.manage')

/** `-1`: a value that every company has is not counted. */
const facetsOf = (data: Pick<ServersView, 'facets'>) => ({
  state: STATES.map(state => [state, -1] as const),
  ...data.facets,
})

type Asked =
  | { readonly act: ServerAct; readonly ids: readonly string[]; readonly names: readonly string[] }
  | { readonly act: 'silence'; readonly start: SilenceStart }

/** What is selected by name, as far as it is known: of rows that are shown, and of the first that match. */
function namesIn(rows: readonly ServerRow[], matching: MatchingServersView | null, selection: Selection): string[] {
  const known = new Map(rows.map(({ id, name }) => [id, name]))
  for (const [at, name] of (matching?.names ?? []).entries()) known.set(matching?.ids[at] ?? '', name)
  return selection.all.flatMap(id => known.get(id) ?? [])
}

const ViewChoice = () => (
  <fieldset class="segments" aria-label={t('view')}>
    {(['table', 'cards', 'map'] as const).map(view => (
      <button
        type="button"
        key={view}
        aria-pressed={(param('view') || 'table') === view}
        onClick={() => setParams({ view: view === 'table' ? null : view, as: null, offset: null })}
      >
        {t(`view_${view}`)}
      </button>
    ))}
  </fieldset>
)

function ServerList({ data, selection }: { readonly data: ServersView; readonly selection: Selection | undefined }) {
  const columns = useMemo(
    () => chosenColumns(param('cols'), data.metrics),
    [param('cols'), data.metrics.map(({ name }) => name).join()],
  )
  if (data.counts.all === 0) return <NothingYet text={t('none')} />
  if (data.matching === 0) return <NothingMatches />
  const onOffset = (offset: number): void => setParams({ offset: offset || null }, 'replace')
  if (param('view') === 'cards') return <ServerCards data={data} onOffset={onOffset} />
  const table = (
    <Table
      label={t('title')}
      columns={columns ?? serverColumns}
      rows={data.rows}
      keyOf={row => row.id}
      nameOf={row => row.name}
      total={data.matching}
      offset={data.offset}
      onOffset={onOffset}
      selection={selection}
    />
  )
  return columns === null ? table : <div class="wide-table">{table}</div>
}

const COMPARED_MAX = 8

type ActProps = { readonly ids: readonly string[]; readonly onAsk: (act: Asked['act']) => void }

const ActButtons = ({ ids, onAsk }: ActProps) => (
  <>
    <button
      type="button"
      disabled={ids.length > COMPARED_MAX}
      title={ids.length > COMPARED_MAX ? t('compare_max') : undefined}
      onClick={() => goTo(hrefTo('compare', {}, { servers: ids.join(',') }))}
    >
      {t('compare')}
    </button>
    {mayChange ? (
      <>
        <button type="button" onClick={() => onAsk('status')}>
          {t('act_status')}
        </button>
        <button type="button" onClick={() => onAsk('tags')}>
          {t('act_tags')}
        </button>
      </>
    ) : null}
    {maySilence ? (
      <button type="button" onClick={() => onAsk('silence')}>
        {t('act_silence')}
      </button>
    ) : null}
  </>
)

/** The list as a file: what matches, in the order and with the metrics that are shown. */
const exportHref = (): string => {
  const search = new URLSearchParams({ company: company.slug })
  for (const name of ['q', 'sort', 'cols']) if (param(name) !== '') search.set(name, param(name))
  return `/web/servers.csv?${search}`
}

type HeadProps = { readonly matching: number; readonly total: number; readonly onUndone: () => void }

const Head = ({ matching, total, onUndone }: HeadProps) => (
  <div class="page-head">
    <h1>{t('title')}</h1>
    <span class="muted">{shell('rows_of', { count: matching, total })}</span>
    <NoticeLine onUndone={onUndone} />
    <span class="grow" />
    {total === 0 ? null : (
      <a class="button" href={exportHref()} download title={t('export_about')}>
        {t('export')}
      </a>
    )}
    {may('monitoring.manage') ? (
      <a class="button" href={hrefTo('add_servers')}>
        {t('add')}
      </a>
    ) : null}
  </div>
)

type ToolsProps = {
  readonly data: Pick<ServersView, 'facets' | 'collector' | 'matching'>
  /** What the filter names shall be silenced; missing: one may not, or it cannot be here. */
  readonly onSilence?: (() => void) | undefined
}

const Tools = ({ data, onSilence }: ToolsProps) => (
  <>
    <div class="toolbar">
      <FilterField facets={facetsOf(data)} />
      {onSilence === undefined || param('q') === '' || data.matching === 0 ? null : (
        <button type="button" onClick={onSilence}>
          {shell('silence_matching')}
        </button>
      )}
      <ViewChoice />
      {param('view') === '' || param('view') === 'table' ? (
        <button
          type="button"
          onClick={() => {
            overlay.value = 'columns'
          }}
        >
          {t('columns')}
        </button>
      ) : null}
    </div>
    <CollectorBanner state={data.collector} />
  </>
)

export const map = latePart<MapProps>(() => lateParts.serverMap?.())

function MapOfServers() {
  const { data, fault, reload } = usePageView<HostMapView>('host-map')
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <Head matching={data.matching} total={data.total} onUndone={reload} />
      <Tools data={data} />
      <map.LatePart data={data} />
    </>
  )
}

export const ServersPage = () => (param('view') === 'map' ? <MapOfServers /> : <ListOfServers />)

function ListOfServers() {
  const { data, fault, reload } = usePageView<ServersView>('servers')
  const selection = useSelection()
  const [asked, setAsked] = useState<Asked | null>(null)
  const [matching, setMatching] = useState<MatchingServersView | null>(null)
  const [askFault, setAskFault] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  const clear = (): void => {
    selection.clear()
    setMatching(null)
  }
  const withMatching = (act: (found: MatchingServersView) => void): void => {
    setAskFault(null)
    askView<MatchingServersView>('matching-servers', { q: param('q') })
      .then(act)
      .catch((error: unknown) => setAskFault(faultFrom(error)))
  }
  const selectMatching = (): void =>
    withMatching(found => {
      setMatching(found)
      selection.setAll(found.ids, true)
    })
  const ask = (act: Asked['act']): void => {
    const ids = selection.all
    if (act === 'silence') setAsked({ act, start: { serverIds: ids } })
    else setAsked({ act, ids, names: namesIn(data.rows, matching, selection) })
  }
  const silenceMatching = (): void =>
    withMatching(({ ids, scope }) =>
      setAsked({ act: 'silence', start: scope === null ? { serverIds: ids } : { scope } }),
    )
  const close = (): void => setAsked(null)
  const done = (): void => {
    clear()
    reload()
  }
  const isTable = param('view') !== 'cards'
  return (
    <>
      <Head matching={data.matching} total={data.counts.all} onUndone={reload} />
      <Tools data={data} onSilence={maySilence ? silenceMatching : undefined} />
      {isTable && data.matching > 0 ? (
        <SelectionBar
          selected={selection.size}
          matching={data.matching}
          onSelectMatching={selectMatching}
          onClear={clear}
        >
          <ActButtons ids={selection.all} onAsk={ask} />
        </SelectionBar>
      ) : null}
      <ActFault fault={askFault} />
      <ServerList data={data} selection={isTable ? selection : undefined} />
      {asked?.act === 'silence' ? (
        <LateSilenceDialog start={asked.start} onClose={close} onDone={done} />
      ) : asked === null ? null : (
        <LateServerActDialog {...asked} rows={data.rows} onClose={close} onDone={done} />
      )}
    </>
  )
}
