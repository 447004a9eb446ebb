// Merges file, environment and options into a typed configuration, or returns every fault in them.
import type { Config, ConfigFault, Key, Keys } from './keys.ts'
import { environmentName } from './keys.ts'

export type ConfigSources = {
  /** The parsed YAML document, or undefined without a file. */
  readonly file: unknown
  readonly environment: Readonly<Record<string, string | undefined>>
  /** From the command line, by dotted key. */
  readonly options: Readonly<Record<string, unknown>>
  /** Reads a secret's file (`…_file` keys); throws with a message for the operator. */
  readonly readSecretFile: (path: string) => string
}

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const SIZE_UNITS: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 }

/** Milliseconds of `30s`, `5m`, `1h30m`, `24h`, `90d`; null for anything else. */
export function parseDuration(value: string): number | null {
  if (!/^(\d+(ms|s|m|h|d))+$/.test(value)) return value === '0' ? 0 : null
  let total = 0
  for (const [, count, unit] of value.matchAll(/(\d+)(ms|s|m|h|d)/g)) total += Number(count) * DURATION_UNITS[unit!]!
  return total
}

/** Bytes of `1048576` or `64 MiB`; null for anything else. */
export function parseSize(value: string): number | null {
  const found = /^(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)?$/.exec(value)
  return found ? Math.round(Number(found[1]) * SIZE_UNITS[found[2] ?? 'B']!) : null
}

function parseNumber(key: Key, raw: unknown): number | null {
  if (key.kind === 'duration') return typeof raw === 'string' ? parseDuration(raw) : raw === 0 ? 0 : null
  if (key.kind === 'size') return typeof raw === 'number' ? raw : typeof raw === 'string' ? parseSize(raw) : null
  const value = typeof raw === 'number' ? raw : typeof raw === 'string' && raw.trim() !== '' ? Number(raw) : Number.NaN
  if (!Number.isFinite(value)) return null
  return key.kind === 'integer' && !Number.isInteger(value) ? null : value
}

const NUMBER_WORDS: Readonly<Record<string, string>> = {
  duration: 'a duration such as 30s, 5m or 24h',
  size: 'a number of bytes, or a size such as 64 MiB',
  integer: 'a whole number',
  number: 'a number',
}

type Parsed = { value: unknown } | { expected: string }

function parseValue(key: Key, raw: unknown): Parsed {
  switch (key.kind) {
    case 'boolean':
      if (typeof raw === 'boolean') return { value: raw }
      return raw === 'true' || raw === 'false' ? { value: raw === 'true' } : { expected: 'true or false' }
    case 'integer':
    case 'number':
    case 'duration':
    case 'size': {
      const value = parseNumber(key, raw)
      if (value === null) return { expected: NUMBER_WORDS[key.kind]! }
      if ((key.min !== undefined && value < key.min) || (key.max !== undefined && value > key.max)) {
        const unit = key.kind === 'duration' ? ' ms' : ''
        return { expected: `${NUMBER_WORDS[key.kind]}, ${key.min ?? '-∞'} to ${key.max ?? '∞'}${unit}` }
      }
      return { value }
    }
    case 'list': {
      const items = typeof raw === 'string' ? raw.split(',').map(item => item.trim()) : raw
      const isList = Array.isArray(items) && items.every(item => typeof item === 'string')
      return isList ? { value: items } : { expected: 'a list of strings' }
    }
    case 'map':
      return typeof raw === 'object' && raw !== null && !Array.isArray(raw) ? { value: raw } : { expected: 'a mapping' }
    case 'address': {
      const found = typeof raw === 'string' ? /^(.+):(\d{1,5})$/.exec(raw) : null
      return found && Number(found[2]) <= 65_535
        ? { value: raw }
        : { expected: 'HOST:PORT, for example 127.0.0.1:8080' }
    }
    case 'text':
    case 'secret': {
      const value = typeof raw === 'number' ? String(raw) : raw
      if (typeof value !== 'string') return { expected: 'text' }
      if (key.choices && !key.choices.includes(value)) return { expected: `one of ${key.choices.join(', ')}` }
      return { value }
    }
  }
}

/** The leaves of a nested mapping by dotted key; the subtree of a key of kind map stays whole. */
function flatten(keys: Keys, node: unknown, prefix: string, into: Map<string, unknown>): void {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) return
  for (const [name, value] of Object.entries(node)) {
    const key = prefix ? `${prefix}.${name}` : name
    const isBranch = typeof value === 'object' && value !== null && !Array.isArray(value) && keys[key]?.kind !== 'map'
    if (isBranch) flatten(keys, value, key, into)
    else if (value !== null && value !== undefined) into.set(key, value)
  }
}

/**
 * Resolves a configuration. When there are faults, the faulty keys have their defaults and the config must not be used.
 */
export function resolveConfig<T extends Keys>(
  keys: T,
  sources: ConfigSources,
): { config: Config<T>; faults: ConfigFault[] } {
  const faults: ConfigFault[] = []
  const given = new Map<string, unknown>()
  if (
    sources.file !== undefined &&
    sources.file !== null &&
    (typeof sources.file !== 'object' || Array.isArray(sources.file))
  )
    faults.push({ key: '(file)', value: '', message: 'the configuration file must be a mapping of keys' })
  flatten(keys, sources.file, '', given)
  for (const key of Object.keys(keys)) {
    for (const name of [key, `${key}_file`]) {
      const value = sources.environment[environmentName(name)]
      if (value !== undefined && value !== '') given.set(name, value)
    }
  }
  for (const [key, value] of Object.entries(sources.options)) if (value !== undefined) given.set(key, value)

  const resolved: Record<string, unknown> = {}
  for (const [key, definition] of Object.entries(keys)) resolved[key] = definition.default
  for (const [name, raw] of given) {
    const isFile = name.endsWith('_file') && keys[name] === undefined
    const key = isFile ? name.slice(0, -'_file'.length) : name
    const definition = keys[key]
    if (!definition || (isFile && definition.kind !== 'secret')) {
      // The value is left out, since it may be a secret whose key is misspelt.
      faults.push({ key: name, value: '', message: 'is not a known key' })
      continue
    }
    let value = raw
    if (isFile) {
      if (given.has(key)) continue
      try {
        value = sources.readSecretFile(String(raw)).trim()
      } catch (error) {
        faults.push({ key: name, value: String(raw), message: error instanceof Error ? error.message : String(error) })
        continue
      }
    }
    const parsed = parseValue(definition, value)
    if ('value' in parsed) resolved[key] = parsed.value
    else
      faults.push({
        key,
        value: definition.kind === 'secret' ? '(secret)' : String(raw),
        message: `must be ${parsed.expected}`,
      })
  }
  return { config: resolved as Config<T>, faults }
}
