// Steps 1 and 2: which servers, and the licence by which their agents join. Nothing that was typed is lost by a
// refusal; sent again it adds nobody twice.
import { useRef, useState } from 'preact/hooks'
import type { ArrivalsView } from '../../../views/arrivals.ts'
import { enrollWords } from '../../../words/enroll.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { dayText } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { ActFault, useFocusAtFault } from '../../parts/fault.tsx'
import { Field, SelectField, TextField } from '../../parts/field.tsx'
import { may, textsOf } from '../../session.ts'
import { KnownServer } from './known-server.tsx'
import { type Names, type NamesWay, type ToImport, toImport } from './names.ts'

const t = textsOf(enrollWords)

const WAYS: readonly NamesWay[] = ['one', 'list', 'csv', 'known', 'open']
/** Those that add no server. */
const ADDLESS: readonly NamesWay[] = ['known', 'open']
const DAYS = ['1', '7', '30', '']
const DAY_MS = 86_400_000
const OPEN_USES = 10

type Imported = { readonly created: number; readonly updated: number; readonly unchanged: number }
type Made = { readonly id: string; readonly token: string; readonly since: string }
type Added = { readonly name: string; readonly id: string }

const importServers = ({ csv, existing }: ToImport, isTrial: boolean) =>
  send<{ data: Imported }>('POST', `/servers/import?existing=${existing}${isTrial ? '&dry_run=1' : ''}`, { csv })

/** Errors of lines of the import, as the API names them: `rows.7.ip_address`. */
const lineFaults = ({ errors }: ApiFault): string[] =>
  Object.entries(errors)
    .slice(0, 10)
    .map(([field, texts]) => `${field.replace(/^rows\./, '')}: ${texts.join(' ')}`)

type FieldsProps = {
  readonly names: Names
  readonly onChange: (change: Partial<Names>) => void
  readonly errors: readonly string[]
}

const OneField = ({ names, onChange, errors }: FieldsProps) => (
  <>
    <TextField
      label={t('name')}
      hint={t('name_hint')}
      isRequired
      maxLength={253}
      value={names.one}
      onInput={one => onChange({ one })}
      errors={errors}
    />
    <label class="inline">
      <input
        type="checkbox"
        checked={names.isOnly}
        onChange={event => onChange({ isOnly: event.currentTarget.checked })}
      />
      {t('only_this')}
    </label>
  </>
)

function NamesFields({ names, onChange, errors }: FieldsProps) {
  switch (names.way) {
    case 'one':
      return <OneField names={names} onChange={onChange} errors={errors} />
    case 'known':
      return <KnownServer known={names.known} onChange={known => onChange({ known })} errors={errors} />
    case 'list':
      return (
        <TextField
          label={t('names')}
          hint={t('names_hint')}
          isRequired
          lines={8}
          value={names.list}
          onInput={list => onChange({ list })}
          errors={errors}
        />
      )
    case 'csv':
      return (
        <>
          <Field label={t('file')}>
            {ties => (
              <input
                {...ties}
                type="file"
                accept=".csv,text/csv"
                onChange={event => {
                  void event.currentTarget.files?.[0]?.text().then(csv => onChange({ csv }))
                }}
              />
            )}
          </Field>
          <TextField
            label={t('csv_text')}
            hint={t('csv_hint')}
            isRequired
            lines={8}
            value={names.csv}
            onInput={csv => onChange({ csv })}
            errors={errors}
          />
          <label class="inline">
            <input
              type="checkbox"
              checked={names.isChanging}
              onChange={event => onChange({ isChanging: event.currentTarget.checked })}
            />
            {t('csv_change')}
          </label>
        </>
      )
    case 'open':
      return <p>{t('open_text')}</p>
  }
}

/** Unknown servers are let in only where the company says so. */
function LetIn({ view, onDone }: { readonly view: ArrivalsView; readonly onDone: () => void }) {
  const [fault, setFault] = useState<ApiFault | null>(null)
  if (view.createsDrafts) return null
  return (
    <div class="banner">
      <p>{t('open_off')}</p>
      <button
        type="button"
        onClick={async () => {
          const result = await send('PATCH', '/monitoring/settings', { auto_create_server: true })
          setFault(result.ok ? null : result.fault)
          if (result.ok) onDone()
        }}
      >
        {t('open_allow')}
      </button>
      <ActFault fault={fault} />
    </div>
  )
}

function Trial({ asked, onFault }: { readonly asked: ToImport; readonly onFault: (fault: ApiFault | null) => void }) {
  const [tried, setTried] = useState<{ readonly asked: ToImport; readonly result: Imported } | null>(null)
  const isOfThis = tried?.asked.csv === asked.csv && tried.asked.existing === asked.existing
  return (
    <p class="trial">
      <button
        type="button"
        onClick={async () => {
          const result = await importServers(asked, true)
          onFault(result.ok ? null : result.fault)
          setTried(result.ok ? { asked, result: result.body.data } : null)
        }}
      >
        {t('try_out')}
      </button>
      <span role="status">{isOfThis ? t('tried', { ...tried.result }) : ''}</span>
    </p>
  )
}

type Licence = { readonly name: string; readonly uses: string; readonly days: string }
type Faults = { readonly names: ApiFault | null; readonly licence: ApiFault | null }

const NO_FAULTS: Faults = { names: null, licence: null }

type Wanted = {
  readonly names: Names
  readonly licence: Licence
  /** The one server that an earlier try has added: it is added once. */
  readonly added: Added | null
  readonly since: string
}

/** The server for which alone the licence is, added where it is new; null: for any that is known. */
async function boundServer({ names: { way, one, isOnly, known }, added }: Wanted): Promise<ApiResult<Added | null>> {
  const name = one.trim()
  if (way === 'known') return { ok: true, body: known }
  if (way !== 'one' || !isOnly) return { ok: true, body: null }
  if (added?.name === name) return { ok: true, body: added }
  const result = await send<{ data: Added }>('POST', '/servers', { name, hostname: name })
  return result.ok ? { ok: true, body: { name, id: result.body.data.id } } : result
}

/** Adds the servers, then makes the licence. What was done stays done when the second is refused. */
async function make(wanted: Wanted, onAdded: (added: Added) => void): Promise<Made | Faults> {
  const { name, uses, days } = wanted.licence
  const bound = await boundServer(wanted)
  if (!bound.ok) return { ...NO_FAULTS, names: bound.fault }
  if (bound.body !== null && wanted.names.way === 'one') onAdded(bound.body)
  const asked = bound.body === null ? toImport(wanted.names) : null
  const imported = asked === null ? null : await importServers(asked, false)
  if (imported?.ok === false) return { ...NO_FAULTS, names: imported.fault }
  const made = await send<{ data: { id: string }; token: string }>('POST', '/monitoring/licenses', {
    name,
    ...(bound.body === null ? {} : { server_id: bound.body.id }),
    max_uses: Number(uses),
    expires_at: days === '' ? null : new Date(nowMs() + Number(days) * DAY_MS).toISOString(),
  })
  if (!made.ok && made.fault.errors.server_id !== undefined) return { ...NO_FAULTS, names: made.fault }
  if (!made.ok) return { ...NO_FAULTS, licence: made.fault }
  // One that is for a server alone awaits nobody who happened to be added in the same moment.
  return { id: made.body.data.id, token: made.body.token, since: bound.body === null ? wanted.since : '' }
}

type NamesProps = {
  readonly view: ArrivalsView
  readonly names: Names
  readonly onChange: (change: Partial<Names>) => void
  readonly fault: ApiFault | null
  readonly onFault: (fault: ApiFault | null) => void
  readonly reload: () => void
}

function NamesStep({ view, names, onChange, fault, onFault, reload }: NamesProps) {
  const asked = toImport(names)
  return (
    <section class="panel" aria-label={t('which')}>
      <h2>{t('which')}</h2>
      <div class="choice" role="radiogroup" aria-label={t('which')}>
        {WAYS.filter(way => ADDLESS.includes(way) || may('servers.manage')).map(way => (
          <label key={way}>
            <input type="radio" name="way" checked={names.way === way} onChange={() => onChange({ way })} />
            {t(way)}
          </label>
        ))}
      </div>
      <NamesFields
        names={names}
        onChange={onChange}
        errors={fault === null ? [] : [fault.message, ...lineFaults(fault)]}
      />
      {asked !== null && names.way !== 'one' ? <Trial asked={asked} onFault={onFault} /> : null}
      {names.way === 'open' ? <LetIn view={view} onDone={reload} /> : null}
    </section>
  )
}

type LicenceProps = {
  readonly left: number | null
  readonly licence: Licence
  readonly onChange: (change: Partial<Licence>) => void
  readonly fault: ApiFault | null
  readonly submit: string
  readonly isReady: boolean
  readonly isBusy: boolean
}

const LicenceStep = ({ left, licence, onChange, fault, submit, isReady, isBusy }: LicenceProps) => (
  <section class="panel" aria-label={t('licence')}>
    <h2>{t('licence')}</h2>
    <TextField
      label={t('licence_name')}
      isRequired
      maxLength={255}
      value={licence.name}
      onInput={name => onChange({ name })}
      errors={fault?.errors.name}
    />
    <TextField
      label={t('uses')}
      type="number"
      isRequired
      hint={left === null ? t('quota_free') : t('quota', { count: left })}
      value={licence.uses}
      onInput={uses => onChange({ uses })}
      errors={fault?.errors.max_uses}
    />
    <SelectField
      label={t('expires')}
      value={licence.days}
      choices={DAYS.map(days => ({
        value: days,
        text: days === '' ? t('forever') : t('days', { days: Number(days) }),
      }))}
      onChange={days => onChange({ days })}
      errors={fault?.errors.expires_at}
    />
    <ActFault fault={fault} />
    <button type="submit" class="primary" disabled={!isReady} aria-disabled={isBusy}>
      {submit}
    </button>
  </section>
)

export function NewLicence({
  view,
  reload,
  onMade,
}: {
  readonly view: ArrivalsView
  readonly reload: () => void
  readonly onMade: (made: Made) => void
}) {
  const [names, setNames] = useState<Names>({
    ...{ way: view.server !== null ? 'known' : may('servers.manage') ? 'one' : 'open', one: '', list: '', csv: '' },
    ...{ isChanging: false, isOnly: false, known: view.server },
  })
  const [licence, setLicence] = useState<Partial<Licence>>({})
  const [faults, setFaults] = useState<Faults>(NO_FAULTS)
  const [isBusy, setBusy] = useState(false)
  const isSending = useRef(false)
  const form = useFocusAtFault(faults)
  const [added, setAdded] = useState<Added | null>(null)
  // Of the first try: what was added then counts as awaited when the licence is made by a later one.
  const [since, setSince] = useState<string | null>(null)
  const asked = toImport(names)
  const wanted: Licence = {
    name: licence.name ?? names.known?.name ?? t('licence_of', { day: dayText(nowMs()) }),
    uses: licence.uses ?? String(names.way === 'open' ? OPEN_USES : Math.max(1, asked?.count ?? 1)),
    days: licence.days ?? '7',
  }
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault()
    if (isSending.current) return
    isSending.current = true
    setBusy(true)
    const from = since ?? new Date(Math.floor(nowMs() / 1000) * 1000 - 1000).toISOString()
    setSince(from)
    const made = await make({ names, licence: wanted, added, since: from }, setAdded)
    isSending.current = false
    setBusy(false)
    setFaults('token' in made ? NO_FAULTS : made)
    if ('token' in made) onMade(made)
  }
  return (
    <form ref={form} class="wizard" onSubmit={event => void onSubmit(event)}>
      <NamesStep
        view={view}
        names={names}
        onChange={change => setNames(before => ({ ...before, ...change }))}
        fault={faults.names}
        onFault={fault => setFaults({ ...NO_FAULTS, names: fault })}
        reload={reload}
      />
      <LicenceStep
        left={view.quotaLeft}
        licence={wanted}
        onChange={change => setLicence(before => ({ ...before, ...change }))}
        fault={faults.licence}
        submit={t(asked === null ? 'create_open' : 'create')}
        isReady={names.way !== 'known' || names.known !== null}
        isBusy={isBusy}
      />
    </form>
  )
}
