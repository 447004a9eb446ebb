// Roles: what each may, and how many hold it. The built-in ones are shown and cannot be changed.
import '../../administration-kit.ts'
import { useState } from 'preact/hooks'
import type { RoleRow, RolesView } from '../../../views/administration-pages.ts'
import { administrationWords } from '../../../words/administration.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { count } from '../../format.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { CheckList } from './check-list.tsx'
import { NameField } from './name-field.tsx'
import { EVERYTHING, groupsOf } from './permission-groups.ts'
import './administration.css'

const t = textsOf(administrationWords)
const shell = textsOf(shellWords)

/** Null: a new one. */
type Act = { readonly kind: 'edit' | 'delete' | 'show'; readonly role: RoleRow | null }

const isChangeable = ({ isBuiltIn }: RoleRow): boolean => !isBuiltIn && may('identity.manage')

const Acts = ({ role, onAct }: { readonly role: RoleRow; readonly onAct: (act: Act) => void }) => (
  <span class="row-acts">
    {isChangeable(role) ? (
      (['edit', 'delete'] as const).map(kind => (
        <button
          type="button"
          key={kind}
          aria-label={t(`${kind}_of`, { name: role.name })}
          onClick={() => onAct({ kind, role })}
        >
          {t(kind)}
        </button>
      ))
    ) : (
      <button
        type="button"
        aria-label={t('view_of', { name: role.name })}
        onClick={() => onAct({ kind: 'show', role })}
      >
        {t('show')}
      </button>
    )}
  </span>
)

const columnsOf = (onAct: (act: Act) => void): readonly Column<RoleRow>[] => [
  {
    key: 'name',
    title: t('name'),
    isName: true,
    cell: row => (
      <span class="text">
        {row.name} {row.isBuiltIn ? <span class="muted">{t('built_in')}</span> : null}
      </span>
    ),
  },
  {
    key: 'permissions',
    title: t('permissions'),
    cell: ({ permissions }) =>
      permissions.includes(EVERYTHING) ? t('all_permissions') : t('permissions_of', { count: permissions.length }),
  },
  { key: 'holders', title: t('holders'), isNumber: true, cell: row => count(row.holders) },
  { key: 'acts', title: t('acts'), cell: row => <Acts role={row} onAct={onAct} /> },
]

type DialogProps = {
  readonly role: RoleRow | null
  readonly keys: readonly string[]
  readonly isShown: boolean
  readonly onClose: () => void
  readonly onDone: () => void
}

function RoleDialog({ role, keys, isShown, onClose, onDone }: DialogProps) {
  const [name, setName] = useState(role?.name ?? '')
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(role?.permissions))
  const save = async (): Promise<ApiFault | null> => {
    const body = { name, permissions: [...chosen] }
    const result = role === null ? await send('POST', '/roles', body) : await send('PATCH', `/roles/${role.id}`, body)
    return result.ok ? null : result.fault
  }
  const lists = groupsOf(keys).map(([group, own]) => (
    <CheckList
      key={group}
      label={group === EVERYTHING ? t('all_permissions') : group}
      choices={own.map(key => ({ value: key, text: key === EVERYTHING ? t('all_permissions') : key }))}
      chosen={chosen}
      onChange={setChosen}
      isDisabled={isShown}
    />
  ))
  const title = role === null ? t('add_role') : t(isShown ? 'view_of' : 'edit_of', { name: role.name })
  if (isShown)
    return (
      <Dialog title={title} onClose={onClose} isWide>
        {lists}
      </Dialog>
    )
  return (
    <Dialog title={title} onClose={onClose} isWide>
      <DialogForm
        act={shell('save')}
        onSend={save}
        onCancel={onClose}
        onDone={() => {
          onDone()
          onClose()
        }}
      >
        {errorsOf => (
          <>
            <NameField value={name} onInput={setName} errorsOf={errorsOf} />
            {lists}
            {errorsOf('permissions').map(error => (
              <p class="fault" key={error}>
                {error}
              </p>
            ))}
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}

type ActProps = {
  readonly act: Act
  readonly keys: readonly string[]
  readonly onClose: () => void
  readonly onDone: () => void
}

function ActDialog({ act: { kind, role }, keys, onClose, onDone }: ActProps) {
  if (kind !== 'delete' || role === null)
    return <RoleDialog role={role} keys={keys} isShown={kind === 'show'} onClose={onClose} onDone={onDone} />
  const remove = async (): Promise<ApiFault | null> => {
    const result = await send('DELETE', `/roles/${role.id}`)
    return result.ok ? null : result.fault
  }
  return (
    <ConfirmDialog
      title={t('delete_of', { name: role.name })}
      typed={{ text: role.name, label: t('type_name', { name: role.name }) }}
      act={t('delete')}
      onConfirm={remove}
      onClose={onClose}
      onDone={() => {
        onDone()
        onClose()
      }}
    >
      <p>{t('delete_role_text')}</p>
    </ConfirmDialog>
  )
}

export function RolesPage() {
  const { data, fault, reload } = usePageView<RolesView>('roles')
  const [act, setAct] = useState<Act | null>(null)
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <>
      <div class="page-head">
        <h1>{t('roles')}</h1>
        <span class="muted">{count(data.rows.length)}</span>
        <span class="grow" />
        {may('identity.manage') ? (
          <button type="button" class="primary" onClick={() => setAct({ kind: 'edit', role: null })}>
            {t('add_role')}
          </button>
        ) : null}
      </div>
      <Table
        label={t('roles')}
        columns={columnsOf(setAct)}
        rows={data.rows}
        keyOf={row => row.id}
        nameOf={row => row.name}
      />
      {act === null ? null : <ActDialog act={act} keys={data.keys} onClose={() => setAct(null)} onDone={reload} />}
    </>
  )
}
