// One webhook: what was sent to it and what it answered, and what can be done with it.
import '../../administration-kit.ts'
import { useState } from 'preact/hooks'
import type { WebhookView } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { DeliveriesTable } from './deliveries-table.tsx'
import { ShownSecret, WebhookDialog } from './webhook-dialog.tsx'
import { WebhookState } from './webhook-state.tsx'
import './administration.css'

const t = textsOf(administrationWords)

type Act = 'edit' | 'delete' | 'rotate'
type ActProps = {
  readonly act: Act
  readonly data: WebhookView
  readonly onClose: () => void
  readonly onDone: () => void
}

function ActDialog({ act, data: { webhook, events }, onClose, onDone }: ActProps) {
  const [secret, setSecret] = useState<string | null>(null)
  const { id, name } = webhook
  if (secret !== null) return <ShownSecret name={name} secret={secret} onClose={onClose} />
  if (act === 'edit') return <WebhookDialog webhook={webhook} events={events} onClose={onClose} onDone={onDone} />
  const rotate = async (): Promise<ApiFault | null> => {
    const result = await send<{ secret: string }>('POST', `/webhooks/${id}/rotate-secret`)
    if (!result.ok) return result.fault
    setSecret(result.body.secret)
    return null
  }
  const remove = async (): Promise<ApiFault | null> => {
    const result = await send('DELETE', `/webhooks/${id}`)
    if (!result.ok) return result.fault
    goTo(hrefTo('webhooks'))
    return null
  }
  const isDeletion = act === 'delete'
  return (
    <ConfirmDialog
      title={isDeletion ? t('delete_of', { name }) : `${t('rotate')}: ${name}`}
      typed={isDeletion ? { text: name, label: t('type_name', { name }) } : null}
      act={t(act)}
      onConfirm={isDeletion ? remove : rotate}
      onClose={onClose}
      onDone={onDone}
    >
      <p>{t(isDeletion ? 'delete_webhook_text' : 'rotate_text')}</p>
    </ConfirmDialog>
  )
}

type ToolsProps = {
  readonly webhook: WebhookView['webhook']
  readonly onAct: (act: Act) => void
  readonly onSend: (path: string) => void
}

const Tools = ({ webhook, onAct, onSend }: ToolsProps) => (
  <div class="toolbar">
    <button type="button" onClick={() => onSend('/test')}>
      {t('ping')}
    </button>
    <button type="button" onClick={() => onSend(webhook.isEnabled ? '/disable' : '/enable')}>
      {t(webhook.isEnabled ? 'disable' : 'enable')}
    </button>
    <button type="button" onClick={() => onAct('edit')}>
      {t('edit')}
    </button>
    <button type="button" onClick={() => onAct('rotate')}>
      {t('rotate')}
    </button>
    <button type="button" class="danger" onClick={() => onAct('delete')}>
      {t('delete')}
    </button>
  </div>
)

const Facts = ({ webhook }: Pick<WebhookView, 'webhook'>) => (
  <dl class="facts">
    <dt>{t('state')}</dt>
    <dd>
      <WebhookState {...webhook} />
    </dd>
    <dt>{t('url')}</dt>
    <dd class="text">{webhook.url}</dd>
    <dt>{t('events')}</dt>
    <dd class="text">{webhook.events.join(', ') || t('all_events')}</dd>
    <dt>{t('min_severity')}</dt>
    <dd>{t(`severity_${webhook.minSeverity}`)}</dd>
  </dl>
)

export function WebhookPage() {
  const { data, fault, reload } = usePageView<WebhookView>('webhook')
  const [act, setAct] = useState<Act | null>(null)
  const [outcome, setOutcome] = useState<ApiResult | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const { webhook } = data
  const post = async (path: string): Promise<void> => {
    setOutcome(await send('POST', `/webhooks/${webhook.id}${path}`))
    reload()
  }
  return (
    <>
      <div class="page-head">
        <h1>{webhook.name}</h1>
      </div>
      {may('webhooks.manage') ? <Tools webhook={webhook} onAct={setAct} onSend={path => void post(path)} /> : null}
      <ActFault fault={outcome === null || outcome.ok ? null : outcome.fault} />
      <Facts webhook={webhook} />
      <section class="panel below-table">
        <h2>{t('deliveries')}</h2>
        <DeliveriesTable
          rows={data.deliveries}
          total={data.total}
          offset={data.offset}
          isSendable={() => true}
          onSend={may('webhooks.manage') ? row => void post(`/deliveries/${row.id}/redeliver`) : null}
        />
      </section>
      {act === null ? null : <ActDialog act={act} data={data} onClose={() => setAct(null)} onDone={reload} />}
    </>
  )
}
