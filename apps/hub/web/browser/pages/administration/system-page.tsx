// What keeps the site going: collectors, and the work of the hub that waits or has failed. Who may see what is decided
// by the API: a company sees its own jobs, a super administrator all of them and the collectors.
import '../../administration-kit.ts'
import { useEffect, useRef, useState } from 'preact/hooks'
import { administrationWords } from '../../../words/administration.ts'
import { systemWords } from '../../../words/system.ts'
import { type ApiFault, send } from '../../api.ts'
import { type ApiData, isAwaited, useApiData } from '../../api-data.ts'
import { clockSeconds, count, NOTHING } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf, user } from '../../session.ts'
import { type HubInfo, HubState, type Maintenance } from './hub-state.tsx'
import './administration.css'

const t = textsOf({ ...administrationWords, ...systemWords })

/** As the API has it. */
type Collector = {
  readonly id: string
  readonly name: string
  readonly status: 'online' | 'offline' | 'never'
  readonly version: string | null
  readonly last_heartbeat_at: string | null
  readonly agent_count: number | null
  readonly ingest_rps: number | null
  readonly outbox_depth: number | null
}
type Queue = {
  readonly name: string
  readonly waiting: number
  readonly running: number
  readonly failed: number
  readonly due_since: string | null
  readonly paused_until: string | null
}
type Job = {
  readonly id: string
  readonly queue: string
  readonly tries: number
  readonly last_error: string | null
  readonly finished_at: string | null
}

/** Often enough to see what becomes of a job, seldom enough for the limit of the API. */
const REFRESH_MS = 20_000

const numberOf = (value: number | null): string => (value === null ? NOTHING : count(value))
const timeOf = (text: string | null, form: 'when' | 'until') =>
  text === null ? NOTHING : <Time atMs={Date.parse(text)} form={form} />

const COLLECTOR_MARKS: Readonly<Record<Collector['status'], MarkedState>> = {
  online: 'ok',
  offline: 'critical',
  never: 'unknown',
}

const collectorColumns: readonly Column<Collector>[] = [
  { key: 'name', title: t('name'), isName: true, cell: row => <span class="text">{row.name}</span> },
  {
    key: 'state',
    title: t('state'),
    cell: row => <StateMark state={COLLECTOR_MARKS[row.status]} text={t(`collector_${row.status}`)} />,
  },
  { key: 'heard', title: t('heard'), cell: row => timeOf(row.last_heartbeat_at, 'when') },
  { key: 'agents', title: t('agents'), isNumber: true, cell: row => numberOf(row.agent_count) },
  { key: 'rate', title: t('batches'), isNumber: true, from: 'medium', cell: row => numberOf(row.ingest_rps) },
  { key: 'outbox', title: t('outbox'), isNumber: true, from: 'medium', cell: row => numberOf(row.outbox_depth) },
  {
    key: 'version',
    title: t('version'),
    from: 'medium',
    cell: row => <span class="text">{row.version ?? NOTHING}</span>,
  },
]

const queueColumns: readonly Column<Queue>[] = [
  { key: 'name', title: t('name'), isName: true, cell: row => <span class="text">{row.name}</span> },
  {
    key: 'state',
    title: t('state'),
    cell: row =>
      row.paused_until === null ? (
        <StateMark state="ok" text={t('queue_open')} />
      ) : (
        <>
          <StateMark state="maintenance" text={t('queue_paused')} /> {timeOf(row.paused_until, 'until')}
        </>
      ),
  },
  { key: 'waiting', title: t('delivery_waiting'), isNumber: true, cell: row => count(row.waiting) },
  { key: 'due', title: t('due_since'), from: 'medium', cell: row => timeOf(row.due_since, 'when') },
  { key: 'running', title: t('running'), isNumber: true, from: 'medium', cell: row => count(row.running) },
  { key: 'failed', title: t('delivery_failed'), isNumber: true, cell: row => count(row.failed) },
]

const jobColumns: readonly Column<Job>[] = [
  { key: 'queue', title: t('queue'), isName: true, cell: row => <span class="text">{row.queue}</span> },
  { key: 'error', title: t('error'), cell: row => <span class="text">{row.last_error ?? NOTHING}</span> },
  { key: 'tries', title: t('tries'), isNumber: true, from: 'medium', cell: row => count(row.tries) },
  { key: 'finished', title: t('given_up'), cell: row => timeOf(row.finished_at, 'when') },
]

const jobActs = (onRetry: (job: Job) => void, onForget: (job: Job) => void): Column<Job> => ({
  key: 'acts',
  title: t('acts'),
  cell: job => (
    <span class="row-acts">
      <button type="button" aria-label={t('retry_of', { name: job.queue })} onClick={() => onRetry(job)}>
        {t('retry')}
      </button>
      <button
        type="button"
        class="danger"
        aria-label={t('forget_of', { name: job.queue })}
        onClick={() => onForget(job)}
      >
        {t('forget')}
      </button>
    </span>
  ),
})

type ListProps<Row> = {
  readonly title: string
  readonly nothing: string
  /** What a row says may be long. */
  readonly isTall?: boolean
  readonly read: ApiData<readonly Row[]>
  readonly columns: readonly Column<Row>[]
  readonly keyOf: (row: Row) => string
  readonly nameOf: (row: Row) => string
}

function List<Row>({ title, nothing, isTall = false, read, columns, keyOf, nameOf }: ListProps<Row>) {
  const { data, fault, reload } = read
  if (data === null) return fault === null ? null : <Fault fault={fault} onRetry={() => void reload()} />
  return (
    <>
      <ActFault fault={fault} />
      {data.length === 0 ? (
        <p class="muted">{nothing}</p>
      ) : (
        <Table isTall={isTall} label={title} columns={columns} rows={data} keyOf={keyOf} nameOf={nameOf} />
      )}
    </>
  )
}

function Collectors({ read }: { readonly read: ApiData<readonly Collector[]> }) {
  return (
    <section class="panel">
      <h2>{t('collectors')}</h2>
      <List
        title={t('collectors')}
        nothing={t('no_collectors')}
        read={read}
        columns={collectorColumns}
        keyOf={row => row.id}
        nameOf={row => row.name}
      />
    </section>
  )
}

type JobsProps = { readonly read: ApiData<readonly Job[]>; readonly onDone: () => void }

/** The newest that failed for good; after each act those that are left are read. */
function FailedJobs({ read, onDone }: JobsProps) {
  const [refused, setRefused] = useState<ApiFault | null>(null)
  const [forgotten, setForgotten] = useState<Job | null>(null)
  const retry = async (path: string): Promise<void> => {
    const result = await send('POST', `/queues/failed/${path}`)
    setRefused(result.ok ? null : result.fault)
    onDone()
  }
  const forget = async ({ id }: Job): Promise<ApiFault | null> => {
    const result = await send('DELETE', `/queues/failed/${id}`)
    return result.ok ? null : result.fault
  }
  const mayManage = may('queues.manage')
  return (
    <section class="panel">
      <h2>{t('failed_jobs')}</h2>
      <ActFault fault={refused} />
      <List
        title={t('failed_jobs')}
        nothing={t('no_failed_jobs')}
        isTall
        read={read}
        columns={mayManage ? [...jobColumns, jobActs(({ id }) => void retry(`${id}/retry`), setForgotten)] : jobColumns}
        keyOf={row => row.id}
        nameOf={row => row.queue}
      />
      {mayManage && (read.data?.length ?? 0) > 0 ? (
        <p>
          <button type="button" onClick={() => void retry('retry-all')}>
            {t('retry_all')}
          </button>
        </p>
      ) : null}
      {forgotten === null ? null : (
        <ConfirmDialog
          title={t('forget_of', { name: forgotten.queue })}
          typed={null}
          act={t('forget')}
          onConfirm={() => forget(forgotten)}
          onClose={() => setForgotten(null)}
          onDone={() => {
            setForgotten(null)
            onDone()
          }}
        >
          <p>{t('forget_text')}</p>
        </ConfirmDialog>
      )}
    </section>
  )
}

export function SystemPage() {
  const seesHub = may('system.settings.view')
  const seesQueues = may('queues.view')
  const info = useApiData<HubInfo>(seesHub ? '/system/info' : null)
  const maintenance = useApiData<Maintenance>(seesHub ? '/system/maintenance' : null)
  const collectors = useApiData<readonly Collector[]>(user.superAdmin ? '/monitoring/collectors' : null)
  const queues = useApiData<readonly Queue[]>(seesQueues ? '/queues' : null)
  const failed = useApiData<readonly Job[]>(seesQueues ? '/queues/failed' : null)
  const asked = [
    ...(seesHub ? [info, maintenance] : []),
    ...(user.superAdmin ? [collectors] : []),
    ...(seesQueues ? [queues, failed] : []),
  ]
  const [readAtMs, setReadAtMs] = useState(nowMs())
  const reload = (): void => {
    void Promise.all(asked.map(each => each.reload())).then(() => setReadAtMs(nowMs()))
  }
  const latest = useRef(reload)
  latest.current = reload
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') latest.current()
    }, REFRESH_MS)
    return () => clearInterval(timer)
  }, [])
  if (asked.some(isAwaited)) return <Skeleton />
  return (
    <>
      <div class="page-head">
        <h1>{t('system')}</h1>
        <span class="grow" />
        <span class="muted">{t('as_of', { time: clockSeconds(readAtMs) })}</span>
        <button type="button" onClick={reload}>
          {t('refresh')}
        </button>
      </div>
      {seesHub ? <HubState info={info} maintenance={maintenance} /> : null}
      {user.superAdmin ? <Collectors read={collectors} /> : null}
      {seesQueues ? (
        <>
          <FailedJobs read={failed} onDone={reload} />
          <section class="panel">
            <h2>{t('queues')}</h2>
            <List
              title={t('queues')}
              nothing={t('no_queues')}
              read={queues}
              columns={queueColumns}
              keyOf={row => row.name}
              nameOf={row => row.name}
            />
          </section>
        </>
      ) : null}
    </>
  )
}
