// A new check: its type says what the target is. Made, it is shown on its servers: the first results are its test.
import { useState } from 'preact/hooks'
import { checksWords } from '../../../words/checks.ts'
import { shellWords } from '../../../words/shell.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(checksWords)
const shell = textsOf(shellWords)

const TYPES = ['http', 'tcp', 'cert', 'service', 'port'] as const
type Type = (typeof TYPES)[number]

function targetOf(type: Type, text: string): Readonly<Record<string, string | number>> {
  switch (type) {
    case 'http':
      return { url: text }
    case 'tcp':
    case 'cert':
      return { target: text }
    case 'service':
      return { name: text }
    case 'port':
      return { port: Number(text), proto: 'tcp' }
  }
}

const scopeOf = (tags: string) => {
  const listed = tags.split(',').flatMap(tag => tag.trim() || [])
  return listed.length === 0 ? { all: true } : { tags: listed }
}

export function NewCheck({ onClose }: { readonly onClose: () => void }) {
  const [draft, setDraft] = useState({ name: '', type: 'http' as Type, target: '', tags: '' })
  const [fault, setFault] = useState<ApiFault | null>(null)
  const change = (next: Partial<typeof draft>) => setDraft(before => ({ ...before, ...next }))
  const { name, type, target, tags } = draft
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const body = { name, type, target: targetOf(type, target.trim()), scope: scopeOf(tags) }
    const result = await send<{ data: { id: string } }>('POST', '/monitoring/checks', body)
    setFault(result.ok ? null : result.fault)
    if (!result.ok) return
    onClose()
    goTo(hrefTo('check', { check: result.body.data.id }))
  }
  const errorsOf = (prefix: string): readonly string[] =>
    Object.entries(fault?.errors ?? {}).flatMap(([field, texts]) => (field.startsWith(prefix) ? texts : []))
  return (
    <Dialog title={t('new')} onClose={onClose}>
      <form onSubmit={event => void onSubmit(event)}>
        <TextField
          label={t('name')}
          isRequired
          maxLength={255}
          value={name}
          onInput={value => change({ name: value })}
          errors={errorsOf('name')}
        />
        <SelectField
          label={t('type')}
          value={type}
          choices={TYPES.map(value => ({ value, text: t(`type_${value}`) }))}
          onChange={value => change({ type: TYPES.find(each => each === value) ?? 'http' })}
        />
        <TextField
          label={t('target')}
          hint={t(`target_${type}`)}
          isRequired
          value={target}
          onInput={value => change({ target: value })}
          errors={errorsOf('target')}
        />
        <TextField
          label={t('scope')}
          hint={t('scope_hint')}
          value={tags}
          onInput={value => change({ tags: value })}
          errors={errorsOf('scope')}
        />
        <ActFault fault={fault} />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {shell('cancel')}
          </button>
          <button type="submit" class="primary">
            {t('create')}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
