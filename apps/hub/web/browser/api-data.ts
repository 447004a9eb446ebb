// What a page reads from the REST API itself: what depends on who asks, which a view of the company does not know.
import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiFault, send } from './api.ts'

export type ApiData<T> = {
  /** Null until the first response; the last one while another is waited for. */
  readonly data: T | null
  readonly fault: ApiFault | null
  readonly reload: () => Promise<void>
}

/** The data of `GET {path}`. Where it is null nothing is asked. */
export function useApiData<T>(path: string | null): ApiData<T> {
  const [data, setData] = useState<T | null>(null)
  const [fault, setFault] = useState<ApiFault | null>(null)
  // What was asked before comes too late to be shown.
  const asked = useRef(0)
  const reload = async (): Promise<void> => {
    if (path === null) return
    const mine = ++asked.current
    const result = await send<{ readonly data: T }>('GET', path)
    if (mine !== asked.current) return
    if (result.ok) setData(result.body.data)
    setFault(result.ok ? null : result.fault)
  }
  useEffect(() => void reload(), [path])
  return { data, fault, reload }
}

/** Whether the first response of one is still waited for: a page that is drawn once all are there does not jump. */
export const isAwaited = ({ data, fault }: ApiData<unknown>): boolean => data === null && fault === null
