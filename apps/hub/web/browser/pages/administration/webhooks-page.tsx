// Where the company's events are sent to.
import '../../administration-kit.ts'
import { useState } from 'preact/hooks'
import type { WebhookRow, WebhooksView } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { hrefTo } from '../../address/router.ts'
import { count } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { WebhookDialog } from './webhook-dialog.tsx'
import { WebhookState } from './webhook-state.tsx'
import './administration.css'

const t = textsOf(administrationWords)

const columns: readonly Column<WebhookRow>[] = [
  {
    key: 'name',
    title: t('name'),
    isName: true,
    cell: row => (
      <a class="text" href={hrefTo('webhook', { webhook: row.id })}>
        {row.name}
      </a>
    ),
  },
  { key: 'state', title: t('state'), cell: row => <WebhookState {...row} /> },
  { key: 'url', title: t('url'), cell: row => <span class="text">{row.url}</span> },
  {
    key: 'events',
    title: t('events'),
    from: 'medium',
    cell: row => (
      <span class="text">
        {row.events.join(', ') || t('all_events')} {row.isNarrowed ? <span class="muted">{t('narrowed')}</span> : null}
      </span>
    ),
  },
  { key: 'severity', title: t('min_severity'), from: 'medium', cell: row => t(`severity_${row.minSeverity}`) },
]

export function WebhooksPage() {
  const { data, fault, reload } = usePageView<WebhooksView>('webhooks')
  const [isAdding, setAdding] = useState(false)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{t('webhooks')}</h1>
        <span class="muted">{count(data.rows.length)}</span>
        <span class="grow" />
        {may('webhooks.manage') ? (
          <button type="button" class="primary" onClick={() => setAdding(true)}>
            {t('add_webhook')}
          </button>
        ) : null}
      </div>
      {data.rows.length === 0 ? (
        <p class="muted">{t('no_webhooks')}</p>
      ) : (
        <Table
          label={t('webhooks')}
          columns={columns}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={row => row.name}
          hrefOf={row => hrefTo('webhook', { webhook: row.id })}
        />
      )}
      {isAdding ? (
        <WebhookDialog webhook={null} events={data.events} onClose={() => setAdding(false)} onDone={reload} />
      ) : null}
    </>
  )
}
