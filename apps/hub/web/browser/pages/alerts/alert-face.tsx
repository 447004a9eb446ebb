// How an alert is said: what it is about, its value against its threshold, and what is known of it besides.
import type { AlertFace } from '../../../views/alerts.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { count, valueText } from '../../format.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(alertsWords)

export function titleOf({ type, ruleName, metric, groupSize }: AlertFace): string {
  const name = ruleName ?? metric ?? type
  switch (type) {
    case 'agent_down':
      return t('agent_down')
    case 'group_down':
      return t('group_down', { count: groupSize ?? 0 })
    case 'no_data':
      return t('no_data_of', { name })
    case 'threshold':
    case 'check':
      return name
  }
}

/** `97.3 % (threshold 90 %)`; empty where an alert has no value, or its title says it. */
export function readingOf({ type, unit, lastValue, threshold }: AlertFace): string {
  if (lastValue === null || type === 'group_down') return ''
  if (type === 'agent_down') return t('silent_for', { seconds: count(lastValue) })
  const value = valueText(unit, lastValue)
  return threshold === null ? value : t('value_and_threshold', { value, threshold: valueText(unit, threshold) })
}

/** `Acknowledged by Ada · Silenced`. */
export function notesOf(alert: AlertFace): string {
  const { state, acknowledgedBy, isSuppressed, isFlapping } = alert
  const isTaken = state === 'acknowledged' && acknowledgedBy !== null
  return [
    isTaken ? t('acknowledged_by', { name: acknowledgedBy }) : t(`state_${state}`),
    isSuppressed ? t('silenced') : '',
    isFlapping ? t('flapping') : '',
  ]
    .filter(note => note !== '')
    .join(' · ')
}

/** `2 messages arrived · 1 failed · in 3 inboxes`; empty where it is not known. */
export function toldOf({ told }: AlertFace): string {
  if (told === null) return ''
  const { arrived, failed, waiting, people } = told
  const said = [
    arrived > 0 ? t('told_arrived', { count: arrived }) : '',
    failed > 0 ? t('told_lost', { count: failed }) : '',
    waiting > 0 ? t('told_waiting', { count: waiting }) : '',
    people > 0 ? t('told_people', { count: people }) : '',
  ].filter(text => text !== '')
  return said.length === 0 ? t('told_none') : said.join(' · ')
}
