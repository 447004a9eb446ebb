// A tab whose file comes when it is first opened: most who look at a server never do.
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { lateParts } from '../../late-parts.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { faultFrom } from '../../view.ts'
import type { TabProps } from './tab.ts'

type Loaded = { readonly Tab: ComponentType<TabProps> }

const lateTab = (name: 'SecurityTab' | 'PackagesTab') =>
  function LateTab(props: TabProps) {
    const [loaded, setLoaded] = useState<Loaded | null>(null)
    const [error, setError] = useState<{ readonly of: unknown } | null>(null)
    const load = (): void => {
      setError(null)
      lateParts.serverTabs?.().then(
        ({ [name]: Tab }) => setLoaded({ Tab }),
        (of: unknown) => setError({ of }),
      )
    }
    useEffect(load, [])
    if (loaded !== null) return <loaded.Tab {...props} />
    return error === null ? <Skeleton /> : <Fault fault={faultFrom(error.of)} onRetry={load} />
  }

export const SecurityTab = lateTab('SecurityTab')
export const PackagesTab = lateTab('PackagesTab')
