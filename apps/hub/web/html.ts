// HTML templates that escape every value, and the headers of every page.
import { assets } from './assets.ts'
import { say, type WebLanguage } from './web-texts.ts'

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
  Vary: 'Accept-Language, Cookie',
}

type PageParts = {
  readonly language: WebLanguage
  readonly title: string
  readonly body: Html
  /** Attributes of the body element that the script reads. */
  readonly data?: Readonly<Record<string, string>>
  readonly withScript?: boolean
}

/** A whole page as a response. */
export function pageResponse(
  status: number,
  parts: PageParts,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const { language, title, body, data = {}, withScript = false } = parts
  const attributes = Object.entries(data).map(([name, value]) => html` data-${name}="${value}"`)
  const document = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="${assets.icon.path}">
<link rel="stylesheet" href="${assets.style.path}">
${withScript ? html`<script type="module" src="${assets.script.path}"></script>` : null}
</head>
<body${attributes}>
${body}
</body>
</html>
`
  return new Response(document.text, {
    status,
    headers: {
      ...securityHeaders,
      ...headers,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Language': language,
    },
  })
}

/** 303: the browser goes there with GET. */
export const redirect = (path: string, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(null, { status: 303, headers: { ...securityHeaders, ...headers, Location: path } })

/** The product's name with its sign, as every page begins. */
export const brand = (language: WebLanguage): Html =>
  html`<img class="brand-icon" src="${assets.icon.path}" alt="" width="28" height="28"><span class="brand-name">${say(language, 'product')}</span>`
