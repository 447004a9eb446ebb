// Dialogs about a server: maintenance with or without an end, its record, its deletion. They take the file that all
// pages share (kit.ts) as a whole, so that it stays one.
import '../../view.ts'
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { ServerHead } from '../../../views/server/head.ts'
import { serverDialogWords } from '../../../words/server-dialogs.ts'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { instantOfField, shownZone } from '../../format.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { may, nowMs, textsOf } from '../../session.ts'
import type { ServerDialogProps } from './late-props.ts'

const t = textsOf(serverDialogWords)
const field = textsOf(serversWords)
const common = textsOf(shellWords)

type DialogProps = Omit<ServerDialogProps, 'shown'>

/** A form that sends one change and shows at its fields what the API refuses. */
function ChangeForm({
  fault,
  isBusy,
  submitText,
  isDangerous = false,
  canSubmit = true,
  onSubmit,
  onClose,
  children,
}: {
  readonly fault: ApiFault | null
  readonly isBusy: boolean
  readonly submitText: string
  readonly isDangerous?: boolean
  readonly canSubmit?: boolean
  readonly onSubmit: () => void
  readonly onClose: () => void
  readonly children: ComponentChildren
}) {
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        onSubmit()
      }}
    >
      {children}
      {fault === null ? null : (
        <p class="fault" role="alert">
          {common('not_done', { message: fault.message })}
        </p>
      )}
      <div class="dialog-acts">
        <button type="button" onClick={onClose}>
          {common('cancel')}
        </button>
        <button type="submit" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy || !canSubmit}>
          {submitText}
        </button>
      </div>
    </form>
  )
}

function useChange(onDone: () => void) {
  const fault = useSignal<ApiFault | null>(null)
  const isBusy = useSignal(false)
  const change = async (request: () => Promise<ApiResult>) => {
    isBusy.value = true
    const result = await request()
    isBusy.value = false
    fault.value = result.ok ? null : result.fault
    if (result.ok) onDone()
  }
  return { fault: fault.value, isBusy: isBusy.value, change, errorsOf: (field: string) => fault.value?.errors[field] }
}

const HOURS = [1, 4, 8, 24, 72, 168] as const
const HOUR_MS = 3_600_000
const lengthText = (hours: number): string =>
  hours < 24 ? t('for_hours', { n: hours }) : t('for_days', { n: hours / 24 })

const OWN = 'own'
const hourChoices = [
  ...HOURS.map(each => ({ value: String(each), text: lengthText(each) })),
  { value: OWN, text: t('until_own') },
]

const ENDLESS = 'endless'

type Window = { readonly length: string; readonly ends: string; readonly reason: string }

const endsAt = ({ length, ends }: Window): string | null => {
  const atMs = length === OWN ? instantOfField(ends) : nowMs() + Number(length) * HOUR_MS
  return Number.isNaN(atMs) ? null : new Date(atMs).toISOString()
}

const begin = (server: ServerHead, chosen: Window): Promise<ApiResult> =>
  chosen.length === ENDLESS
    ? send('PUT', `/servers/${server.id}/status`, { status: 'maintenance' })
    : send('POST', '/monitoring/silences', {
        ...{ scope: { server_ids: [server.id] }, ends_at: endsAt(chosen), reason: chosen.reason },
      })

/** With an end it is a silence of that reason; without one it is the status of the server, which can have no end. */
function MaintenanceDialog({ server, onClose, onDone }: DialogProps) {
  const choices = [
    ...(may('monitoring.manage') ? hourChoices : []),
    ...(may('servers.manage') && server.status === 'active' ? [{ value: ENDLESS, text: t('begin_maintenance') }] : []),
  ]
  const chosen = useSignal<Window>({ length: choices[0]?.value ?? ENDLESS, ends: '', reason: t('maintenance_reason') })
  const { fault, isBusy, change, errorsOf } = useChange(onDone)
  const choose = (changed: Partial<Window>): void => {
    chosen.value = { ...chosen.value, ...changed }
  }
  const { length, ends, reason } = chosen.value
  return (
    <Dialog title={t('maintenance_title', { name: server.name })} onClose={onClose}>
      <p>{t('maintenance_text')}</p>
      <ChangeForm
        fault={fault}
        isBusy={isBusy}
        submitText={common('save')}
        onSubmit={() => change(() => begin(server, chosen.value))}
        onClose={onClose}
      >
        <SelectField
          label={t('maintenance_for')}
          value={length}
          errors={length === OWN ? undefined : errorsOf('ends_at')}
          choices={choices}
          onChange={value => choose({ length: value })}
        />
        {length === OWN ? (
          <TextField
            label={t('ends')}
            type="datetime-local"
            hint={shownZone()}
            value={ends}
            isRequired
            errors={errorsOf('ends_at')}
            onInput={value => choose({ ends: value })}
          />
        ) : null}
        {length === ENDLESS ? null : (
          <TextField
            label={t('reason')}
            value={reason}
            isRequired
            maxLength={500}
            errors={errorsOf('reason')}
            onInput={value => choose({ reason: value })}
          />
        )}
      </ChangeForm>
    </Dialog>
  )
}

const textFields = [
  ['name', 'name'],
  ['hostname', 'hostname'],
  ['ip_address', 'address'],
  ['environment', 'environment'],
  ['role', 'role'],
  ['datacenter', 'datacenter'],
] as const

function EditDialog({ server, onClose, onDone }: DialogProps) {
  const before: Readonly<Record<string, string>> = {
    name: server.name,
    hostname: server.hostname ?? '',
    ip_address: server.ipAddress ?? '',
    environment: server.environment ?? '',
    role: server.role ?? '',
    datacenter: server.datacenter ?? '',
    tags: server.tags.join(', '),
    notes: server.notes ?? '',
  }
  const typed = useSignal(before)
  const { fault, isBusy, change, errorsOf } = useChange(onDone)
  const type = (field: string) => (value: string) => {
    typed.value = { ...typed.value, [field]: value }
  }
  const submit = () => {
    const changed = Object.entries(typed.value).filter(([field, value]) => value !== before[field])
    const body = Object.fromEntries(
      changed.map(([field, value]) => [
        field,
        field === 'tags'
          ? value
              .split(',')
              .map(tag => tag.trim())
              .filter(tag => tag !== '')
          : value === ''
            ? null
            : value,
      ]),
    )
    void change(() => send('PATCH', `/servers/${server.id}`, body))
  }
  return (
    <Dialog title={t('edit_title', { name: server.name })} onClose={onClose}>
      <ChangeForm fault={fault} isBusy={isBusy} submitText={common('save')} onSubmit={submit} onClose={onClose}>
        {textFields.map(([name, word]) => (
          <TextField
            key={name}
            label={field(word)}
            value={typed.value[name] ?? ''}
            isRequired={name === 'name'}
            maxLength={255}
            errors={errorsOf(name)}
            onInput={type(name)}
          />
        ))}
        <TextField
          label={field('tags')}
          hint={t('tags_hint')}
          value={typed.value.tags ?? ''}
          errors={Object.entries(fault?.errors ?? {}).flatMap(([field, texts]) =>
            field.startsWith('tags') ? texts : [],
          )}
          onInput={type('tags')}
        />
        <TextField
          label={t('notes')}
          lines={3}
          value={typed.value.notes ?? ''}
          errors={errorsOf('notes')}
          onInput={type('notes')}
        />
      </ChangeForm>
    </Dialog>
  )
}

/** A deletion asks for the name. */
function DeleteDialog({ server, onClose, onDone }: DialogProps) {
  const name = useSignal('')
  const { fault, isBusy, change } = useChange(onDone)
  return (
    <Dialog title={t('delete_title', { name: server.name })} onClose={onClose}>
      <p>{t('delete_text')}</p>
      <ChangeForm
        fault={fault}
        isBusy={isBusy}
        isDangerous
        canSubmit={name.value === server.name}
        submitText={t('delete_now')}
        onSubmit={() => change(() => send('DELETE', `/servers/${server.id}`))}
        onClose={onClose}
      >
        <TextField
          label={field('name')}
          value={name.value}
          autoComplete="off"
          onInput={value => {
            name.value = value
          }}
        />
      </ChangeForm>
    </Dialog>
  )
}

const dialogs = { maintenance: MaintenanceDialog, edit: EditDialog, delete: DeleteDialog }

export function ServerDialog({ shown, ...props }: ServerDialogProps) {
  const Shown = dialogs[shown]
  return <Shown {...props} />
}
