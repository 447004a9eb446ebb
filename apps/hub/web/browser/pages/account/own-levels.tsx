// From which severity on the viewer is told, and where.
import { useState } from 'preact/hooks'
import { accountWords } from '../../../words/account.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import type { ApiData } from '../../api-data.ts'
import { DialogForm } from '../../parts/dialog-form.tsx'
import { Fault } from '../../parts/fault.tsx'
import { SelectField } from '../../parts/field.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(accountWords)
const shell = textsOf(shellWords)

const LEVELS = ['info', 'warning', 'critical', 'off'] as const
const CHANNELS = ['bell', 'email', 'push'] as const
export type Levels = Readonly<Record<(typeof CHANNELS)[number], { readonly min_severity: string }>>

export const LEVELS_PATH = '/notifications/preferences'

type Props = { readonly stored: ApiData<Levels> }

export function OwnLevels({ stored: { data, fault, reload } }: Props) {
  const [changed, setChanged] = useState<Levels | null>(null)
  const [isSaved, setSaved] = useState(false)
  const levels = changed ?? data
  if (levels === null) return fault === null ? null : <Fault fault={fault} onRetry={() => void reload()} />
  const save = async (): Promise<ApiFault | null> => {
    const result = await send('PUT', LEVELS_PATH, levels)
    if (!result.ok) return result.fault
    setSaved(true)
    return null
  }
  return (
    <DialogForm act={shell('save')} class="account-form" onSend={save} onCancel={null}>
      {errorsOf => (
        <>
          {CHANNELS.map(channel => (
            <SelectField
              key={channel}
              label={t(`level_${channel}`)}
              value={levels[channel].min_severity}
              choices={LEVELS.map(each => ({
                value: each,
                text: t(each === 'off' ? 'level_off' : `severity_${each}`),
              }))}
              onChange={chosen => {
                setSaved(false)
                setChanged({ ...levels, [channel]: { min_severity: chosen } })
              }}
              errors={errorsOf(channel)}
            />
          ))}
          <p role="status" class="muted">
            {isSaved ? t('saved') : ''}
          </p>
        </>
      )}
    </DialogForm>
  )
}
