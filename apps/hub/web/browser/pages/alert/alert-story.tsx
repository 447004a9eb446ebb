// What happened to an alert, newest first: its events, what people did and wrote; and who was told of it.
import type { EventType } from '../../../../../../core/alerting/evaluate/event.ts'
import type { AlertView } from '../../../views/alert.ts'
import { alertWords } from '../../../words/alert.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { valueText } from '../../format.ts'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf({ ...alertsWords, ...alertWords })

const eventTexts: Readonly<Record<EventType, keyof typeof alertWords>> = {
  'alert.opened': 'event_opened',
  'alert.reminder': 'event_reminder',
  'alert.resolved': 'event_resolved',
  'alert.flapping': 'event_flapping',
  'agent.down': 'event_down',
  'agent.up': 'event_up',
  group_down: 'event_group',
  group_update: 'event_group_update',
  group_resolved: 'event_group_resolved',
}

/** Of a hub that is newer than this page another may come: its name stands for it. */
const isKnown = (type: string): type is EventType => Object.hasOwn(eventTexts, type)

type Entry = { readonly id: string; readonly atMs: number; readonly what: string; readonly text: string }

function entriesOf({ alert, comments, events }: AlertView): Entry[] {
  const ofEvents = events.map(({ id, type, atMs, value }): Entry => {
    const text = isKnown(type) ? eventTexts[type] : undefined
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

/** How many messages went out and arrived, and in whose inbox it stands. */
function toldText({ deliveries, inboxes }: AlertView): string {
  const of = (state: string): number => deliveries?.filter(each => each.state === state).length ?? 0
  const sent = deliveries?.length ?? 0
  return [
    sent === 0 ? '' : t('told_result', { arrived: of('delivered'), count: sent }),
    of('failed') === 0 ? '' : t('told_failed', { failed: of('failed') }),
    inboxes.people === 0 ? '' : t('told_inboxes', inboxes),
    deliveries?.length === 0 ? t('told_nobody') : '',
  ]
    .filter(text => text !== '')
    .join(' ')
}

export function Deliveries({ data }: { readonly data: AlertView }) {
  const { deliveries } = data
  return (
    <section class="panel" aria-labelledby="told">
      <h2 id="told">{t('told')}</h2>
      <p>{toldText(data)}</p>
      {deliveries === null ? <p class="muted">{t('told_hidden')}</p> : null}
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
