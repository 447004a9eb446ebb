// Says that the collector does not answer, at the foot of the screen with the other banners, where it moves nothing.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { OverviewView } from '../../views/overview.ts'

type Collector = OverviewView['collector']

/** What the page that is shown knows of the collector. */
export const collectorState = signal<Collector>('ok')

export function CollectorBanner({ state }: { readonly state: Collector }) {
  useEffect(() => {
    collectorState.value = state
  }, [state])
  useEffect(
    () => () => {
      collectorState.value = 'ok'
    },
    [],
  )
  return null
}
