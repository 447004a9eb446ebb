// The session is over: sign in within the page, so that nothing is lost of what was typed.
import { useState } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import { clockMs } from '../connection/live.ts'
import { Dialog } from '../parts/dialog.tsx'
import { TextField } from '../parts/field.tsx'
import { isSignedOut, renewSession, sessionEndsAtMs, textsOf, user } from '../session.ts'

const t = textsOf(shellWords)

const WARNED_MS = 5 * 60_000

/** Null once signed in; else what went wrong. */
async function signIn(password: string): Promise<string | null> {
  try {
    const body = new URLSearchParams({ email: user.email, password })
    const response = await fetch('/login', { method: 'POST', body, redirect: 'manual' })
    if (response.status === 429) return t('login_limited')
    // A login that worked leads on to another page, which is not followed here. With a second factor there is no
    // session yet, and the page that is loaded anew is the login.
    if (response.type !== 'opaqueredirect') return t('login_failed')
    if (await renewSession()) return null
    location.reload()
    return null
  } catch {
    return t('unreachable')
  }
}

export function SessionDialog() {
  const [password, setPassword] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  if (!isSignedOut.value) return null
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    setFault(await signIn(password))
    setPassword('')
    setBusy(false)
  }
  return (
    <Dialog title={t('session_over')} onClose={null}>
      <p>{t('session_over_text')}</p>
      <form onSubmit={event => void onSubmit(event)}>
        <p>
          {t('email')}: <strong>{user.email}</strong>
        </p>
        <TextField
          label={t('password')}
          type="password"
          autoComplete="current-password"
          isRequired
          value={password}
          onInput={setPassword}
          errors={fault === null ? [] : [fault]}
        />
        <div class="dialog-acts">
          <button type="submit" class="primary" disabled={isBusy}>
            {t('sign_in')}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

export function SessionWarning() {
  const leftMs = sessionEndsAtMs.value - clockMs.value
  if (leftMs > WARNED_MS || leftMs <= 0 || isSignedOut.value) return null
  return (
    <p class="banner" role="status">
      {t('session_ends', { minutes: Math.ceil(leftMs / 60_000) })}
    </p>
  )
}
