// What was sent, the newest first, and what became of it.
import type { DeliveryRow } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { setParams } from '../../address/router.ts'
import { count, NOTHING } from '../../format.ts'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(administrationWords)

const marks: Readonly<Record<DeliveryRow['state'], MarkedState>> = {
  waiting: 'info',
  delivered: 'ok',
  failed: 'critical',
}

const receiver: Column<DeliveryRow> = {
  key: 'receiver',
  title: t('receiver'),
  cell: row => (
    <span class="text">
      {row.target} <span class="muted">{t(row.channel)}</span>
    </span>
  ),
}

const facts: readonly Column<DeliveryRow>[] = [
  {
    key: 'state',
    title: t('state'),
    cell: row => <StateMark state={marks[row.state]} text={t(`delivery_${row.state}`)} />,
  },
  {
    key: 'answer',
    title: t('answer'),
    cell: row => (
      <span class="text">{[row.responseCode, row.error].filter(each => each !== null).join(' ') || NOTHING}</span>
    ),
  },
  { key: 'tries', title: t('tries'), isNumber: true, from: 'medium', cell: row => count(row.tries) },
  { key: 'created', title: t('created'), cell: row => <Time atMs={row.createdAtMs} form="when" /> },
]

const event: Column<DeliveryRow> = {
  key: 'event',
  title: t('event'),
  isName: true,
  cell: row => <span class="text">{row.type}</span>,
}

const actsOf = (onSend: (row: DeliveryRow) => void, isSendable: Props['isSendable']): Column<DeliveryRow> => ({
  key: 'acts',
  title: t('acts'),
  cell: row =>
    isSendable(row) ? (
      <span class="row-acts">
        <button type="button" aria-label={t('send_again_of', { name: row.type })} onClick={() => onSend(row)}>
          {t('send_again')}
        </button>
      </span>
    ) : null,
})

type Props = {
  readonly rows: readonly DeliveryRow[]
  readonly total: number
  readonly offset: number
  /** Only those of one state are asked for. */
  readonly isNarrowed?: boolean
  /** They went to several receivers, which are named. */
  readonly hasReceivers?: boolean
  readonly isSendable: (row: DeliveryRow) => boolean
  /** Null: the viewer may not send any again. */
  readonly onSend: ((row: DeliveryRow) => void) | null
}

export function DeliveriesTable(props: Props) {
  const { rows, total, offset, isNarrowed = false, hasReceivers = false, isSendable, onSend } = props
  if (total === 0) return <p class="muted">{t(isNarrowed ? 'no_such_deliveries' : 'no_deliveries')}</p>
  const columns = [event, ...(hasReceivers ? [receiver] : []), ...facts]
  return (
    <Table
      isTall
      label={t('deliveries')}
      columns={onSend === null ? columns : [...columns, actsOf(onSend, isSendable)]}
      rows={rows}
      keyOf={row => row.id}
      nameOf={row => row.type}
      total={total}
      offset={offset}
      onOffset={from => setParams({ offset: from || null }, 'replace')}
    />
  )
}
