// The texts of notifications by event type and language; a company can replace each (decision G-104).
import { and, eq } from 'drizzle-orm'
import { type NotifyType, notifyTypes } from '../../../core/lifecycle/alert.ts'
import { securityEventTypes } from '../../../core/lifecycle/security-event-severity.ts'
import { auditRequest } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { notificationTemplates } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { languages } from '../platform/http/api-texts.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { approvalTexts, approvalTypes } from './approval-texts.ts'
import { resourceTexts, resourceTypes } from './resource-texts.ts'
import { securityTexts } from './security-texts.ts'

export type NotificationLanguage = 'en' | 'vi'
export const languageOf = (text: string): NotificationLanguage => (text === 'vi' ? 'vi' : 'en')

/** Everything that people and webhooks are told of. */
export const templateTypes = [...notifyTypes, ...securityEventTypes, ...approvalTypes, ...resourceTypes] as const
export type TemplateType = (typeof templateTypes)[number]

type Template = { readonly title: string; readonly body: string }

const EN_VALUE = 'Value {value}, threshold {threshold}, since {opened_at}. {link}'
const VI_VALUE = 'Giá trị {value}, ngưỡng {threshold}, từ {opened_at}. {link}'

const defaults: Readonly<Record<TemplateType, Readonly<Record<NotificationLanguage, Template>>>> = {
  'alert.opened': {
    en: { title: '[{severity}] {rule} on {server}', body: EN_VALUE },
    vi: { title: '[{severity}] {rule} trên {server}', body: VI_VALUE },
  },
  'alert.resolved': {
    en: { title: 'Resolved: {rule} on {server}', body: 'It lasted {duration}. Last value {value}. {link}' },
    vi: { title: 'Đã hết: {rule} trên {server}', body: 'Kéo dài {duration}. Giá trị cuối {value}. {link}' },
  },
  'alert.reminder': {
    en: { title: 'Still [{severity}] {rule} on {server}', body: EN_VALUE },
    vi: { title: 'Vẫn còn [{severity}] {rule} trên {server}', body: VI_VALUE },
  },
  'agent.down': {
    en: { title: '[{severity}] Lost signal of {server}', body: 'No signal for {value} seconds. {link}' },
    vi: { title: '[{severity}] Mất tín hiệu {server}', body: 'Không có tín hiệu trong {value} giây. {link}' },
  },
  'agent.up': {
    en: { title: 'Signal of {server} is back', body: 'It was silent for {duration}. {link}' },
    vi: { title: 'Đã có lại tín hiệu {server}', body: 'Đã im lặng trong {duration}. {link}' },
  },
  group_down: {
    en: {
      title: '[{severity}] Wide-area incident: {value} servers are silent',
      body: 'Group {rule}, since {opened_at}. {link}',
    },
    vi: { title: '[{severity}] Sự cố diện rộng: {value} máy im lặng', body: 'Nhóm {rule}, từ {opened_at}. {link}' },
  },
  group_resolved: {
    en: { title: 'Wide-area incident is over', body: 'Group {rule}, lasted {duration}. {link}' },
    vi: { title: 'Sự cố diện rộng đã kết thúc', body: 'Nhóm {rule}, kéo dài {duration}. {link}' },
  },
  ...securityTexts,
  ...approvalTexts,
  ...resourceTexts,
}

/** The text for an alert whose notification is sent when its suppression has ended (decision G-101). */
const lateNotes: Readonly<Record<'opened' | 'ended', Readonly<Record<NotificationLanguage, string>>>> = {
  opened: {
    en: 'It opened while notifications were suppressed.',
    vi: 'Cảnh báo mở trong lúc thông báo bị tạm ngưng.',
  },
  ended: {
    en: 'It ended while notifications were suppressed.',
    vi: 'Cảnh báo kết thúc trong lúc thông báo bị tạm ngưng.',
  },
}

const defaultTemplate = (type: TemplateType, language: NotificationLanguage): Template => defaults[type][language]

/** An alert as the API shows it, as far as templates use it. */
export type ShownAlert = {
  readonly id: string
  readonly server: { readonly name: string } | null
  readonly rule: { readonly name: string } | null
  readonly series_key: string
  readonly severity: string
  readonly state: string
  readonly last_value: number | null
  readonly threshold: number | null
  readonly opened_at: Date
  readonly resolved_at: string | null
  /** True when the notification is late, because it was suppressed when the event happened. */
  readonly suppressed: boolean
}

function durationOf(alert: ShownAlert, nowMs: number): string {
  const endMs = alert.resolved_at === null ? nowMs : Date.parse(alert.resolved_at)
  const seconds = Math.max(0, Math.round((endMs - alert.opened_at.getTime()) / 1000))
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  return hours > 0 ? `${hours}h${minutes}m` : minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`
}

/**
 * Fills the placeholders of a text; those that have no value stay. `{count|change|changes}` is the first word for one
 * and the second for many.
 */
export const fillText = (text: string, values: Readonly<Record<string, string>>): string =>
  text
    .replace(/\{(\w+)(?:\|([^|{}]*)\|([^|{}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
      const value = Object.hasOwn(values, name) ? values[name] : undefined
      if (value === undefined) return whole
      return one === undefined || many === undefined ? value : value === '1' ? one : many
    })
    .trim()

/** A link of the web interface; empty when the hub does not know its address. */
export const linkTo = (publicUrl: string | null, path: string): string =>
  publicUrl === null ? '' : `${publicUrl.replace(/\/+$/, '')}${path}`

/** The page of an alert, at the time of what is told: of its end, or of its beginning. */
export const alertPath = ({ id, opened_at, resolved_at }: ShownAlert): string =>
  `/alerts/${id}?at=${new Date(resolved_at ?? opened_at).toISOString()}`

/** What the placeholders of an alert's texts stand for. */
const valuesOf = (alert: ShownAlert, publicUrl: string | null, nowMs: number): Readonly<Record<string, string>> => ({
  server: alert.server?.name ?? '',
  rule: alert.rule?.name ?? alert.series_key,
  severity: alert.severity,
  value: alert.last_value === null ? '–' : String(alert.last_value),
  threshold: alert.threshold === null ? '–' : String(alert.threshold),
  state: alert.state,
  opened_at: alert.opened_at.toISOString(),
  duration: durationOf(alert, nowMs),
  link: linkTo(publicUrl, alertPath(alert)),
})

/** Fills the placeholders of a text from an alert. */
export const fillTemplate = (text: string, alert: ShownAlert, publicUrl: string | null, nowMs: number): string =>
  fillText(text, valuesOf(alert, publicUrl, nowMs))

/** The texts that a company has replaced, by type and language. */
export type TextBook = ReadonlyMap<string, Template>

export async function loadTexts(db: Executor, companyId: string): Promise<TextBook> {
  const { template, language, title, body } = notificationTemplates
  const rows = await db
    .select({ template, language, title, body })
    .from(notificationTemplates)
    .where(eq(notificationTemplates.companyId, companyId))
  return new Map(rows.map(row => [`${row.template} ${row.language}`, row]))
}

export function renderText(
  hub: Hub,
  texts: TextBook,
  type: NotifyType,
  language: NotificationLanguage,
  alert: ShownAlert,
): Template {
  const template = texts.get(`${type} ${language}`) ?? defaultTemplate(type, language)
  const values = valuesOf(alert, hub.config.public_url, hub.now())
  const late = alert.suppressed ? ` ${lateNotes[alert.resolved_at === null ? 'opened' : 'ended'][language]}` : ''
  return { title: fillText(template.title, values), body: `${fillText(template.body, values)}${late}` }
}

/** The text of what is no alert. */
export function renderValues(
  texts: TextBook,
  type: TemplateType,
  language: NotificationLanguage,
  values: Readonly<Record<string, string>>,
): Template {
  const template = texts.get(`${type} ${language}`) ?? defaultTemplate(type, language)
  return { title: fillText(template.title, values), body: fillText(template.body, values) }
}

/** Every text of a company, its own or the default one, by event type and language. */
export async function listTemplates(db: Executor, companyId: string) {
  const own = await loadTexts(db, companyId)
  return templateTypes.flatMap(template =>
    languages.map(language => {
      const text = own.get(`${template} ${language}`)
      const { title, body } = text ?? defaultTemplate(template, language)
      return { template, language, title, body, is_default: text === undefined }
    }),
  )
}

type TemplateText = Template & { readonly language: NotificationLanguage }
const subjectOf = (template: TemplateType) => ({ type: 'template', id: template, name: template })

export async function setTemplate(context: RouteContext, template: TemplateType, text: TemplateText): Promise<void> {
  const { hub, companyId } = context
  const { language, title, body } = text
  await inTransaction(hub.database.db, async tx => {
    await tx.db
      .insert(notificationTemplates)
      .values({ companyId, template, language, title, body })
      .onConflictDoUpdate({
        target: [notificationTemplates.companyId, notificationTemplates.template, notificationTemplates.language],
        set: { title, body },
      })
    await auditRequest(tx, context, 'template.update', subjectOf(template))
  })
}

/** Restores the default texts of an event type in every language. */
export async function resetTemplate(context: RouteContext, template: TemplateType): Promise<void> {
  const { hub, companyId } = context
  await inTransaction(hub.database.db, async tx => {
    await tx.db
      .delete(notificationTemplates)
      .where(and(eq(notificationTemplates.companyId, companyId), eq(notificationTemplates.template, template)))
    await auditRequest(tx, context, 'template.reset', subjectOf(template))
  })
}
