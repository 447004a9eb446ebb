// The list of all keys, and the switch for those that are a single character. It takes all that pages share, or the
// bundler would make a file of what it does without, for every page to load.
import '../view.ts'
import { missingKey, pageNames, sitePages } from '../../address/site-map.ts'
import { keyWords } from '../../words/keys.ts'
import { shellWords } from '../../words/shell.ts'
import { Dialog } from '../parts/dialog.tsx'
import { may, textsOf } from '../session.ts'
import { overlay } from './overlay.ts'
import { shortcuts } from './preferences.ts'

const t = textsOf(keyWords)
const shell = textsOf(shellWords)

type Line = readonly [keys: readonly string[], text: string]
type Section = readonly [title: string, lines: readonly Line[]]

const pageLines = (): Line[] =>
  pageNames.flatMap((name): Line[] => {
    const { key } = sitePages[name]
    return key === undefined || missingKey(name, may) !== undefined ? [] : [[['g', key], shell(`page_${name}`)]]
  })

const sections = (): readonly Section[] => [
  [
    t('everywhere'),
    [
      [['Ctrl', 'K'], t('key_palette')],
      [['?'], t('key_help')],
      [['/'], t('key_filter')],
      [['p'], t('key_pause')],
      [['Esc'], t('key_back')],
    ],
  ],
  [t('go_to'), pageLines()],
  [
    t('lists'),
    [
      [['j', 'k'], t('key_rows')],
      [['x'], t('key_select')],
      [['Enter'], t('key_open')],
      [['v'], t('key_views')],
    ],
  ],
  [
    t('alerts'),
    [
      [['a'], t('key_acknowledge')],
      [['m'], t('key_silence')],
      [['n'], t('key_comment')],
      [['Shift', 'E'], t('key_close')],
    ],
  ],
  [
    t('charts'),
    [
      [['[', ']'], t('key_shift')],
      [['-', '='], t('key_zoom')],
      [['0'], t('key_reset')],
      [['c'], t('key_compare')],
    ],
  ],
  [
    t('map'),
    [
      [['←', '→', '↑', '↓'], t('key_arrows')],
      [['Page ↑', 'Page ↓'], t('key_groups')],
    ],
  ],
]

const close = (): void => {
  overlay.value = null
}

export function KeyHelp() {
  const areOn = shortcuts.value === 'on'
  return (
    <Dialog title={shell('key_help')} onClose={close} isWide>
      {areOn ? null : <p class="banner">{t('off')}</p>}
      <div class="key-help">
        {sections().map(([title, lines]) => (
          <section key={title} aria-label={title}>
            <h3>{title}</h3>
            <dl>
              {lines.map(([keys, text]) => (
                <div key={text}>
                  <dt>
                    {keys.map(key => (
                      <kbd key={key}>{key}</kbd>
                    ))}
                  </dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <div class="dialog-acts">
        <button
          type="button"
          onClick={() => {
            shortcuts.value = areOn ? 'off' : 'on'
          }}
        >
          {t(areOn ? 'switch_off' : 'switch_on')}
        </button>
      </div>
    </Dialog>
  )
}
