// What the viewer was told last.
import { useState } from 'preact/hooks'
import { administrationWords } from '../../../words/administration.ts'
import { notificationsWords } from '../../../words/notifications.ts'
import { type ApiFault, send } from '../../api.ts'
import type { ApiData } from '../../api-data.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf({ ...administrationWords, ...notificationsWords })

/** As the API has it. */
export type Message = {
  readonly id: string
  readonly title: string
  readonly body: string
  readonly link: string | null
  readonly read_at: string | null
  readonly created_at: string
}

const Title = ({ title, link, read_at }: Message) => {
  const text = read_at === null ? <strong>{title}</strong> : title
  return link === null ? (
    <span class="text">{text}</span>
  ) : (
    <a class="text" href={link}>
      {text}
    </a>
  )
}

const columnsOf = (onRead: (message: Message) => void): readonly Column<Message>[] => [
  { key: 'title', title: t('message'), isName: true, cell: row => <Title {...row} /> },
  { key: 'body', title: t('message_body'), from: 'medium', cell: row => <span class="text">{row.body}</span> },
  { key: 'created', title: t('created'), cell: row => <Time atMs={Date.parse(row.created_at)} form="when" /> },
  {
    key: 'acts',
    title: t('acts'),
    cell: row =>
      row.read_at === null ? (
        <span class="row-acts">
          <button type="button" aria-label={t('read_of', { name: row.title })} onClick={() => onRead(row)}>
            {t('mark_read')}
          </button>
        </span>
      ) : null,
  },
]

type Props = { readonly messages: ApiData<readonly Message[]> }

export function OwnMessages({ messages: { data, fault, reload } }: Props) {
  const [refused, setRefused] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? null : <Fault fault={fault} onRetry={() => void reload()} />
  const post = async (path: string): Promise<void> => {
    const result = await send('POST', `/notifications${path}`)
    setRefused(result.ok ? null : result.fault)
    await reload()
  }
  if (data.length === 0) return <p class="muted">{t('no_messages')}</p>
  return (
    <>
      <ActFault fault={refused ?? fault} />
      <Table
        label={t('own_messages')}
        columns={columnsOf(({ id }) => void post(`/${id}/read`))}
        rows={data}
        keyOf={row => row.id}
        nameOf={row => row.title}
      />
      {data.some(each => each.read_at === null) ? (
        <p>
          <button type="button" onClick={() => void post('/read-all')}>
            {t('mark_all_read')}
          </button>
        </p>
      ) : null}
    </>
  )
}
