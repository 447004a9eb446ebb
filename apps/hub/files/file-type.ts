// What a file is, told from its content and never from its name (decision R-074). What could run on somebody's computer
// or in a browser is refused, and so is what nobody can name.

import { parseForeignJson } from '../../../core/wire/json-depth.ts'

type FileType =
  | 'application/pdf'
  | 'image/png'
  | 'image/jpeg'
  | 'image/gif'
  | 'image/webp'
  | 'application/zip'
  | 'application/gzip'
  | 'application/json'
  | 'application/yaml'
  | 'application/x-pem-file'
  | 'text/csv'
  | 'text/plain'

type Refused = { readonly refused: 'executable' | 'markup' | 'private_key' | 'unknown' }

const SNIFFED_BYTES = 64 * 1024

const startsWith = (bytes: Uint8Array, ...begin: readonly number[]): boolean =>
  begin.every((byte, index) => bytes[index] === byte)
const textAt = (bytes: Uint8Array, from: number, text: string): boolean =>
  [...text].every((letter, index) => bytes[from + index] === letter.charCodeAt(0))

const isExecutable = (bytes: Uint8Array): boolean =>
  startsWith(bytes, 0x7f, 0x45, 0x4c, 0x46) ||
  textAt(bytes, 0, 'MZ') ||
  textAt(bytes, 0, '#!') ||
  startsWith(bytes, 0xef, 0xbb, 0xbf, 0x23, 0x21) ||
  // Mach-O, of either byte order and width, and of several architectures at once.
  [0xce, 0xcf].some(last => startsWith(bytes, 0xfe, 0xed, 0xfa, last) || startsWith(bytes, last, 0xfa, 0xed, 0xfe)) ||
  startsWith(bytes, 0xca, 0xfe, 0xba, 0xbe) ||
  startsWith(bytes, 0xbe, 0xba, 0xfe, 0xca)

function binaryType(bytes: Uint8Array): FileType | null {
  if (textAt(bytes, 0, '%PDF-')) return 'application/pdf'
  if (startsWith(bytes, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return 'image/png'
  if (startsWith(bytes, 0xff, 0xd8, 0xff)) return 'image/jpeg'
  if (textAt(bytes, 0, 'GIF87a') || textAt(bytes, 0, 'GIF89a')) return 'image/gif'
  if (textAt(bytes, 0, 'RIFF') && textAt(bytes, 8, 'WEBP')) return 'image/webp'
  if (startsWith(bytes, 0x50, 0x4b, 0x03, 0x04) || startsWith(bytes, 0x50, 0x4b, 0x05, 0x06)) return 'application/zip'
  if (startsWith(bytes, 0x1f, 0x8b)) return 'application/gzip'
  return null
}

/** The text of UTF-8 without control characters; null for anything else. */
function textOf(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what text has not.
    return /[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]/.test(text) ? null : text
  } catch {
    return null
  }
}

/** What a text for browsers may begin with (the MIME Sniffing standard), after comments and declarations. */
const BEFORE_MARKUP = /^(\s|<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<!doctype[^>]*>)*/i
const MARKUP_TAG =
  /^<(html|head|body|script|iframe|style|title|table|img|object|embed|link|meta|form|a|div|h1|font|p|b|br)[\s>/]/i
/** What runs scripts wherever it stands in a document, and drawings that may hold them. */
const MARKUP = /<!doctype\s+html|<(html|script|([a-z]+:)?svg)[\s>/]/i

function isMarkup(text: string): boolean {
  const begin = text.slice(0, SNIFFED_BYTES)
  return MARKUP.test(begin) || MARKUP_TAG.test(begin.replace(BEFORE_MARKUP, ''))
}

function isJson(text: string, bytes: Uint8Array): boolean {
  if (!/^\s*[[{]/.test(text)) return false
  try {
    parseForeignJson(bytes)
    return true
  } catch {
    return false
  }
}

/** Lines that all have the same number of separators, and more than one column. */
function isCsv(text: string): boolean {
  const lines = text.slice(0, SNIFFED_BYTES).split(/\r?\n/).slice(0, 50)
  // The last of many may be cut.
  const whole = (lines.length > 2 ? lines.slice(0, -1) : lines).filter(line => line !== '')
  if (whole.length < 2) return false
  return [',', ';', '\t'].some(separator => {
    const counts = whole.map(line => line.replace(/"([^"]|"")*"/g, '').split(separator).length)
    return (counts[0] ?? 0) > 1 && counts.every(count => count === counts[0])
  })
}

const YAML_LINE = /^(---|%YAML|[\w."'/-]+\s*:(\s|$)|- )/
const isYaml = (text: string): boolean => {
  const [first = ''] = text
    .slice(0, SNIFFED_BYTES)
    .split(/\r?\n/)
    .filter(line => line.trim() !== '' && !line.startsWith('#'))
  return YAML_LINE.test(first)
}

export function fileTypeOf(bytes: Uint8Array): FileType | Refused {
  if (isExecutable(bytes)) return { refused: 'executable' }
  const binary = binaryType(bytes)
  if (binary !== null) return binary
  const text = textOf(bytes)
  if (text === null) return { refused: 'unknown' }
  if (isMarkup(text)) return { refused: 'markup' }
  if (/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text)) return { refused: 'private_key' }
  if (/^\s*-----BEGIN [A-Z0-9 ]+-----/.test(text)) return 'application/x-pem-file'
  if (isJson(text, bytes)) return 'application/json'
  if (isCsv(text)) return 'text/csv'
  return isYaml(text) ? 'application/yaml' : 'text/plain'
}
