// The company's records for what is typed, as the command palette and pickers find them.
import { useEffect, useState } from 'preact/hooks'
import type { PaletteView } from '../views/palette.ts'
import { readView } from './view-request.ts'

const TYPING_MS = 40

export type FoundRecords = { readonly typed: string; readonly records: PaletteView }
const nothing: PaletteView = { servers: [], alerts: [], rules: [], others: [] }

/** The records that are called so; those of an earlier text until the answer has come. Nothing typed finds nothing. */
export function useRecords(typed: string): FoundRecords {
  const [found, setFound] = useState<FoundRecords>({ typed: '', records: nothing })
  useEffect(() => {
    if (typed === '') return setFound({ typed, records: nothing })
    const abort = new AbortController()
    const timer = setTimeout(() => {
      readView<PaletteView>('palette', { q: typed }, abort.signal)
        .then(records => setFound({ typed, records }))
        .catch(() => {
          if (!abort.signal.aborted) setFound({ typed, records: nothing })
        })
    }, TYPING_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [typed])
  return found
}
