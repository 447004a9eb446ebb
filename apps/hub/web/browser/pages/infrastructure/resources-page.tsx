// The resources of a kind: found, ordered, created, and those in the trash.
import '../../resources-kit.ts'
import { useState } from 'preact/hooks'
import type { ResourceColumn, ResourceRow, ResourcesView } from '../../../views/resource-pages.ts'
import { infrastructureWords } from '../../../words/infrastructure.ts'
import { goTo, hrefTo, param, pathParam, setParams } from '../../address/router.ts'
import { count } from '../../format.ts'
import { pageTitle } from '../../frame/page-title.ts'
import { Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { Meter } from '../../parts/meter.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { language, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import './infrastructure.css'
import { fieldTitle, NameOf, Value } from '../../parts/resource-value.tsx'
import { ResourceForm } from './resource-form.tsx'

const t = textsOf(infrastructureWords)

const hrefOf = (kind: string, { id }: Pick<ResourceRow, 'id'>): string => hrefTo('resource', { kind, resource: id })

const ownColumn = (
  { name, form, to, sort }: ResourceColumn,
  at: number,
  { names }: ResourcesView,
): Column<ResourceRow> => ({
  key: name,
  title: fieldTitle(name),
  ...(sort ? { sort: name } : {}),
  ...(at > 1 ? { from: at > 2 ? ('wide' as const) : ('medium' as const), isOnCards: true } : {}),
  isNumber: form === 'number' || form === 'percent',
  cell: row =>
    form === 'percent' ? (
      <Meter value={typeof row.values[at] === 'number' ? row.values[at] : null} />
    ) : (
      <Value value={row.values[at]} field={name} names={to === null ? [] : names} />
    ),
})

const columnsOf = (data: ResourcesView): readonly Column<ResourceRow>[] => [
  { key: 'health', title: t('health'), cell: row => <StateMark state={row.health} /> },
  {
    key: 'name',
    title: t('name'),
    isName: true,
    sort: 'name',
    cell: row => (
      <a class="text" href={hrefOf(data.kind, row)}>
        {row.name}
      </a>
    ),
  },
  ...data.columns.map((column, at) => ownColumn(column, at, data)),
  {
    key: 'status',
    title: t('status'),
    cell: row => (row.isDrifted ? `${row.status}, ${t('drifted')}` : row.status),
  },
  {
    key: 'updated_at',
    title: t('updated'),
    sort: 'updated_at',
    from: 'wide',
    cell: row => <Time atMs={row.updatedAtMs} form="when" />,
  },
]

const TrashChoice = ({ isTrash }: { readonly isTrash: boolean }) => (
  <>
    <button type="button" aria-pressed={!isTrash} onClick={() => setParams({ trash: null, offset: null })}>
      {t('current')}
    </button>
    <button type="button" aria-pressed={isTrash} onClick={() => setParams({ trash: '1', offset: null })}>
      {t('trash')}
    </button>
  </>
)

function List({ data }: { readonly data: ResourcesView }) {
  if (data.matching === 0 && param('q') !== '') return <NothingMatches />
  if (data.matching === 0)
    return <p class="muted">{data.isTrash ? t('none_in_trash') : t('none_of', { kinds: data.title.many[language] })}</p>
  return (
    <Table
      isTall
      label={data.title.many[language]}
      columns={columnsOf(data)}
      rows={data.rows}
      keyOf={row => row.id}
      nameOf={row => row.name}
      hrefOf={row => hrefOf(data.kind, row)}
      total={data.matching}
      offset={data.offset}
      onOffset={offset => setParams({ offset: offset || null }, 'replace')}
    />
  )
}

export function ResourcesPage() {
  const { data, fault, reload } = usePageView<ResourcesView>('resources')
  const [isAdding, setAdding] = useState(false)
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  const { title, parent, createPath, statuses } = data
  pageTitle.value = title.many[language]
  const addText = t('add', { kind: title.one[language] })
  return (
    <>
      <div class="page-head">
        <h1 class="kind-name">{title.many[language]}</h1>
        {parent === null ? null : <NameOf named={parent} />}
        <span class="muted">{count(data.matching)}</span>
        <span class="grow" />
        {createPath === null ? null : (
          <button type="button" class="primary" onClick={() => setAdding(true)}>
            {addText}
          </button>
        )}
      </div>
      <div class="toolbar">
        <FilterField
          facets={{
            status: statuses.map(each => [each, -1] as const),
            health: (['ok', 'warning', 'critical', 'unknown'] as const).map(each => [each, -1] as const),
            origin: (['manual', 'iac', 'import', 'discovered'] as const).map(each => [each, -1] as const),
          }}
        />
        {data.mayManage ? <TrashChoice isTrash={data.isTrash} /> : null}
      </div>
      <List data={data} />
      {isAdding && createPath !== null ? (
        <ResourceForm
          title={addText}
          fields={data.form}
          path={createPath}
          existing={null}
          names={[]}
          onClose={() => setAdding(false)}
          onDone={id => goTo(hrefTo('resource', { kind: pathParam('kind'), resource: id }))}
        />
      ) : null}
    </>
  )
}
