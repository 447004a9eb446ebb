// Texts of the web interface: each file beside this one has those of an area, English and Vietnamese beside each other,
// so that neither can be missing. A page brings the texts of its area with it.

export type WebLanguage = 'en' | 'vi'
export type Texts = Readonly<Record<string, Readonly<Record<WebLanguage, string>>>>
export type WebParams = Readonly<Record<string, string | number>>

const locales: Readonly<Record<WebLanguage, string>> = { en: 'en-GB', vi: 'vi-VN' }
export const localeOf = (language: WebLanguage): string => locales[language]

const plurals = new Map<WebLanguage, Intl.PluralRules>()
function isOne(language: WebLanguage, value: number): boolean {
  const rules = plurals.get(language) ?? new Intl.PluralRules(localeOf(language))
  plurals.set(language, rules)
  return rules.select(value) === 'one'
}

const numbers = new Map<WebLanguage, Intl.NumberFormat>()
function numberText(language: WebLanguage, value: number): string {
  const format = numbers.get(language) ?? new Intl.NumberFormat(localeOf(language))
  numbers.set(language, format)
  return format.format(value)
}

/** Letters that are written from the right, and marks that turn the direction. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/

/** A name as a part of a longer text: what turns the direction in it turns nothing around it. */
export const isolated = (text: string): string => (TURNING.test(text) ? `\u2068${text}\u2069` : text)

/**
 * Fills a text: `{name}` with a parameter, numbers as the language writes them; `{count|alert|alerts}` with the first
 * word for one and the second for many. Plain text: whoever shows it in HTML escapes it.
 */
export function fill(language: WebLanguage, text: string, params: WebParams = {}): string {
  return text.replace(/\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g, (_, name: string, one?: string, many?: string) => {
    const value = params[name] ?? ''
    if (one !== undefined) return isOne(language, Number(value)) ? one : (many ?? one)
    return typeof value === 'number' ? numberText(language, value) : isolated(value)
  })
}

/** The texts of an area in a language: `t('key', { count: 3 })`. */
export const textsIn =
  <T extends Texts>(language: WebLanguage, texts: T) =>
  (key: keyof T, params?: WebParams): string =>
    fill(language, texts[key]?.[language] ?? String(key), params)
