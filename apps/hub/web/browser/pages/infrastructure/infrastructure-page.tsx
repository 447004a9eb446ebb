// What the company has beside its servers, by kind, and what is wrong with any of it.
import '../../resources-kit.ts'
import type { InfrastructureView, KindCounts, ResourceProblem } from '../../../views/resource-pages.ts'
import { infrastructureWords } from '../../../words/infrastructure.ts'
import { hrefTo } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { language, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import './infrastructure.css'

const t = textsOf(infrastructureWords)

/** Parts are seen within what they are part of. */
const KindName = ({ row }: { readonly row: KindCounts }) =>
  row.isPart ? (
    <>
      <span class="kind-name">{row.title[language]}</span> <span class="muted">{t('within')}</span>
    </>
  ) : (
    <a class="kind-name" href={hrefTo('resources', { kind: row.kind })}>
      {row.title[language]}
    </a>
  )

const numberOf =
  (key: 'total' | 'ok' | 'warning' | 'critical' | 'unknown') =>
  (row: KindCounts): string =>
    row[key] === 0 ? NOTHING : count(row[key])

const columns: readonly Column<KindCounts>[] = [
  { key: 'kind', title: t('kind'), isName: true, cell: row => <KindName row={row} /> },
  { key: 'total', title: t('total'), isNumber: true, cell: numberOf('total') },
  {
    key: 'critical',
    title: t('problem'),
    cell: row =>
      row.critical > 0 ? (
        <StateMark state="critical" text={count(row.critical)} />
      ) : row.warning > 0 ? (
        <StateMark state="warning" text={count(row.warning)} />
      ) : (
        NOTHING
      ),
  },
]

const problemColumns: readonly Column<ResourceProblem>[] = [
  { key: 'severity', title: t('health'), cell: row => <StateMark state={row.severity} /> },
  {
    key: 'name',
    title: t('name'),
    isName: true,
    cell: row => (
      <a class="text" href={hrefTo('resource', { kind: row.kind, resource: row.id })}>
        {row.name}
      </a>
    ),
  },
  { key: 'problem', title: t('problem'), cell: row => <span class="text">{row.message[language]}</span> },
  { key: 'since', title: t('since'), cell: row => <Time atMs={row.sinceMs} form="when" /> },
]

export function InfrastructurePage() {
  const { data, fault, reload } = usePageView<InfrastructureView>('infrastructure')
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
      </div>
      <section class="panel">
        <h2>{t('problems')}</h2>
        {data.problems.length === 0 ? (
          <p class="muted">{t('no_problems')}</p>
        ) : (
          <Table
            isTall
            label={t('problems')}
            columns={problemColumns}
            rows={data.problems}
            keyOf={row => `${row.id} ${row.message.en}`}
            nameOf={row => row.name}
          />
        )}
      </section>
      <section class="panel">
        <h2>{t('kinds')}</h2>
        <Table
          label={t('kinds')}
          columns={columns}
          rows={data.kinds}
          keyOf={row => row.kind}
          nameOf={row => row.title[language]}
        />
      </section>
    </>
  )
}
