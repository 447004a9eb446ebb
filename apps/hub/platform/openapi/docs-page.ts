// A page that shows the OpenAPI document; it loads nothing from other hosts, and its policy allows nothing else to run.
import { createHash } from 'node:crypto'

/** Reads /openapi.json and shows it. */
const docsPage = String.raw`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Monitoring Hub REST API</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem;color:#1b1f24;background:#fff}
h2{margin-top:2rem;border-bottom:1px solid #d0d7de}details{border:1px solid #d0d7de;border-radius:6px;margin:.4rem 0;padding:.3rem .7rem}
summary{cursor:pointer}h3{font-size:1rem;margin:.8rem 0 .2rem}table{border-collapse:collapse;font-size:.9rem}td{padding:.15rem .8rem .15rem 0;vertical-align:top}code{font:13px ui-monospace,monospace}b.m{display:inline-block;width:4.2rem}pre{overflow:auto;background:#f6f8fa;padding:.7rem}
input{width:100%;padding:.5rem;font:inherit;box-sizing:border-box}.gone{opacity:.6}a{color:#0969da}summary code{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}a{color:#6ea8fe}pre{background:#161b22}details,h2{border-color:#30363d}input{background:#161b22;color:inherit;border:1px solid #30363d}}
</style></head><body>
<h1>Monitoring Hub REST API</h1><p><a href="/openapi.json">openapi.json</a></p>
<input id="find" type="search" placeholder="Find a path or a purpose" aria-label="Find"><main id="list"></main>
<script type="module">
const spec = await (await fetch('/openapi.json')).json()
const list = document.getElementById('list')
const make = (tag, text, parent) => { const e = document.createElement(tag); if (text) e.textContent = text; parent.append(e); return e }
const found = value => value?.$ref ? value.$ref.slice(2).split('/').reduce((at, key) => at[key], spec) : value
const json = (title, value, parent) => { make('h3', title, parent); make('pre', JSON.stringify(value, null, 2), parent) }
const typeOf = schema => schema.enum?.join(' | ') ?? (schema.anyOf ? schema.anyOf.map(typeOf).join(' | ') : schema.format ?? schema.type ?? '')
const fill = (box, op) => {
  make('p', op.description.replaceAll('\x60', ''), box)
  const table = make('table', '', box)
  for (const each of (op.parameters ?? []).map(found)) {
    const row = make('tr', '', table)
    make('code', each.name, make('td', '', row))
    make('td', each.in + (each.required ? ', required' : ''), row)
    make('td', typeOf(found(each.schema)), row)
    make('td', each.description.replaceAll('\x60', ''), row)
  }
  for (const [type, content] of Object.entries(op.requestBody?.content ?? {}))
    if (type === 'application/json') json('Body', content.example, box)
    else { make('h3', 'Body, as ' + type, box); make('pre', content.example, box) }
  for (const [status, reference] of Object.entries(op.responses)) {
    const response = found(reference)
    if (status < 300 && response.content?.['application/json']) json(status + ' ' + response.description, response.content['application/json'].example, box)
    else make('p', status + ' ' + response.description, box)
  }
}
const groups = new Map()
for (const [path, methods] of Object.entries(spec.paths)) for (const [method, op] of Object.entries(methods)) {
  const name = op.tags?.[0] ?? 'Other'
  if (!groups.has(name)) groups.set(name, [])
  groups.get(name).push({ path, method, op })
}
for (const [name, ops] of groups) {
  const section = make('section', '', list); make('h2', name, section)
  for (const { path, method, op } of ops) {
    const box = make('details', '', section); box.dataset.text = (path + ' ' + op.summary).toLowerCase()
    if (op.deprecated) box.className = 'gone'
    const head = make('summary', '', box); make('b', method.toUpperCase(), head).className = 'm'
    make('code', path, head); head.append(' — ' + op.summary)
    box.addEventListener('toggle', () => fill(box, op), { once: true })
  }
}
document.getElementById('find').addEventListener('input', event => {
  const text = event.target.value.toLowerCase()
  for (const box of list.querySelectorAll('details')) box.hidden = !box.dataset.text.includes(text)
  for (const section of list.querySelectorAll('section')) section.hidden = !section.querySelector('details:not([hidden])')
})
</script></body></html>`

/** The hash of the text between the tags of the only element with this name. */
function hashOf(name: 'script' | 'style'): string {
  const content = new RegExp(`<${name}[^>]*>([\\s\\S]*)</${name}>`).exec(docsPage)?.[1] ?? ''
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`
}

const POLICY = [
  "default-src 'none'",
  `script-src ${hashOf('script')}`,
  `style-src ${hashOf('style')}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export const docsResponse = (): Response =>
  new Response(docsPage, {
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': POLICY,
      'X-Frame-Options': 'DENY',
    },
  })
