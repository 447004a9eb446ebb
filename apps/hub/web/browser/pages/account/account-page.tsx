// One's own account: what one was told and from when on, what one is called, where one is signed in, what one did.
import '../../view.ts'
import { useState } from 'preact/hooks'
import { accountWords } from '../../../words/account.ts'
import { type ApiFault, send } from '../../api.ts'
import { type ApiData, isAwaited, useApiData } from '../../api-data.ts'
import { NOTHING } from '../../format.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf, user } from '../../session.ts'
import { LEVELS_PATH, type Levels, OwnLevels } from './own-levels.tsx'
import { type Message, OwnMessages } from './own-messages.tsx'
import { type Profile, ProfileForm } from './profile-form.tsx'
import './account.css'

const t = textsOf(accountWords)

/** As the API has it. */
type Session = {
  readonly id: string
  readonly ip: string | null
  readonly user_agent: string | null
  readonly created_at: string
  readonly last_seen_at: string
  readonly current: boolean
}
type Activity = {
  readonly id: string
  readonly created_at: string
  readonly action: string
  readonly subject: { readonly type: string; readonly name: string | null } | null
}

const timeOf = (text: string) => <Time atMs={Date.parse(text)} form="when" />
const browserOf = ({ user_agent }: Session): string => user_agent ?? NOTHING

const sessionColumns = (onEnd: (session: Session) => void): readonly Column<Session>[] => [
  { key: 'browser', title: t('browser'), isName: true, cell: row => <span class="text">{browserOf(row)}</span> },
  { key: 'address', title: t('address'), cell: row => <span class="text">{row.ip ?? NOTHING}</span> },
  { key: 'begun', title: t('begun'), from: 'medium', cell: row => timeOf(row.created_at) },
  { key: 'seen', title: t('seen'), cell: row => timeOf(row.last_seen_at) },
  {
    key: 'acts',
    title: t('acts'),
    cell: row =>
      row.current ? (
        <StateMark state="ok" text={t('this_session')} />
      ) : (
        <span class="row-acts">
          <button
            type="button"
            class="danger"
            aria-label={t('end_of', { name: browserOf(row) })}
            onClick={() => onEnd(row)}
          >
            {t('end')}
          </button>
        </span>
      ),
  },
]

const activityColumns: readonly Column<Activity>[] = [
  { key: 'action', title: t('action'), isName: true, cell: row => <span class="text">{row.action}</span> },
  {
    key: 'subject',
    title: t('subject'),
    cell: row => <span class="text">{row.subject?.name ?? row.subject?.type ?? NOTHING}</span>,
  },
  { key: 'at', title: t('at'), cell: row => timeOf(row.created_at) },
]

function Sessions({ sessions: { data, fault, reload } }: { readonly sessions: ApiData<readonly Session[]> }) {
  const [refused, setRefused] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? null : <Fault fault={fault} onRetry={() => void reload()} />
  const end = async ({ id }: Session): Promise<void> => {
    const result = await send('DELETE', `/me/sessions/${id}`)
    setRefused(result.ok ? null : result.fault)
    await reload()
  }
  return (
    <>
      <ActFault fault={refused} />
      <Table
        isTall
        label={t('sessions')}
        columns={sessionColumns(session => void end(session))}
        rows={data}
        keyOf={row => row.id}
        nameOf={browserOf}
      />
    </>
  )
}

function Activities({ activity: { data, fault, reload } }: { readonly activity: ApiData<readonly Activity[]> }) {
  if (data === null) return fault === null ? null : <Fault fault={fault} onRetry={() => void reload()} />
  if (data.length === 0) return <p class="muted">{t('no_activity')}</p>
  return (
    <Table
      label={t('activity')}
      columns={activityColumns}
      rows={data}
      keyOf={row => row.id}
      nameOf={row => row.action}
    />
  )
}

export function AccountPage() {
  const [page, setPage] = useState(1)
  const messages = useApiData<readonly Message[]>(`/notifications?page=${page}`)
  const unread = useApiData<{ readonly unread: number }>('/notifications/unread-count')
  const levels = useApiData<Levels>(LEVELS_PATH)
  const profile = useApiData<Profile>('/me')
  const sessions = useApiData<readonly Session[]>('/me/sessions')
  const activity = useApiData<readonly Activity[]>('/me/activity')
  if ([messages, unread, levels, profile, sessions, activity].some(isAwaited)) return <Skeleton />
  return (
    <>
      <div class="page-head">
        <h1>{t('account')}</h1>
        <span class="muted text">{user.email}</span>
      </div>
      <section class="panel">
        <h2>{t('own_messages')}</h2>
        <OwnMessages messages={messages} unread={unread} page={page} onPage={setPage} />
      </section>
      <section class="panel">
        <h2>{t('own_levels')}</h2>
        <OwnLevels stored={levels} />
      </section>
      <section class="panel">
        <h2>{t('profile')}</h2>
        {profile.data === null ? null : <ProfileForm profile={profile.data} />}
        {profile.fault === null ? null : <Fault fault={profile.fault} onRetry={() => void profile.reload()} />}
      </section>
      <section class="panel">
        <h2>{t('sessions')}</h2>
        <Sessions sessions={sessions} />
      </section>
      <section class="panel">
        <h2>{t('activity')}</h2>
        <Activities activity={activity} />
      </section>
    </>
  )
}
