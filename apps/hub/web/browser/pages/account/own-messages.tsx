// What the viewer was told last.
import { useState } from 'preact/hooks'
import { accountWords } from '../../../words/account.ts'
import { type ApiFault, send } from '../../api.ts'
import type { ApiData } from '../../api-data.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(accountWords)

/** As the API has it. */
export type Message = {
  readonly id: string
  readonly title: string
  readonly body: string
  readonly link: string | null
  readonly read_at: string | null
  readonly created_at: string
}

/** Who follows it has read it: that is told without waiting for it, since the page is left. */
const tellRead = (id: string): void => void send('POST', `/notifications/${id}/read`)

const Title = ({ id, title, link, read_at }: Message) => {
  const text = read_at === null ? <strong>{title}</strong> : title
  return link === null ? (
    <span class="text">{text}</span>
  ) : (
    <a class="text" href={link} onClick={() => tellRead(id)}>
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

type Props = {
  readonly messages: ApiData<readonly Message[]>
  readonly unread: ApiData<{ readonly unread: number }>
  /** From 1; each has the next fifteen before those of the page before it. */
  readonly page: number
  readonly onPage: (page: number) => void
}

/** As many as the API answers at once: with fewer there are none before. */
const PAGE_ROWS = 15

export function OwnMessages({ messages: { data, fault, reload }, unread, page, onPage }: Props) {
  const [refused, setRefused] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? null : <Fault fault={fault} onRetry={() => void reload()} />
  const post = async (path: string): Promise<void> => {
    const result = await send('POST', `/notifications${path}`)
    setRefused(result.ok ? null : result.fault)
    await Promise.all([reload(), unread.reload()])
  }
  const count = unread.data?.unread ?? 0
  return (
    <>
      <ActFault fault={refused ?? fault} />
      {data.length === 0 ? (
        <p class="muted">{t(page > 1 ? 'no_more_messages' : 'no_messages')}</p>
      ) : (
        <Table
          label={t('own_messages')}
          columns={columnsOf(({ id }) => void post(`/${id}/read`))}
          rows={data}
          keyOf={row => row.id}
          nameOf={row => row.title}
        />
      )}
      <div class="toolbar">
        {page > 1 ? (
          <button type="button" onClick={() => onPage(page - 1)}>
            {t('later')}
          </button>
        ) : null}
        {data.length === PAGE_ROWS ? (
          <button type="button" onClick={() => onPage(page + 1)}>
            {t('earlier')}
          </button>
        ) : null}
        {count > 0 ? (
          <>
            <button type="button" onClick={() => void post('/read-all')}>
              {t('mark_all_read')}
            </button>
            <span class="muted">{t('unread', { count })}</span>
          </>
        ) : null}
      </div>
    </>
  )
}
