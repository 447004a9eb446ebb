// Content negotiation (RFC 9110 section 12.5): the media type of the response, and the language of its texts.
import Negotiator from 'negotiator'
import { type Language, languages } from './api-texts.ts'

const JSON_TYPE = 'application/json'
/** One of these that is named is enough, since every refusal is JSON. A range such as `text/*` names none. */
const NAMED = [JSON_TYPE, 'text/event-stream']
export const ANYTHING = '*/*'

/**
 * False when an Accept header excludes JSON and every type that the route may answer with. Parameters of a media type,
 * such as a charset, do not matter.
 */
export function accepts(accept: string | null, answerTypes: readonly string[] = []): boolean {
  if (accept === null || accept.trim() === '' || accept === ANYTHING || answerTypes.includes(ANYTHING)) return true
  const negotiator = new Negotiator({ headers: { accept } })
  const named = negotiator.mediaTypes().map(type => type.toLowerCase())
  if (named.some(type => [...NAMED, ...answerTypes].includes(type) || type.endsWith('+json'))) return true
  return negotiator.mediaTypes([JSON_TYPE, ...answerTypes]).length > 0
}

/** The best of vi and en by quality value of an Accept-Language header; en by default. */
export function preferredLanguage(header: string | null): Language {
  if (header === null) return 'en'
  const [best] = new Negotiator({ headers: { 'accept-language': header } }).languages([...languages])
  return languages.find(language => language === best) ?? 'en'
}
