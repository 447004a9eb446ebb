// The description of a run: HTML of a few plain elements; everything else that looks like markup is taken out
// (resources.md R-043). The text is taken apart and written anew, so that nothing of the original markup survives.

const ALLOWED = new Set(['p', 'br', 'b', 'i', 'ul', 'ol', 'li', 'a', 'code', 'pre'])
/** Elements whose text is none of the description. */
const DROPPED =
  /<(script|style|iframe|object|embed|template|noscript|svg|math|textarea|title)\b[\s\S]*?(?:<\/\1\s*>|$)/gi
/** Where attributes begin there is one way to read what follows: a thousand blanks are not tried in a thousand ways. */
const TOKEN = /<!--[\s\S]*?(?:-->|$)|<(\/?)([a-zA-Z][a-zA-Z0-9]*)([\s/](?:[^<>"']|"[^"]*"|'[^']*')*)?>|[^<]+|</g
const HREF = /\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))/i

const escaped = (text: string): string =>
  text
    .replace(/&(?!(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,8});)/gi, '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')

/** The address of a link when it is one of http or https; entities and spaces inside cannot hide another scheme. */
function addressOf(attributes: string): string | null {
  const found = HREF.exec(attributes)
  const address = (found?.[1] ?? found?.[2] ?? found?.[3] ?? '').trim()
  const url = URL.parse(address)
  return url && (url.protocol === 'http:' || url.protocol === 'https:') ? address : null
}

/** The description of a run as it is kept; a blank one is none. */
export const keptDescription = (given: string | null | undefined): string | null =>
  given == null || given.trim() === '' ? null : plainHtml(given)

/** The HTML with the allowed elements alone; those that are left open are closed. */
function plainHtml(html: string): string {
  const open: string[] = []
  let out = ''
  for (const [token, slash, tag, attributes] of html.replace(DROPPED, '').matchAll(TOKEN)) {
    const name = tag?.toLowerCase()
    if (name === undefined) {
      if (!token.startsWith('<!--')) out += escaped(token)
    } else if (!ALLOWED.has(name)) continue
    else if (name === 'br') out += '<br>'
    else if (slash === '/') {
      const at = open.lastIndexOf(name)
      if (at < 0) continue
      for (const each of open.splice(at).reverse()) out += `</${each}>`
    } else {
      const address = name === 'a' ? addressOf(attributes ?? '') : null
      out += address === null ? `<${name}>` : `<a href="${escaped(address).replaceAll('"', '&quot;')}">`
      open.push(name)
    }
  }
  return (
    out +
    open
      .reverse()
      .map(each => `</${each}>`)
      .join('')
  )
}
