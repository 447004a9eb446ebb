// The dialog of a new silence, loaded when it is asked for: lists begin without it.
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { lateParts } from '../late-parts.ts'
import type { SilenceDialogProps } from './silence-start.ts'

type Loaded = { readonly Dialog: ComponentType<SilenceDialogProps> }

export function LateSilenceDialog(props: SilenceDialogProps) {
  const [loaded, setLoaded] = useState<Loaded | null>(null)
  useEffect(() => {
    lateParts.silence?.().then(Dialog => setLoaded({ Dialog }), props.onClose)
  }, [])
  return loaded === null ? null : <loaded.Dialog {...props} />
}
