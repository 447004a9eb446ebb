// What stands where data cannot be shown: the text of the answer, the request's id, and what one can do.
import { useEffect, useRef } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import type { ApiFault } from '../api.ts'
import { company, textsOf } from '../session.ts'

const t = textsOf(shellWords)

/** The key that a refusal names, as `monitoring.manage`. */
const keyIn = (message: string): string | null => /\b[a-z-]+(?:\.[a-z-]+)+\b/.exec(message)?.[0] ?? null

export function NoPermission({ permission }: { readonly permission: string }) {
  return (
    <div class="notice" role="alert">
      <h1>{t('no_permission_title')}</h1>
      <p>{t('no_permission', { permission, company: company.name })}</p>
    </div>
  )
}

export function Fault({ fault, onRetry }: { readonly fault: ApiFault; readonly onRetry?: () => void }) {
  const permission = fault.status === 403 ? keyIn(fault.message) : null
  if (permission !== null) return <NoPermission permission={permission} />
  if (fault.status === 404)
    return (
      <div class="notice" role="alert">
        <h2>{t('not_found_title')}</h2>
        <p>{t('not_found')}</p>
      </div>
    )
  return (
    <div class="notice" role="alert">
      <h2>{t('failed_title')}</h2>
      <p>{fault.message}</p>
      {fault.requestId === null ? null : <p class="muted">{t('request_id', { id: fault.requestId })}</p>}
      {onRetry ? (
        <button type="button" onClick={onRetry}>
          {t('try_again')}
        </button>
      ) : null}
    </div>
  )
}

/** For a form: each time it was refused the first field at fault has the focus, which brings it into sight. */
export function useFocusAtFault(fault: object | null) {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (fault === null) return
    form.current?.querySelector<HTMLElement>('[aria-invalid=true], .field:has(.fault) input')?.focus()
  }, [fault])
  return form
}

/** The fault of an act, beside the button that caused it. */
export function ActFault({ fault }: { readonly fault: ApiFault | null }) {
  if (fault === null) return null
  const fields = Object.values(fault.errors).flat()
  return (
    <p class="fault" role="alert">
      {t('not_done', { message: [fault.message, ...fields].join(' ') })}
    </p>
  )
}
