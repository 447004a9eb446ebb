// Whom the company tells by mail besides its people; and what was sent, to whom, with what outcome.
import '../../administration-kit.ts'
import { useRef, useState } from 'preact/hooks'
import type { ChannelRow, NotificationsView } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { notificationsWords } from '../../../words/notifications.ts'
import { param, setParams } from '../../address/router.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { lateParts } from '../../late-parts.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { SelectField } from '../../parts/field.tsx'
import { lateDialog } from '../../parts/late-dialog.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { DeliveriesTable } from './deliveries-table.tsx'
import './administration.css'

const t = textsOf({ ...administrationWords, ...notificationsWords })

const ADDRESS_MARKS = { unconfirmed: 'warning', confirmed: 'ok', stopped: 'critical' } as const

const LateChannelDialog = lateDialog(() => lateParts.channel?.())

/** Switched off it is told nothing, whatever its address has said. */
const ChannelState = ({ isEnabled, addressState }: ChannelRow) =>
  isEnabled ? (
    <StateMark state={ADDRESS_MARKS[addressState]} text={t(`address_${addressState}`)} />
  ) : (
    <StateMark state="decommissioned" text={t('disabled')} />
  )

type Act = { readonly kind: 'add' | 'edit' | 'delete'; readonly channel: ChannelRow | null }
type OnAct = (act: Act) => void

const columns: readonly Column<ChannelRow>[] = [
  { key: 'name', title: t('name'), isName: true, cell: row => <span class="text">{row.name}</span> },
  { key: 'state', title: t('state'), cell: row => <ChannelState {...row} /> },
  { key: 'email', title: t('email'), cell: row => <span class="text">{row.address}</span> },
  {
    key: 'severity',
    title: t('min_severity'),
    from: 'medium',
    cell: row => (
      <span class="text">
        {t(`severity_${row.minSeverity}`)} {row.scope.all ? null : <span class="muted">{t('narrowed')}</span>}
      </span>
    ),
  },
]

/** `onTest`: null where no mail is sent. */
const actsOf = (onAct: OnAct, onTest: ((channel: ChannelRow) => void) | null): Column<ChannelRow> => ({
  key: 'acts',
  title: t('acts'),
  cell: channel => (
    <span class="row-acts">
      {onTest === null ? null : (
        <button type="button" aria-label={t('test_of', { name: channel.name })} onClick={() => onTest(channel)}>
          {t('test')}
        </button>
      )}
      <button
        type="button"
        aria-label={t('edit_of', { name: channel.name })}
        onClick={() => onAct({ kind: 'edit', channel })}
      >
        {t('edit')}
      </button>
      <button
        type="button"
        class="danger"
        aria-label={t('delete_of', { name: channel.name })}
        onClick={() => onAct({ kind: 'delete', channel })}
      >
        {t('delete')}
      </button>
    </span>
  ),
})

type ActProps = Act & { readonly onClose: () => void; readonly onDone: () => void }

function ActDialog({ kind, channel, onClose, onDone }: ActProps) {
  if (kind !== 'delete' || channel === null)
    return <LateChannelDialog channel={channel} onClose={onClose} onDone={onDone} />
  const remove = async (): Promise<ApiFault | null> => {
    const result = await send('DELETE', `/notifications/channels/${channel.id}`)
    return result.ok ? null : result.fault
  }
  return (
    <ConfirmDialog
      title={t('delete_of', { name: channel.name })}
      typed={null}
      act={t('delete')}
      onConfirm={remove}
      onClose={onClose}
      onDone={() => {
        onDone()
        onClose()
      }}
    >
      <p>{t('delete_channel_text')}</p>
    </ConfirmDialog>
  )
}

type ChannelsProps = {
  readonly data: NotificationsView
  readonly onAct: OnAct
  /** Once a test was asked for. */
  readonly onDone: () => void
}

function Channels({ data: { channels, isMailSent }, onAct, onDone }: ChannelsProps) {
  const [tested, setTested] = useState<{ readonly email: string; readonly fault: ApiFault | null } | null>(null)
  // Known at once, before it is drawn: a second press sends nothing.
  const isSending = useRef(false)
  const test = async ({ id, address }: ChannelRow): Promise<void> => {
    if (isSending.current) return
    isSending.current = true
    const result = await send('POST', `/notifications/channels/${id}/test`)
    isSending.current = false
    setTested({ email: address, fault: result.ok ? null : result.fault })
    onDone()
  }
  const acts = actsOf(onAct, isMailSent ? channel => void test(channel) : null)
  return (
    <section class="panel">
      <h2>{t('channels')}</h2>
      {isMailSent ? null : <p role="note">{t('no_mail')}</p>}
      <ActFault fault={tested?.fault ?? null} />
      <p role="status">
        {tested === null || tested.fault !== null ? '' : t('test_on_its_way', { email: tested.email })}
      </p>
      {channels.length === 0 ? (
        <p class="muted">{t('no_channels')}</p>
      ) : (
        <Table
          label={t('channels')}
          columns={may('notifications.manage') ? [...columns, acts] : columns}
          rows={channels}
          keyOf={row => row.id}
          nameOf={row => row.name}
        />
      )}
    </section>
  )
}

const STATES = ['failed', 'waiting', 'delivered'] as const

const StateChoice = () => (
  <SelectField
    label={t('state')}
    value={param('state')}
    choices={[
      { value: '', text: t('all_events') },
      ...STATES.map(each => ({ value: each, text: t(`delivery_${each}`) })),
    ]}
    onChange={state => setParams({ state: state || null, offset: null }, 'push')}
  />
)

export function NotificationsPage() {
  const { data, fault, reload } = usePageView<NotificationsView>('notifications')
  const [act, setAct] = useState<Act | null>(null)
  const [outcome, setOutcome] = useState<ApiResult | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const post = async (path: string): Promise<void> => {
    setOutcome(await send('POST', `/notifications${path}`))
    reload()
  }
  const mayManage = may('notifications.manage')
  return (
    <>
      <div class="page-head">
        <h1>{t('notifications')}</h1>
        <span class="grow" />
        {mayManage ? (
          <button type="button" class="primary" onClick={() => setAct({ kind: 'add', channel: null })}>
            {t('add_channel')}
          </button>
        ) : null}
      </div>
      <Channels data={data} onAct={setAct} onDone={reload} />
      <section class="panel">
        <h2>{t('deliveries')}</h2>
        <StateChoice />
        <ActFault fault={outcome === null || outcome.ok ? null : outcome.fault} />
        <DeliveriesTable
          hasReceivers
          isNarrowed={param('state') !== ''}
          rows={data.deliveries}
          total={data.total}
          offset={data.offset}
          isSendable={row => row.state === 'failed'}
          onSend={mayManage ? row => void post(`/deliveries/${row.id}/retry`) : null}
        />
      </section>
      {act === null ? null : <ActDialog {...act} onClose={() => setAct(null)} onDone={reload} />}
    </>
  )
}
