// Runs of manifests, newest first, and the way to a new one.
import '../../resources-kit.ts'
import { useState } from 'preact/hooks'
import type { IacRunsView, RunSummary } from '../../../views/manifest-pages.ts'
import { manifestsWords } from '../../../words/manifests.ts'
import { goTo, hrefTo, param, setParams } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { RunStateMark } from './run-state.tsx'
import { SubmitManifests } from './submit-manifests.tsx'

const t = textsOf(manifestsWords)

const STATES = ['planned', 'invalid', 'applied', 'partially-applied'] as const

const columns: readonly Column<RunSummary>[] = [
  { key: 'state', title: t('state'), cell: row => <RunStateMark run={row} /> },
  {
    key: 'title',
    title: t('title'),
    isName: true,
    cell: row => (
      <a class="text" href={hrefTo('iac_run', { run: row.id })}>
        {row.title}
      </a>
    ),
  },
  {
    key: 'kinds',
    title: t('kinds'),
    from: 'medium',
    cell: row => (
      <span class="text">
        {Object.entries(row.kinds)
          .map(([kind, number]) => `${kind} ${count(number)}`)
          .join(', ') || NOTHING}
      </span>
    ),
  },
  { key: 'by', title: t('by'), cell: row => <span class="text">{row.submitter ?? NOTHING}</span> },
  { key: 'submitted', title: t('submitted'), cell: row => <Time atMs={row.createdAtMs} form="when" /> },
]

function List({ data }: { readonly data: IacRunsView }) {
  if (data.matching === 0) return param('q') === '' ? <p class="muted">{t('none')}</p> : <NothingMatches />
  return (
    <Table
      isTall
      label={t('runs')}
      columns={columns}
      rows={data.rows}
      keyOf={row => row.id}
      nameOf={row => row.title}
      hrefOf={row => hrefTo('iac_run', { run: row.id })}
      total={data.matching}
      offset={data.offset}
      onOffset={offset => setParams({ offset: offset || null }, 'replace')}
    />
  )
}

export function RunsPage() {
  const { data, fault, reload } = usePageView<IacRunsView>('iac-runs')
  const [isSubmitting, setSubmitting] = useState(false)
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{t('runs')}</h1>
        <span class="muted">{count(data.matching)}</span>
        <span class="grow" />
        {may('iac.submit') ? (
          <button type="button" class="primary" onClick={() => setSubmitting(true)}>
            {t('submit')}
          </button>
        ) : null}
      </div>
      <div class="toolbar">
        <FilterField facets={{ status: STATES.map(state => [state, -1] as const) }} />
      </div>
      <List data={data} />
      {isSubmitting ? (
        <SubmitManifests onClose={() => setSubmitting(false)} onDone={run => goTo(hrefTo('iac_run', { run }))} />
      ) : null}
    </>
  )
}
