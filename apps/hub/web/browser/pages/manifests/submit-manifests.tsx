// Manifests of files, or one that is typed, sent to be planned.
import { useState } from 'preact/hooks'
import { manifestsWords } from '../../../words/manifests.ts'
import { type ApiFault, send } from '../../api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { Field, TextField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(manifestsWords)

type Manifest = { readonly path: string; readonly contents: string }

/** Files by their path in the folder that was chosen, where they have one. */
const readFiles = (files: FileList): Promise<Manifest[]> =>
  Promise.all(
    [...files].map(async file => ({ path: file.webkitRelativePath || file.name, contents: await file.text() })),
  )

type Props = { readonly onClose: () => void; readonly onDone: (runId: string) => void }

export function SubmitManifests({ onClose, onDone }: Props) {
  const [files, setFiles] = useState<readonly Manifest[]>([])
  const [typed, setTyped] = useState<Manifest>({ path: 'manifest.yaml', contents: '' })
  const [title, setTitle] = useState('')
  const submit = async (): Promise<ApiFault | null> => {
    const manifests = files.length > 0 ? files : [typed]
    const result = await send<{ data: { id: string } }>('POST', '/iac/runs', { manifests, title })
    if (!result.ok) return result.fault
    onDone(result.body.data.id)
    return null
  }
  return (
    <Dialog title={t('submit')} onClose={onClose} isWide>
      <DialogForm
        act={t('submit')}
        isReady={files.length > 0 || typed.contents.trim() !== ''}
        onSend={submit}
        onCancel={onClose}
      >
        {errorsOf => (
          <>
            <p>{t('submit_text')}</p>
            <TextField
              label={t('title')}
              maxLength={255}
              value={title}
              onInput={setTitle}
              autoComplete="off"
              errors={errorsOf('title')}
            />
            <Field label={t('choose_files')} errors={errorsOf('manifests')}>
              {ties => (
                <input
                  {...ties}
                  type="file"
                  multiple
                  accept=".yaml,.yml"
                  onChange={event => {
                    const { files: chosen } = event.currentTarget
                    if (chosen) void readFiles(chosen).then(setFiles)
                  }}
                />
              )}
            </Field>
            {files.length > 0 ? null : (
              <>
                <TextField
                  label={t('path')}
                  maxLength={255}
                  value={typed.path}
                  onInput={path => setTyped({ ...typed, path })}
                  autoComplete="off"
                />
                <TextField
                  label={t('contents')}
                  hint={t('contents_hint')}
                  lines={12}
                  value={typed.contents}
                  onInput={contents => setTyped({ ...typed, contents })}
                />
              </>
            )}
          </>
        )}
      </DialogForm>
    </Dialog>
  )
}
