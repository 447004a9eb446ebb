// Dialogs about a server: maintenance with or without an end, its record, its deletion. They take the file that all
// pages share (kit.ts) as a whole, so that it stays one.
import '../../view.ts'
import { useSignal } from '@preact/signals'
import type { ServerHead } from '../../../views/server/head.ts'
import { serverDialogWords } from '../../../words/server-dialogs.ts'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { instantOfField, shownZone } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { may, textsOf } from '../../session.ts'
import type { ServerDialogProps } from './late-props.ts'

const t = textsOf(serverDialogWords)
const field = textsOf(serversWords)
const common = textsOf(shellWords)

type DialogProps = Omit<ServerDialogProps, 'shown'>

/** A change as a form sends it: null when it was done. */
const changed = async (request: Promise<ApiResult>): Promise<ApiFault | null> => {
  const result = await request
  return result.ok ? null : result.fault
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
  const choose = (changed: Partial<Window>): void => {
    chosen.value = { ...chosen.value, ...changed }
  }
  const { length, ends, reason } = chosen.value
  return (
    <Dialog title={t('maintenance_title', { name: server.name })} onClose={onClose}>
      <p>{t('maintenance_text')}</p>
      <DialogForm
        act={common('save')}
        onSend={() => changed(begin(server, chosen.value))}
        onDone={onDone}
        onCancel={onClose}
      >
        {errorsOf => (
          <>
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
          </>
        )}
      </DialogForm>
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
  const type = (field: string) => (value: string) => {
    typed.value = { ...typed.value, [field]: value }
  }
  const save = () => {
    const edited = Object.entries(typed.value).filter(([field, value]) => value !== before[field])
    const body = Object.fromEntries(
      edited.map(([field, value]) => [
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
    return changed(send('PATCH', `/servers/${server.id}`, body))
  }
  return (
    <Dialog title={t('edit_title', { name: server.name })} onClose={onClose}>
      <DialogForm act={common('save')} onSend={save} onDone={onDone} onCancel={onClose}>
        {errorsOf => (
          <>
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
              errors={errorsOf('tags')}
              onInput={type('tags')}
            />
            <TextField
              label={t('notes')}
              lines={3}
              value={typed.value.notes ?? ''}
              errors={errorsOf('notes')}
              onInput={type('notes')}
            />
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}

/** A deletion asks for the name. */
const DeleteDialog = ({ server, onClose, onDone }: DialogProps) => (
  <ConfirmDialog
    title={t('delete_title', { name: server.name })}
    typed={{ text: server.name, label: field('name') }}
    act={t('delete_now')}
    onConfirm={() => changed(send('DELETE', `/servers/${server.id}`))}
    onDone={onDone}
    onClose={onClose}
  >
    <p>{t('delete_text')}</p>
  </ConfirmDialog>
)

const dialogs = { maintenance: MaintenanceDialog, edit: EditDialog, delete: DeleteDialog }

export function ServerDialog({ shown, ...props }: ServerDialogProps) {
  const Shown = dialogs[shown]
  return <Shown {...props} />
}
