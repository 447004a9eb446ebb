// What happened to an alert, newest first: its events, what people did and wrote; and who was told of it.
import type { AlertView } from '../../../views/alert.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { valueText } from '../../format.ts'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(alertsWords)

const eventTexts: Readonly<Record<string, keyof typeof alertsWords>> = {
  'alert.opened': 'event_opened',
  'alert.renotified': 'event_renotified',
  'alert.resolved': 'event_resolved',
  'alert.flapping': 'event_flapping',
}

type Entry = { readonly id: string; readonly atMs: number; readonly what: string; readonly text: string }

function entriesOf({ alert, comments, events }: AlertView): Entry[] {
  const ofEvents = events.map(({ id, type, atMs, value }): Entry => {
    const text = Object.hasOwn(eventTexts, type) ? eventTexts[type] : undefined
    return {
      id,
      atMs,
      what: text === undefined ? type : t(text),
      text: value === null ? '' : valueText(alert.unit, value),
    }
  })
  const ofPeople = comments.map(({ id, by, action, text, atMs }): Entry => {
    const name = by ?? t('somebody')
    const key = action === 'acknowledge' ? 'acknowledged' : action === 'close' ? 'closed' : 'commented'
    return { id, atMs, what: t(key, { name }), text }
  })
  return [...ofEvents, ...ofPeople].sort((one, other) => other.atMs - one.atMs)
}

export const Timeline = ({ data }: { readonly data: AlertView }) => (
  <section class="panel">
    <h2>{t('timeline')}</h2>
    <ol class="plain story">
      {entriesOf(data).map(({ id, atMs, what, text }) => (
        <li key={id}>
          <Time atMs={atMs} form="when" />
          <span>
            <strong class="text">{what}</strong> <span class="text">{text}</span>
          </span>
        </li>
      ))}
    </ol>
  </section>
)

type Delivery = NonNullable<AlertView['deliveries']>[number]

function resultOf({ state, tries }: Delivery): string {
  if (state === 'delivered') return t('delivery_delivered')
  return state === 'failed' ? t('delivery_failed', { tries }) : t('delivery_waiting', { tries })
}

export function Deliveries({ deliveries }: { readonly deliveries: AlertView['deliveries'] }) {
  return (
    <section class="panel">
      <h2>{t('told')}</h2>
      {deliveries === null ? <p class="muted">{t('told_hidden')}</p> : null}
      {deliveries?.length === 0 ? <p class="muted">{t('told_nobody')}</p> : null}
      <ol class="plain story">
        {deliveries?.map(delivery => (
          <li key={delivery.id}>
            <Time atMs={delivery.atMs} form="when" />
            <span>
              <strong class="text">{delivery.target}</strong> {resultOf(delivery)}
              {delivery.error === null ? null : <span class="fault"> {delivery.error}</span>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  )
}
