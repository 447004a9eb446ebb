// The text of a manifest as a value: YAML 1.2 core schema, one document, no tags and no directives, at most 100 aliases
// and 20 levels (resources.md R-043). Hostile text is told of in far less than a second and without much memory:
// nothing is composed before its tokens were counted, and nothing here takes more than the length of the text.
import {
  type Alias,
  Composer,
  CST,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  visit,
} from 'yaml'
import { isAddressWithUser, PRIVATE_KEY, SECRET_KEY, type TextRange } from './manifest-secrets.ts'

const ALIASES_MAX = 100
const DEPTH_MAX = 20
/**
 * How much values, keys and the characters of them may be with every alias in its place: several times what a text
 * without aliases can hold, and little enough to be kept.
 */
const SIZE_MAX = 1_000_000
/** The parser keeps a document, the collections that are open, and what stands in the innermost one. */
const OPEN_TOKENS_MAX = DEPTH_MAX * 2 + 4
const MESSAGE_MAX = 300

/** A line is null where the whole text is meant. */
type TextFault = { readonly line: number | null; readonly message: string }
type Path = readonly (string | number)[]

export type ManifestText = {
  readonly value: unknown
  /** Members that look like secrets. */
  readonly secrets: readonly (readonly string[])[]
  /** What of the text is not kept: the values of those, also where they stand in the anchor of an alias. */
  readonly hidden: readonly TextRange[]
  /** The line of the member of a path, or of the nearest one above it that exists. */
  readonly lineOf: (path: Path) => number | null
}

class Refused extends Error {
  constructor(
    message: string,
    readonly offset: number | null,
  ) {
    super(message)
  }
}

/** The tokens of a text; throws Refused for what a manifest may not have. */
function tokensOf(text: string, lines: LineCounter): CST.Token[] {
  const parser = new Parser(lines.addNewLine)
  const tokens: CST.Token[] = []
  let aliases = 0
  lines.addNewLine(0)
  for (const lexeme of new Lexer().lex(text)) {
    const type = CST.tokenType(lexeme)
    if (type === 'tag') throw new Refused('tags such as !!str are not allowed', parser.offset)
    if (type === 'directive-line') throw new Refused('directives such as %YAML are not allowed', parser.offset)
    if (type === 'alias' && ++aliases > ALIASES_MAX)
      throw new Refused(`at most ${ALIASES_MAX} aliases are allowed`, parser.offset)
    for (const token of parser.next(lexeme)) tokens.push(token)
    if (parser.stack.length > OPEN_TOKENS_MAX) throw tooDeep(parser.offset)
  }
  for (const token of parser.end()) tokens.push(token)
  return tokens
}

const tooDeep = (offset: number | null): Refused => new Refused(`is nested more than ${DEPTH_MAX} levels deep`, offset)

const offsetOf = (node: unknown): number | null =>
  typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range)
    ? Number(node.range[0])
    : null

const keyOf = (key: unknown): string => (isScalar(key) ? String(key.value) : String(key))

/** Escapes can write what the database cannot keep. */
function checkText(text: string, node: unknown): void {
  if (text.includes('\0') || !text.isWellFormed())
    throw new Refused('must hold neither the character NUL nor half of a surrogate pair', offsetOf(node))
}

/** Refuses what is nested too deep and keys that stand twice in a map: the library would compare each with each. */
function checkNode(node: unknown, depth: number): void {
  if (isScalar(node)) checkText(String(node.value), node)
  if (isMap(node) || isSeq(node)) {
    if (depth > DEPTH_MAX) throw tooDeep(offsetOf(node))
    const seen = new Set<string>()
    for (const item of node.items) {
      if (!isMap(node)) checkNode(item, depth + 1)
      else {
        const { key, value } = item as { key: unknown; value: unknown }
        const name = keyOf(key)
        if (!isScalar(key) || isAlias(key)) throw new Refused('keys must be texts', offsetOf(key))
        checkText(name, key)
        if (seen.has(name)) throw new Refused(`${name}: stands twice`, offsetOf(key))
        seen.add(name)
        checkNode(value, depth + 1)
      }
    }
  }
}

/**
 * Aliases can nest what stands in one place below another, and multiply it; the value is walked as it is. Returns how
 * much of SIZE_MAX is left.
 */
function checkExpanded(value: unknown, depth: number, left: number): number {
  let rest = left - 1 - (typeof value === 'string' ? value.length : 0)
  if (rest < 0) throw new Refused('is too large with its aliases replaced', null)
  if (typeof value !== 'object' || value === null) return rest
  if (depth > DEPTH_MAX) throw tooDeep(null)
  for (const [key, member] of Object.entries(value))
    rest = checkExpanded(member, depth + 1, Array.isArray(value) ? rest : rest - key.length)
  return rest
}

function composed(text: string, lines: LineCounter): Document {
  const composer = new Composer({ version: '1.2', schema: 'core', uniqueKeys: false, prettyErrors: false })
  const documents: Document[] = []
  for (const document of composer.compose(tokensOf(text, lines), true, text.length)) {
    documents.push(document)
    if (documents.length > 1) throw new Refused('only one YAML document is allowed', document.range[0])
  }
  const [document] = documents
  if (!document) throw new Refused('holds no YAML document', null)
  const [error] = document.errors
  if (error) throw new Refused(`is not valid YAML: ${error.message}`, error.pos[0])
  checkNode(document.contents, 1)
  return document
}

const hasAnchor = (node: unknown): node is Node & { readonly anchor: string } =>
  isNode(node) && 'anchor' in node && typeof node.anchor === 'string'

/** What each alias stands for: of several anchors with its name the last one before it. */
function meantByAliases(document: Document): ReadonlyMap<Alias, Node> {
  const anchored = new Map<string, Node>()
  const meant = new Map<Alias, Node>()
  visit(document, (_key, node) => {
    if (hasAnchor(node)) anchored.set(node.anchor, node)
    const found = isAlias(node) ? anchored.get(node.source) : undefined
    if (isAlias(node) && found) meant.set(node, found)
  })
  return meant
}

function secretsOf(document: Document): Pick<ManifestText, 'secrets' | 'hidden'> {
  const meant = meantByAliases(document)
  const secrets: (readonly string[])[] = []
  const hidden = new Map<Node, TextRange>()
  const hide = (value: Node): void => {
    if (!value.range || hidden.has(value)) return
    hidden.set(value, { from: value.range[0], to: value.range[1] })
    visit(value, {
      Alias(_key, alias) {
        const anchor = meant.get(alias)
        if (anchor) hide(anchor)
      },
    })
  }
  const walk = (node: unknown, path: readonly string[]): void => {
    if (isSeq(node)) for (const [index, item] of node.items.entries()) walk(item, [...path, String(index)])
    if (!isMap(node)) return
    for (const { key, value } of node.items) {
      const [name, said] = [keyOf(key), isAlias(value) ? meant.get(value) : value]
      const text = isScalar(said) ? String(said.value) : ''
      const isSecret = SECRET_KEY.test(name) || PRIVATE_KEY.test(text)
      if (isNode(value) && (isSecret || isAddressWithUser(name, text))) hide(value)
      if (isNode(value) && isSecret) secrets.push([...path, name])
      else walk(value, [...path, name])
    }
  }
  walk(document.contents, [])
  return { secrets, hidden: [...hidden.values()] }
}

function lineFinder(document: Document, lines: LineCounter): ManifestText['lineOf'] {
  const lineAt = (node: unknown): number | null => {
    const offset = offsetOf(node)
    return offset === null ? null : lines.linePos(offset).line
  }
  return path => {
    let node: unknown = document.contents
    // A text without a value begins at its first line.
    let line = lineAt(node) ?? 1
    for (const step of path) {
      if (isMap(node)) {
        const { items } = node
        const named = (name: string) => items.find(item => keyOf(item.key) === name)
        // Fields may have been called as the API calls them.
        const pair = named(String(step)) ?? named(`${step}_id`) ?? named(String(step).replace(/s$/, '_ids'))
        if (!pair) return line
        line = lineAt(pair.key) ?? line
        node = pair.value
      } else if (isSeq(node)) {
        node = node.items[Number(step)]
        line = lineAt(node) ?? line
      } else return line
    }
    return line
  }
}

/** Where the first alias stands that nothing before it is called, else the first one of all; null without aliases. */
function faultyAlias(document: Document): number | null {
  const anchors = new Set<string>()
  const found: { first: number | null; unknown: number | null } = { first: null, unknown: null }
  visit(document, (_key, node) => {
    if (isAlias(node)) {
      found.first ??= offsetOf(node)
      if (!anchors.has(node.source)) found.unknown ??= offsetOf(node)
    } else if (hasAnchor(node)) anchors.add(node.anchor)
  })
  return found.unknown ?? found.first
}

/** Reads the text of a manifest: its value, or what is wrong with it. */
export function readManifestText(text: string): ManifestText | { readonly fault: TextFault } {
  const lines = new LineCounter()
  const lineAt = (offset: number | null): number | null =>
    offset === null ? null : text.slice(0, Math.min(offset, text.length)).split('\n').length
  // The body of a request was decoded already: what was no UTF-8 in it is this character now.
  const replaced = text.indexOf('\ufffd')
  if (replaced >= 0) return { fault: { line: lineAt(replaced), message: 'is not UTF-8 text' } }
  let document: Document | null = null
  try {
    document = composed(text, lines)
    // The library would count what stands in an anchor too; here aliases are counted as they stand in the text.
    const value: unknown = document.toJS({ maxAliasCount: -1 })
    checkExpanded(value, 1, SIZE_MAX)
    return { value, ...secretsOf(document), lineOf: lineFinder(document, lines) }
  } catch (error) {
    // What has no place of its own comes of aliases.
    const lineOfAliases = () => lineAt(document && faultyAlias(document))
    if (error instanceof Refused) {
      const line = error.offset === null ? lineOfAliases() : lineAt(error.offset)
      return { fault: { line, message: error.message } }
    }
    // The library throws a ReferenceError for an alias without an anchor, and for one inside of its own.
    if (error instanceof ReferenceError)
      return { fault: { line: lineOfAliases(), message: `is not valid YAML: ${error.message}`.slice(0, MESSAGE_MAX) } }
    if (error instanceof RangeError) return { fault: { line: lineOfAliases(), message: tooDeep(null).message } }
    throw error
  }
}
