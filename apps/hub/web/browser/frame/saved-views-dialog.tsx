// The saved views of the page that is shown: opened, kept under a name, shared, changed, deleted. It takes all that
// pages share, as every part that comes late.
import '../view.ts'
import { useEffect, useState } from 'preact/hooks'
import { SHARE_KEY, VIEW_NAME_CHARS_MAX, viewQuery } from '../../address/saved-view.ts'
import type { PageName } from '../../address/site-map.ts'
import type { SavedView } from '../../saved-views/saved-views.ts'
import { savedViewWords } from '../../words/saved-views.ts'
import { shellWords } from '../../words/shell.ts'
import { currentPage, currentSearch } from '../address/router.ts'
import type { ApiFault } from '../api.ts'
import { Dialog } from '../parts/dialog.tsx'
import { DialogForm } from '../parts/dialog-form.tsx'
import { ActFault } from '../parts/fault.tsx'
import { TextField } from '../parts/field.tsx'
import { Skeleton } from '../parts/skeleton.tsx'
import { hrefOfView, keepView, loadSavedViews, removeView, savedViews } from '../saved-views.ts'
import { company, may, textsOf } from '../session.ts'
import { overlay } from './overlay.ts'
import './saved-views.css'

const t = textsOf(savedViewWords)
const shell = textsOf(shellWords)

const shownQuery = (): string => viewQuery(currentSearch())

/** A random id (version 4). What the browser has for it is missing on pages over plain HTTP. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** `tag:web · sort=-cpu`: the filter as it is typed, and the other parameters. */
function aboutText(query: string): string {
  const { q = '', ...others } = Object.fromEntries(new URLSearchParams(query))
  const about = [q, ...Object.entries(others).map(([name, value]) => `${name}=${value}`)].filter(text => text !== '')
  return about.length === 0 ? t('everything') : about.join(' · ')
}

type FormProps = {
  readonly page: PageName
  readonly changed: SavedView | null
  readonly onDone: (said: string) => void
}

/** Keeps what is shown under a name, or changes a view that was kept. */
function ViewForm({ page, changed, onDone }: FormProps) {
  const [name, setName] = useState(changed?.name ?? '')
  const [isShared, setShared] = useState(changed?.shared ?? false)
  const [takesShown, setTakesShown] = useState(false)
  const shown = shownQuery()
  const save = async (): Promise<ApiFault | null> => {
    const query = changed === null || takesShown ? shown : changed.query
    const id = changed?.id ?? newId()
    const result = await keepView({ id, page, name: name.trim(), query, shared: isShared })
    if (!result.ok) return result.fault
    setName('')
    onDone(t('saved', { name: result.body.name }))
    return null
  }
  return (
    <DialogForm
      class="view-form"
      act={shell('save')}
      onSend={save}
      onCancel={changed === null ? null : () => onDone('')}
    >
      {errorsOf => (
        <>
          <h3>{changed === null ? t('save_title') : t('change_title', { name: changed.name })}</h3>
          {changed === null ? <p class="muted text">{aboutText(shown)}</p> : null}
          <TextField
            label={t('name')}
            value={name}
            onInput={setName}
            maxLength={VIEW_NAME_CHARS_MAX}
            autoComplete="off"
            isRequired
            errors={errorsOf('name')}
          />
          {changed === null || changed.query === shown ? null : (
            <label class="inline">
              <input
                type="checkbox"
                checked={takesShown}
                onChange={event => setTakesShown(event.currentTarget.checked)}
              />
              <span class="text">{t('take_shown', { about: aboutText(shown) })}</span>
            </label>
          )}
          {may(SHARE_KEY) || isShared ? (
            <label class="inline">
              <input type="checkbox" checked={isShared} onChange={event => setShared(event.currentTarget.checked)} />
              {t('share', { company: company.name })}
            </label>
          ) : null}
        </>
      )}
    </DialogForm>
  )
}

const close = (): void => {
  overlay.value = null
}

type RowProps = { readonly view: SavedView; readonly onChange: () => void; readonly onDelete: () => void }

function ViewRow({ view, onChange, onDelete }: RowProps) {
  const [isAsked, setAsked] = useState(false)
  const { name, query, own, shared, by } = view
  const notes = [
    aboutText(query),
    own ? (shared ? t('shared') : '') : t('shared_by', { name: by }),
    query === shownQuery() ? t('is_shown') : '',
  ]
  return (
    <li>
      <div class="view-name">
        <a class="text" href={hrefOfView(view)} onClick={close}>
          {name}
        </a>
        <span class="muted text">{notes.filter(note => note !== '').join(' · ')}</span>
      </div>
      {own ? (
        <button type="button" aria-label={t('change_of', { name })} onClick={onChange}>
          {t('change')}
        </button>
      ) : null}
      {own || may(SHARE_KEY) ? (
        <button
          type="button"
          class={isAsked ? 'danger' : undefined}
          aria-label={isAsked ? undefined : t('delete_of', { name })}
          // One's own can be had back; what somebody else made cannot, and all others lose it.
          onClick={() => (own || isAsked ? onDelete() : setAsked(true))}
        >
          {t(isAsked ? 'delete_for_all' : 'delete')}
        </button>
      ) : null}
    </li>
  )
}

export function SavedViewsDialog() {
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [changed, setChanged] = useState<SavedView | null>(null)
  const [deleted, setDeleted] = useState<SavedView | null>(null)
  const [said, setSaid] = useState('')
  useEffect(() => {
    void loadSavedViews().then(setFault)
  }, [])
  const page = currentPage.value?.name
  if (page === undefined) return null
  const views = savedViews.value?.filter(view => view.page === page) ?? null
  const remove = async (view: SavedView): Promise<void> => {
    const refused = await removeView(view.id)
    setFault(refused)
    if (refused !== null) return
    setChanged(null)
    setDeleted(view.own ? view : null)
    setSaid(t('deleted', { name: view.name }))
  }
  const bringBack = async (view: SavedView): Promise<void> => {
    const result = await keepView(view)
    if (!result.ok) return setFault(result.fault)
    setDeleted(null)
    setSaid(t('saved', { name: view.name }))
  }
  return (
    <Dialog title={t('title')} onClose={close} isWide>
      {views === null ? (
        fault === null && <Skeleton lines={3} />
      ) : views.length === 0 ? (
        <p class="muted">{t('none')}</p>
      ) : (
        <ul class="view-list" aria-label={t('of_page')}>
          {views.map(view => (
            <ViewRow key={view.id} view={view} onChange={() => setChanged(view)} onDelete={() => void remove(view)} />
          ))}
        </ul>
      )}
      <p role="status" class="view-said">
        {said}{' '}
        {deleted === null ? null : (
          <button type="button" onClick={() => void bringBack(deleted)}>
            {t('bring_back')}
          </button>
        )}
      </p>
      <ActFault fault={fault} />
      <ViewForm
        key={changed?.id ?? ''}
        page={page}
        changed={changed}
        onDone={text => {
          setChanged(null)
          setDeleted(null)
          setSaid(text)
        }}
      />
    </Dialog>
  )
}
