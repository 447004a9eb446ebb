// The command palette: one field for pages, saved views, servers, alerts, rules and actions. Pages and actions are at
// hand; records are asked for while one types, and what was found stays until the next answer. It takes the file that
// all pages share (kit.ts) as a whole, so that it stays one.
import '../view.ts'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { savedPages } from '../../address/saved-view.ts'
import { missingKey, type PageName, pageNames, sitePages } from '../../address/site-map.ts'
import type { PaletteView } from '../../views/palette.ts'
import { keyWords } from '../../words/keys.ts'
import { shellWords } from '../../words/shell.ts'
import { currentPage, goTo, hrefTo } from '../address/router.ts'
import { isPaused } from '../connection/live.ts'
import { isUtc } from '../format.ts'
import { titleOf } from '../pages/alerts/alert-face.tsx'
import { Combobox, type ComboboxOption } from '../parts/combobox.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { StateMark } from '../parts/state-mark.tsx'
import { linkToShown } from '../parts/time-range/shown-range.ts'
import { useRecords } from '../records.ts'
import { hrefOfView, loadSavedViews, savedViews } from '../saved-views.ts'
import { language, may, textsOf } from '../session.ts'
import { overlay } from './overlay.ts'
import { density, theme } from './preferences.ts'

const t = textsOf(keyWords)
const shell = textsOf(shellWords)

type Kind = 'page' | 'view' | 'server' | 'alert' | 'rule' | 'other' | 'act'
type Command = {
  readonly id: string
  readonly kind: Kind
  readonly text: string
  readonly mark?: ComponentChildren
  readonly about?: string
  /** What a record is, where the kind does not say it. */
  readonly title?: string
  readonly run: () => void
}

const leadTo = (kind: Kind, text: string, href: string, more: Partial<Command> = {}): Command => ({
  id: href,
  kind,
  text,
  run: () => goTo(href),
  ...more,
})

/** Pages that need no object, also those that stand in no navigation. */
const isSeen = (name: PageName): boolean => !sitePages[name].path.includes(':') && missingKey(name, may) === undefined

const pages = (): Command[] => [
  ...pageNames.filter(isSeen).map(name => {
    const { key } = sitePages[name]
    return leadTo('page', shell(`page_${name}`), hrefTo(name), key === undefined ? {} : { about: `g ${key}` })
  }),
  ...(isSeen('servers')
    ? [leadTo('page', t('page_map'), hrefTo('servers', {}, { view: 'map', group: 'dc,role' }))]
    : []),
]

/** Views that were saved, with the page that they are of. */
const views = (): Command[] =>
  (savedViews.value ?? []).map(view =>
    leadTo('view', view.name, hrefOfView(view), { id: view.id, about: shell(`page_${view.page}`) }),
  )

/** Of what moves with the time the link says which time it was. */
function linkToThis(): string {
  const name = currentPage.value?.name
  return name === 'server' || name === 'compare' ? linkToShown() : location.href
}

const act = (text: string, run: () => void, about = ''): Command => ({ id: text, kind: 'act', text, run, about })

const acts = (): Command[] => [
  act(
    shell(isPaused.value ? 'resume' : 'pause'),
    () => {
      isPaused.value = !isPaused.value
    },
    'p',
  ),
  ...(['light', 'dark', 'auto'] as const)
    .filter(name => name !== theme.value)
    .map(name =>
      act(t(`act_theme_${name}`), () => {
        theme.value = name
      }),
    ),
  act(t(density.value === 'compact' ? 'act_comfortable' : 'act_compact'), () => {
    density.value = density.value === 'compact' ? 'comfortable' : 'compact'
  }),
  act(t(isUtc.value ? 'act_local' : 'act_utc'), () => {
    isUtc.value = !isUtc.value
  }),
  ...(currentPage.value !== null && savedPages.includes(currentPage.value.name)
    ? [
        act(
          shell('saved_views'),
          () => {
            overlay.value = 'views'
          },
          'v',
        ),
      ]
    : []),
  act(t('act_copy'), () => void navigator.clipboard.writeText(linkToThis())),
  act(
    shell('key_help'),
    () => {
      overlay.value = 'keys'
    },
    '?',
  ),
  ...(may('api-tokens.manage') ? [act(shell('tokens'), () => location.assign('/tokens'))] : []),
  act(shell('two_factor'), () => location.assign('/two-factor')),
  act(shell('api_documents'), () => location.assign('/docs')),
]

/** The page of a record, of a person the list of people with what it is called. */
function hrefOfOther({ kind, id, name }: PaletteView['others'][number]): string {
  if (kind === 'user') return hrefTo('people', {}, { q: name })
  return kind === 'check' ? hrefTo('check', { check: id }) : hrefTo('resource', { kind, resource: id })
}

const recordsOf = ({ servers, alerts, rules, others }: PaletteView): Command[] => [
  ...servers.map(({ id, name, about }) => leadTo('server', name, hrefTo('server', { server: id }), { about })),
  ...alerts.map(alert =>
    leadTo('alert', `${titleOf(alert)} · ${alert.serverName}`, hrefTo('alert', { alert: alert.id }), {
      mark: <StateMark state={alert.severity} isOutlined={alert.state !== 'open'} />,
    }),
  ),
  ...rules.map(({ id, name }) => leadTo('rule', name, hrefTo('rule', { rule: id }))),
  ...others.map(other =>
    leadTo('other', other.name, hrefOfOther(other), {
      id: other.id,
      title: other.title[language],
      ...(other.about === null ? {} : { about: other.about }),
    }),
  ),
]

/** Without marks above and below letters, so that words are found however they are typed. */
const plain = (text: string): string => text.normalize('NFD').replace(/\p{M}/gu, '').replaceAll('đ', 'd').toLowerCase()

/** Those that hold each word that is typed; what begins with it first. */
function matching(commands: readonly Command[], typed: string): Command[] {
  const words = plain(typed).split(/\s+/).filter(Boolean)
  const isFound = ({ text }: Command) => words.every(word => plain(text).includes(word))
  const rank = ({ text }: Command) => (plain(text).startsWith(words[0] ?? '') ? 0 : 1)
  return commands.filter(isFound).sort((one, other) => rank(one) - rank(other))
}

const Content = ({ kind, text, mark, about, title = kind === 'other' ? '' : t(`kind_${kind}`) }: Command) => (
  <>
    <span class="palette-text">
      {mark} <span class="text">{text}</span>
    </span>
    <span class="muted palette-about">{[about, title].filter(Boolean).join(' · ')}</span>
  </>
)

const close = (): void => {
  overlay.value = null
}

export function Palette() {
  const [text, setText] = useState('')
  const typed = text.trim()
  const { typed: answered, records } = useRecords(may('monitoring.view') ? typed : '')
  const local = [...pages(), ...views(), ...acts()]
  const commands = typed === '' ? local : [...matching(local, typed), ...matching(recordsOf(records), '')]
  useEffect(() => {
    // Where they cannot be read, the palette is without them.
    if (may('monitoring.view')) void loadSavedViews()
  }, [])
  const isWaiting = useRef(false)
  const run = (id: string): void => {
    const command = commands.find(each => each.id === id)
    close()
    // The dialog gives the focus back first.
    if (command !== undefined) setTimeout(command.run)
  }
  useEffect(() => {
    if (isWaiting.current && answered === typed && commands[0] !== undefined) run(commands[0].id)
  }, [answered])
  const options = commands.map((command): ComboboxOption => {
    return { id: command.id, text: command.text, content: <Content {...command} /> }
  })
  return (
    <Dialog title={t('palette')} onClose={close}>
      <div class="palette">
        <Combobox
          label={t('palette')}
          placeholder={t('palette_hint')}
          value={text}
          options={options}
          isAlwaysOpen
          takesFirst
          onInput={value => {
            isWaiting.current = false
            setText(value)
          }}
          onChoose={option => run(option.id)}
          // Typed faster than the hub answers: the first of what comes is taken.
          onEnter={() => {
            isWaiting.current = answered !== typed
          }}
        />
        {typed !== '' && commands.length === 0 && answered === typed ? (
          <p class="muted" role="status">
            {t('nothing')}
          </p>
        ) : null}
      </div>
    </Dialog>
  )
}
