// HTML templates that escape every value, and the headers of every page.
import { assetPaths } from '../assets.ts'
import { say } from '../words/forms.ts'
import type { WebLanguage } from '../words/words.ts'

/** Text that is HTML already. Only this file and its templates make it. */
export class Html {
  constructor(readonly text: string) {}
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escapeText = (text: string): string => text.replace(/[&<>"']/g, char => ENTITIES[char] ?? char)

type Value = string | number | Html | null | readonly Html[]

const toText = (value: Value): string => {
  if (value === null) return ''
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(item => item.text).join('')
  return escapeText(String(value))
}

/** Escapes every value that is not HTML itself; null is nothing. */
export const html = (parts: TemplateStringsArray, ...values: readonly Value[]): Html =>
  new Html(parts.map((part, index) => part + (index < values.length ? toText(values[index] ?? null) : '')).join(''))

/** Nothing from another host, nothing inline, no frame around the page. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const securityHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
  Vary: 'Accept-Language, Accept-Encoding, Cookie',
}

/** The headers of a page in a language. */
export const pageHeaders = (language: WebLanguage): Record<string, string> => ({
  ...securityHeaders,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Language': language,
})

type PageParts = {
  readonly language: WebLanguage
  readonly title: string
  readonly body: Html
}

/** A whole page as a response. */
export function pageResponse(
  status: number,
  parts: PageParts,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const { language, title, body } = parts
  const document = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="${assetPaths.icon}">
<link rel="stylesheet" href="${assetPaths.style}">
</head>
<body>
${body}
</body>
</html>
`
  return new Response(document.text, { status, headers: { ...headers, ...pageHeaders(language) } })
}

/** 303: the browser goes there with GET. */
export const redirect = (path: string, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(null, { status: 303, headers: { ...securityHeaders, ...headers, Location: path } })

/** The product's name with its sign, as every page begins. */
export const brand = (language: WebLanguage): Html =>
  html`<img class="brand-icon" src="${assetPaths.icon}" alt="" width="28" height="28"><span class="brand-name">${say(language, 'product')}</span>`
