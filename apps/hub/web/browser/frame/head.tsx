// The head of every page: company, how old the data is, who one is, preferences and the way out.
import { shellWords } from '../../words/shell.ts'
import { hrefTo } from '../address/router.ts'
import { connection, dataAtMs, isPaused } from '../connection/live.ts'
import { clockSeconds, fullTime, isUtc } from '../format.ts'
import { Icon } from '../parts/icons.tsx'
import { companies, company, csrfToken, may, textsOf, user, version } from '../session.ts'
import { MenuButton } from './navigation.tsx'
import { overlay } from './overlay.ts'
import { density, shortcuts, theme } from './preferences.ts'

const t = textsOf(shellWords)

function CompanyChoice() {
  if (companies.length < 2) return <span class="company">{company.name}</span>
  return (
    <select
      class="company"
      aria-label={t('company')}
      value={company.slug}
      onChange={event => location.assign(`/c/${encodeURIComponent(event.currentTarget.value)}/`)}
    >
      {companies.some(each => each.slug === company.slug) ? null : <option value={company.slug}>{company.name}</option>}
      {companies.map(each => (
        <option value={each.slug} key={each.slug}>
          {each.name}
        </option>
      ))}
    </select>
  )
}

function Connection() {
  const state = connection.value
  const text = state === 'lost' ? t('lost') : state === 'paused' ? t('paused') : t(state)
  return (
    <button
      type="button"
      class="connection quiet"
      aria-label={state === 'live' ? text : `${text} ${clockSeconds(dataAtMs.value)}`}
      data-state={state}
      title={`${t(isPaused.value ? 'resume' : 'pause')} (p) · ${t('data_of', { time: fullTime(dataAtMs.value) })}`}
      aria-pressed={isPaused.value}
      onClick={() => {
        isPaused.value = !isPaused.value
      }}
    >
      <Icon name={state === 'paused' ? 'pause' : state === 'live' ? 'play' : 'unknown'} />
      <span>{text}</span>
      {state === 'live' ? null : <span class="muted"> {clockSeconds(dataAtMs.value)}</span>}
    </button>
  )
}

/** A choice between a few values, as a group of radio buttons. */
function Choice<T extends string>({
  name,
  label,
  value,
  choices,
  onChange,
}: {
  readonly name: string
  readonly label: string
  readonly value: T
  readonly choices: readonly (readonly [T, string])[]
  readonly onChange: (value: T) => void
}) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {choices.map(([each, text]) => (
        <label key={each}>
          <input type="radio" name={name} checked={each === value} onChange={() => onChange(each)} />
          {text}
        </label>
      ))}
    </fieldset>
  )
}

async function signOut(): Promise<void> {
  await fetch('/logout', { method: 'POST', headers: { 'X-CSRF-Token': csrfToken() }, redirect: 'manual' })
  location.assign('/login')
}

const Choices = () => (
  <>
    <Choice
      name="theme"
      label={t('theme')}
      value={theme.value}
      choices={[
        ['auto', t('theme_auto')],
        ['light', t('theme_light')],
        ['dark', t('theme_dark')],
      ]}
      onChange={value => {
        theme.value = value
      }}
    />
    <Choice
      name="density"
      label={t('density')}
      value={density.value}
      choices={[
        ['comfortable', t('density_comfortable')],
        ['compact', t('density_compact')],
      ]}
      onChange={value => {
        density.value = value
      }}
    />
    <Choice
      name="times"
      label={t('times')}
      value={isUtc.value ? 'utc' : 'local'}
      choices={[
        ['local', t('times_local')],
        ['utc', t('times_utc')],
      ]}
      onChange={value => {
        isUtc.value = value === 'utc'
      }}
    />
    <Choice
      name="shortcuts"
      label={t('shortcuts')}
      value={shortcuts.value}
      choices={[
        ['on', t('shortcuts_on')],
        ['off', t('shortcuts_off')],
      ]}
      onChange={value => {
        shortcuts.value = value
      }}
    />
  </>
)

const Account = () => (
  <details class="account">
    <summary class="quiet">
      <span class="text">{user.name}</span>
      <Icon name="down" />
    </summary>
    <div class="account-menu">
      <p class="muted">{user.email}</p>
      <Choices />
      <button
        type="button"
        title="?"
        onClick={() => {
          overlay.value = 'keys'
        }}
      >
        {t('key_help')}
      </button>
      <a href={hrefTo('account')}>{t('page_account')}</a>
      {may('api-tokens.manage') ? <a href="/tokens">{t('tokens')}</a> : null}
      <a href="/two-factor">{t('two_factor')}</a>
      <a href="/docs">{t('api_documents')}</a>
      <button type="button" onClick={() => void signOut()}>
        {t('sign_out')}
      </button>
      <p class="muted">{version}</p>
    </div>
  </details>
)

export const Head = () => (
  <header class="head">
    <MenuButton />
    <a class="brand" href={hrefTo('overview')} aria-label={t('product')}>
      <img src="/web/icon.svg" alt="" width="24" height="24" />
    </a>
    <CompanyChoice />
    <span class="grow" />
    <button
      type="button"
      class="palette-button"
      title={`${t('palette_open')} (${t('palette_keys')})`}
      onClick={() => {
        overlay.value = 'palette'
      }}
    >
      <Icon name="search" />
      <span>{t('search')}</span>
      <kbd>{t('palette_keys')}</kbd>
    </button>
    <Connection />
    <Account />
  </header>
)
