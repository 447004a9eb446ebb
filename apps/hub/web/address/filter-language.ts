// The filter language of every list: words search, `key:value` chooses, `-` in front excludes, `key:>80` compares.
// `state:down tag:web dc:fra cpu:>80 -tag:test "two words"`; between quotes a quote is written twice.

export type FilterTerm = {
  /** Null: a word that is searched for. */
  readonly key: string | null
  readonly isExcluded: boolean
  readonly operator: '=' | '>' | '<' | '>=' | '<='
  readonly value: string
}

/** Longer texts are cut off: nobody types one. */
const FILTER_CHARS_MAX = 500
const TERMS_MAX = 30
const TERM = /(-?)(?:([a-z_]+):)?(>=|<=|>|<)?(?:"((?:[^"]|"")*)"|(\S+))/gi

/** The terms of a text. Never refuses: what is no term of its own is a word. */
export function parseFilter(text: string): FilterTerm[] {
  const terms: FilterTerm[] = []
  for (const [whole, minus, key, operator, quoted, bare] of text.slice(0, FILTER_CHARS_MAX).matchAll(TERM)) {
    if (terms.length >= TERMS_MAX) break
    const value = quoted?.replaceAll('""', '"') ?? bare?.replaceAll('"', '') ?? ''
    const isExcluded = minus === '-' && whole.length > 1
    if (key === undefined) terms.push({ key: null, isExcluded, operator: '=', value: (operator ?? '') + value })
    else terms.push({ key: key.toLowerCase(), isExcluded, operator: toOperator(operator), value })
  }
  // A key alone is a term that is being typed.
  return terms.filter(({ key, value }) => value !== '' && !(key === null && /^[a-z_]+:$/i.test(value)))
}

const toOperator = (text: string | undefined): FilterTerm['operator'] =>
  text === '>' || text === '<' || text === '>=' || text === '<=' ? text : '='

/** What would be read as something else without quotes: a comparison, and of a word a key or an exclusion. */
const needsQuotes = (key: string | null, value: string): boolean =>
  value === '' || /[\s"]|^[<>=]/.test(value) || (key === null && /^-|^[a-z_]+:/i.test(value))

const quotedValue = (key: string | null, value: string): string =>
  needsQuotes(key, value) ? `"${value.replaceAll('"', '""')}"` : value

/** The text of a term as one types it. */
export function termText({ key, isExcluded, operator, value }: FilterTerm): string {
  const compared = operator === '=' ? '' : operator
  return `${isExcluded ? '-' : ''}${key === null ? '' : `${key}:`}${compared}${quotedValue(key, value)}`
}

/** A vulnerability is called the same in whatever case its prefix is typed. */
export const vulnerabilityName = (typed: string): string => typed.replace(/^cve-/i, 'CVE-')

export const filterText = (terms: readonly FilterTerm[]): string => terms.map(termText).join(' ')

/** The filter with a term added, or without it where it stood already. */
export function toggledTerm(text: string, key: string, value: string): string {
  const terms = parseFilter(text)
  const others = terms.filter(term => !(term.key === key && term.value === value && !term.isExcluded))
  if (others.length < terms.length) return filterText(others)
  return filterText([...terms, { key, isExcluded: false, operator: '=', value }])
}

/** What a list knows of an item, for a filter: texts to search in, and its values by key. */
export type Filtered = {
  readonly words: readonly (string | null)[]
  readonly values: Readonly<Record<string, FilterValue>>
}

export type FilterValue = string | number | null | readonly string[]

function compares(value: number, { operator, value: wanted }: FilterTerm): boolean {
  const limit = Number(wanted)
  switch (operator) {
    case '>':
      return value > limit
    case '<':
      return value < limit
    case '>=':
      return value >= limit
    case '<=':
      return value <= limit
    case '=':
      return value === limit
  }
}

function hasTerm(item: Filtered, term: FilterTerm): boolean {
  const wanted = term.value.toLowerCase()
  if (term.key === null) return item.words.some(word => word?.toLowerCase().includes(wanted) === true)
  // Keys are typed: `constructor` names no value.
  const value = Object.hasOwn(item.values, term.key) ? item.values[term.key] : undefined
  if (value === undefined || value === null) return false
  if (typeof value === 'number') return compares(value, term)
  if (typeof value === 'string') return value.toLowerCase() === wanted
  return value.some(each => each.toLowerCase() === wanted)
}

/**
 * Whether an item has everything that the terms ask for; terms of the same key that do not exclude are alternatives.
 */
export function matchesFilter(item: Filtered, terms: readonly FilterTerm[]): boolean {
  const chosen = new Map<string, boolean>()
  for (const term of terms) {
    const has = hasTerm(item, term)
    if (term.isExcluded && has) return false
    if (term.isExcluded) continue
    if (term.key === null || term.operator !== '=') {
      if (!has) return false
    } else chosen.set(term.key, has || chosen.get(term.key) === true)
  }
  return [...chosen.values()].every(Boolean)
}
