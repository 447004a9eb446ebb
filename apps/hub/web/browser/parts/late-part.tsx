// A part of a page whose file comes when it is first shown: most who open the page never ask for it.
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { unreachable } from '../api.ts'
import { Fault } from './fault.tsx'
import { Skeleton } from './skeleton.tsx'

/** `isThere` loads it beforehand, so that it is there in the first picture. */
export function latePart<Props extends object>(load: () => Promise<ComponentType<Props>> | undefined) {
  let Loaded: ComponentType<Props> | undefined
  const isThere = async (): Promise<void> => {
    Loaded ??= await load()
  }
  function LatePart(props: Props) {
    const [, draw] = useState(0)
    const [isFailed, setFailed] = useState(false)
    const begin = (): void => {
      setFailed(false)
      isThere().then(
        () => draw(times => times + 1),
        () => setFailed(true),
      )
    }
    useEffect(begin, [])
    if (Loaded !== undefined) return <Loaded {...props} />
    return isFailed ? <Fault fault={unreachable} onRetry={begin} /> : <Skeleton />
  }
  return { LatePart, isThere }
}
