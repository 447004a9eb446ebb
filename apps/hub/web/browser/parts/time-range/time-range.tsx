// Chooses the range of time that charts show: presets, an own range, earlier and later, closer and wider, and the
// keys for them.
import { useSignal } from '@preact/signals'
import { chartWords } from '../../../words/charts.ts'
import { shellWords } from '../../../words/shell.ts'
import { dayAndClock, fieldText, fullTime, instantOfField, shownZone } from '../../format.ts'
import { usePageKeys } from '../../keys.ts'
import { textsOf } from '../../session.ts'
import { Dialog } from '../dialog.tsx'
import { TextField } from '../field.tsx'
import {
  linkToShown,
  resetRange,
  shiftRange,
  showEnds,
  shownEnds,
  shownRange,
  showRange,
  zoomRange,
} from './shown-range.ts'
import './time-range.css'

const t = textsOf(chartWords)
const common = textsOf(shellWords)

const PRESETS = ['15m', '1h', '6h', '24h', '2d', '7d', '30d', '90d'] as const
const OWN = 'own'

function presetText(preset: string): string {
  const n = Number.parseInt(preset, 10)
  return preset.endsWith('m') ? t('last_m', { n }) : preset.endsWith('h') ? t('last_h', { n }) : t('last_d', { n })
}

const keys: Readonly<Record<string, () => void>> = {
  '[': () => shiftRange(-1),
  ']': () => shiftRange(1),
  '-': () => zoomRange(2),
  '=': () => zoomRange(0.5),
  '0': resetRange,
}

export function TimeRangePicker() {
  const isOwn = useSignal(false)
  const isCopied = useSignal(false)
  usePageKeys(keys)
  const { from, to } = shownEnds()
  const preset = to === 'now' ? PRESETS.find(each => from === `now-${each}`) : undefined
  const range = shownRange()
  const shownText = `${dayAndClock(range.fromMs)} – ${dayAndClock(range.toMs)}`
  return (
    <fieldset class="time-range" aria-label={t('range')}>
      <button type="button" aria-label={t('earlier')} title={`${t('earlier')} [`} onClick={() => shiftRange(-1)}>
        ‹
      </button>
      <select
        aria-label={t('range')}
        title={[range.fromMs, range.toMs].map(fullTime).join('\n')}
        value={preset ?? OWN}
        onChange={event => {
          const { value } = event.currentTarget
          if (value === OWN) isOwn.value = true
          else showEnds(`now-${value}`, 'now')
        }}
      >
        {PRESETS.map(each => (
          <option value={each} key={each}>
            {presetText(each)}
          </option>
        ))}
        <option value={OWN}>{preset === undefined ? shownText : t('own_range')}</option>
      </select>
      <button type="button" aria-label={t('later')} title={`${t('later')} ]`} onClick={() => shiftRange(1)}>
        ›
      </button>
      <button type="button" aria-label={t('zoom_out')} title={`${t('zoom_out')} -`} onClick={() => zoomRange(2)}>
        −
      </button>
      <button type="button" aria-label={t('zoom_in')} title={`${t('zoom_in')} =`} onClick={() => zoomRange(0.5)}>
        +
      </button>
      {preset === undefined ? (
        <button type="button" onClick={() => (isOwn.value = true)}>
          {t('own_range')}
        </button>
      ) : null}
      <button
        type="button"
        onClick={async () => {
          await navigator.clipboard.writeText(linkToShown())
          isCopied.value = true
        }}
      >
        {isCopied.value ? common('copied') : t('copy_link')}
      </button>
      {isOwn.value ? <OwnRange onClose={() => (isOwn.value = false)} /> : null}
    </fieldset>
  )
}

const RANGE_MAX_MS = 400 * 86_400_000

function OwnRange({ onClose }: { readonly onClose: () => void }) {
  const range = shownRange()
  const from = useSignal(fieldText(range.fromMs))
  const to = useSignal(fieldText(range.toMs))
  const fault = useSignal<string | null>(null)
  const apply = (event: Event) => {
    event.preventDefault()
    const [fromMs, toMs] = [instantOfField(from.value), instantOfField(to.value)]
    if (!(toMs > fromMs)) fault.value = t('range_order')
    else if (toMs - fromMs > RANGE_MAX_MS) fault.value = t('range_long')
    else {
      onClose()
      showRange(fromMs, toMs)
    }
  }
  return (
    <Dialog title={t('range')} onClose={onClose}>
      <form onSubmit={apply}>
        <TextField
          label={t('from')}
          type="datetime-local"
          hint={shownZone()}
          value={from.value}
          isRequired
          onInput={value => {
            from.value = value
          }}
        />
        <TextField
          label={t('to')}
          type="datetime-local"
          hint={shownZone()}
          value={to.value}
          isRequired
          errors={fault.value === null ? [] : [fault.value]}
          onInput={value => {
            to.value = value
          }}
        />
        <div class="dialog-acts">
          <button type="button" onClick={onClose}>
            {common('cancel')}
          </button>
          <button type="submit" class="primary">
            {t('apply')}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
