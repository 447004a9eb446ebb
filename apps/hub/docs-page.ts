// A page to read the OpenAPI document; it loads nothing from elsewhere.

/** Reads /openapi.json and shows it. */
export const docsPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Monitoring Hub REST API</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem;color:#1b1f24;background:#fff}
h2{margin-top:2rem;border-bottom:1px solid #d0d7de}details{border:1px solid #d0d7de;border-radius:6px;margin:.4rem 0;padding:.3rem .7rem}
summary{cursor:pointer}code{font:13px ui-monospace,monospace}b.m{display:inline-block;width:4.2rem}pre{overflow:auto;background:#f6f8fa;padding:.7rem}
input{width:100%;padding:.5rem;font:inherit;box-sizing:border-box}.gone{opacity:.6}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}pre{background:#161b22}details,h2{border-color:#30363d}input{background:#161b22;color:inherit;border:1px solid #30363d}}
</style></head><body>
<h1>Monitoring Hub REST API</h1><p><a href="/openapi.json">openapi.json</a></p>
<input id="find" type="search" placeholder="Find a path or a purpose" aria-label="Find"><main id="list"></main>
<script type="module">
const spec = await (await fetch('/openapi.json')).json()
const list = document.getElementById('list')
const make = (tag, text, parent) => { const e = document.createElement(tag); if (text) e.textContent = text; parent.append(e); return e }
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
    make('p', op.description, box)
    if (op.parameters?.length) make('pre', JSON.stringify(op.parameters, null, 2), box)
    if (op.requestBody) make('pre', JSON.stringify(op.requestBody.content['application/json'].schema, null, 2), box)
  }
}
document.getElementById('find').addEventListener('input', event => {
  const text = event.target.value.toLowerCase()
  for (const box of list.querySelectorAll('details')) box.hidden = !box.dataset.text.includes(text)
})
</script></body></html>`
