// The operationId of a route: a verb and its object, made from method and path, so that generated clients read well.
import { familyOf } from '../http/respond.ts'
import type { Route } from '../http/route.ts'

const pascal = (word: string): string =>
  word
    .split(/[-_]/)
    .map(part => part.charAt(0).toUpperCase() + part.slice(1))
    .join('')

const camel = (word: string): string => {
  const text = pascal(word)
  return text.charAt(0).toLowerCase() + text.slice(1)
}

const singular = (word: string): string =>
  SINGLE.has(word) ? word : word.replace(/ies$/, 'y').replace(/([^s])s$/, '$1')

const isParameter = (segment: string | undefined): boolean => segment?.startsWith(':') ?? false
/** Words that end like a plural and name one thing. */
const SINGLE = new Set(['series', 'settings', 'stats', 'status'])
const isPlural = (word: string): boolean => /[^s]s$/.test(word) && !SINGLE.has(word)

/** The resources that a path names, each in the singular but the last. */
function thingsOf(segments: readonly string[]): string {
  const named = segments.filter(segment => !isParameter(segment))
  return named.map((segment, index) => pascal(index < named.length - 1 ? singular(segment) : segment)).join('')
}

/** Whether a route answers all of something, without pages. */
const isList = ({ answerSchema }: Route): boolean => answerSchema?.properties?.data?.type === 'array'

function verbFor(route: Route, segments: readonly string[]): [verb: string, things: string] {
  const last = segments.at(-1) ?? ''
  const before = segments.at(-2)
  const all = thingsOf(segments)
  if (isParameter(last)) {
    const things = thingsOf(segments.slice(0, -1).map(singular))
    const verbs = { GET: 'get', PATCH: 'update', PUT: 'replace', DELETE: 'delete', POST: 'post' } as const
    return [verbs[route.method], things]
  }
  switch (route.method) {
    case 'GET':
      return [
        route.querySchema?.properties.page || isPlural(last) || (SINGLE.has(last) && isList(route)) ? 'list' : 'get',
        all,
      ]
    case 'PUT':
      return ['set', all]
    case 'PATCH':
      return ['update', all]
    case 'DELETE':
      return ['delete', all]
    case 'POST':
      if (route.status === 201 && isPlural(last)) return ['create', thingsOf(segments.map(singular))]
      // An action on one thing, on many (bulk), or on the whole collection.
      if (isParameter(before)) return [camel(last), thingsOf(segments.slice(0, -1).map(singular))]
      if (before === 'bulk') return [`bulk${pascal(last)}`, thingsOf(segments.slice(0, -2))]
      return [camel(last), thingsOf(segments.slice(0, -1))]
  }
}

export function operationId(route: Route, isLegacy: boolean): string {
  const isCollector = familyOf(route.path) === 'collector'
  const segments = route.path.split('/').filter(segment => segment !== '')
  const own = segments[0] === 'monitoring' && segments.length > 1 ? segments.slice(1) : segments
  const [verb, things] = verbFor(route, isCollector ? own.slice(1) : own)
  return `${verb}${things}${isCollector ? 'ForCollector' : ''}${isLegacy ? 'Frozen' : ''}`
}
