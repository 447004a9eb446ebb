// What the hub is, how it stands, and whether it is under maintenance.
import { useState } from 'preact/hooks'
import { administrationWords } from '../../../words/administration.ts'
import { systemWords } from '../../../words/system.ts'
import { type ApiFault, send } from '../../api.ts'
import type { ApiData } from '../../api-data.ts'
import { count, valueText } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { Fault } from '../../parts/fault.tsx'
import { TextField } from '../../parts/field.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { language, may, textsOf, user } from '../../session.ts'

const t = textsOf({ ...administrationWords, ...systemWords })

const MINUTE_MS = 60_000

/** As the API has it: what is of the whole hub only to super administrators. */
export type HubInfo = {
  readonly version: string
  readonly started_at: string | null
  readonly database: { readonly version: string; readonly bytes: number; readonly connections: number } | null
  readonly disk: { readonly bytes: number; readonly free_bytes: number } | null
  readonly clock: { readonly ahead_ms: number } | null
}
export type Maintenance = {
  readonly mode: 'off' | 'read_only'
  readonly message: { readonly en: string | null; readonly vi: string | null } | null
  readonly until: string | null
  readonly updated_by: { readonly name: string } | null
}

const bytes = (value: number): string => valueText('bytes', value)

function Versions({ info: { version, started_at, database, disk, clock } }: { readonly info: HubInfo }) {
  return (
    <dl class="facts">
      <dt>{t('version')}</dt>
      <dd>{version}</dd>
      {started_at === null ? null : (
        <>
          <dt>{t('started')}</dt>
          <dd>
            <Time atMs={Date.parse(started_at)} form="when" />
          </dd>
        </>
      )}
      {database === null ? null : (
        <>
          <dt>{t('database')}</dt>
          <dd>
            PostgreSQL {database.version}, {bytes(database.bytes)},{' '}
            {t('connections_of', { count: database.connections })}
          </dd>
        </>
      )}
      {disk === null ? null : (
        <>
          <dt>{t('disk')}</dt>
          <dd>{t('free_of', { free: bytes(disk.free_bytes), all: bytes(disk.bytes) })}</dd>
        </>
      )}
      {clock === null ? null : (
        <>
          <dt>{t('clock')}</dt>
          <dd>{t('ahead', { ms: count(clock.ahead_ms) })}</dd>
        </>
      )}
    </dl>
  )
}

/** When so many minutes are over, by the hub's clock; what is no time goes as it is, and the API says so. */
function endAfter(minutes: string): string {
  const end = new Date(nowMs() + Number(minutes) * MINUTE_MS)
  return Number.isNaN(end.getTime()) ? minutes : end.toISOString()
}

type DialogProps = { readonly onClose: () => void; readonly onDone: () => void }

function MaintenanceDialog({ onClose, onDone }: DialogProps) {
  const [draft, setDraft] = useState({ en: '', vi: '', minutes: '60' })
  const change = (changed: Partial<typeof draft>): void => setDraft(before => ({ ...before, ...changed }))
  const begin = async (): Promise<ApiFault | null> => {
    const { en, vi, minutes } = draft
    const until = minutes.trim() === '' ? null : endAfter(minutes)
    const result = await send('PUT', '/system/maintenance', {
      mode: 'read_only',
      message: { en: en || null, vi: vi || null },
      until,
    })
    return result.ok ? null : result.fault
  }
  return (
    <Dialog title={t('maintenance_begin')} onClose={onClose}>
      <DialogForm
        act={t('maintenance_begin')}
        isDanger
        onSend={begin}
        onDone={() => {
          onDone()
          onClose()
        }}
        onCancel={onClose}
      >
        {errorsOf => (
          <>
            <p>{t('maintenance_text')}</p>
            <TextField
              label={t('maintenance_minutes')}
              hint={t('maintenance_minutes_hint')}
              type="number"
              value={draft.minutes}
              onInput={minutes => change({ minutes })}
              errors={errorsOf('until')}
            />
            <TextField
              label={t('message_en')}
              maxLength={1000}
              value={draft.en}
              onInput={en => change({ en })}
              errors={errorsOf('message.en')}
            />
            <TextField
              label={t('message_vi')}
              maxLength={1000}
              value={draft.vi}
              onInput={vi => change({ vi })}
              errors={errorsOf('message.vi')}
            />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}

type StateProps = { readonly data: Maintenance; readonly onDone: () => void }

function MaintenanceState({ data: { mode, message, until, updated_by }, onDone }: StateProps) {
  const [isBeginning, setBeginning] = useState(false)
  const [fault, setFault] = useState<ApiFault | null>(null)
  const end = async (): Promise<void> => {
    const result = await send('PUT', '/system/maintenance', { mode: 'off' })
    setFault(result.ok ? null : result.fault)
    onDone()
  }
  const isOff = mode === 'off'
  const mayChange = user.superAdmin && may('system.settings.manage')
  return (
    <>
      <p>
        <StateMark state={isOff ? 'ok' : 'maintenance'} text={t(isOff ? 'maintenance_off' : 'maintenance_on')} />{' '}
        {isOff ? null : (
          <span class="muted">
            {message?.[language] ?? message?.en ?? message?.vi} {updated_by?.name}{' '}
            {until === null ? null : <Time atMs={Date.parse(until)} form="until" />}
          </span>
        )}
      </p>
      {fault === null ? null : <Fault fault={fault} onRetry={() => void end()} />}
      {mayChange ? (
        <p>
          <button type="button" onClick={() => (isOff ? setBeginning(true) : void end())}>
            {t(isOff ? 'maintenance_begin' : 'maintenance_end')}
          </button>
        </p>
      ) : null}
      {isBeginning ? <MaintenanceDialog onClose={() => setBeginning(false)} onDone={onDone} /> : null}
    </>
  )
}

type HubStateProps = { readonly info: ApiData<HubInfo>; readonly maintenance: ApiData<Maintenance> }

export function HubState({ info, maintenance }: HubStateProps) {
  const fault = info.fault ?? maintenance.fault
  const reload = (): void => {
    void info.reload()
    void maintenance.reload()
  }
  return (
    <section class="panel">
      <h2>{t('hub')}</h2>
      {fault === null ? null : <Fault fault={fault} onRetry={reload} />}
      {info.data === null ? null : <Versions info={info.data} />}
      {maintenance.data === null ? null : <MaintenanceState data={maintenance.data} onDone={reload} />}
    </section>
  )
}
