// Dialogs that are loaded when they are asked for: lists begin without them.
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { lateParts } from '../late-parts.ts'

/** What cannot be loaded is closed again. */
export const lateDialog = <Props extends { readonly onClose: () => void }>(
  load: () => Promise<ComponentType<Props>> | undefined,
) =>
  function LateDialog(props: Props) {
    const [loaded, setLoaded] = useState<{ readonly Dialog: ComponentType<Props> } | null>(null)
    useEffect(() => {
      load()?.then(Dialog => setLoaded({ Dialog }), props.onClose)
    }, [])
    return loaded === null ? null : <loaded.Dialog {...props} />
  }

export const LateCheckDialog = lateDialog(() => lateParts.check?.())
export const LateExceptionDialog = lateDialog(() => lateParts.exception?.())
export const LateSilenceDialog = lateDialog(() => lateParts.silence?.())
export const LateServerActDialog = lateDialog(() => lateParts.serverActs?.())
export const LateServerDialog = lateDialog(() => lateParts.serverDialog?.())
