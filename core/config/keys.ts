// Configuration as data: the keys that an executable knows, with kind, domain and default. Pure: the files and the
// environment are read by each executable's config.ts and handed in. Order: defaults, file, environment, options.

/** Durations are milliseconds, sizes bytes once parsed. */
type KeyKind = 'text' | 'secret' | 'boolean' | 'integer' | 'number' | 'duration' | 'size' | 'address' | 'list' | 'map'

type KeyOf<K extends KeyKind, T> = {
  readonly kind: K
  readonly default: T
  readonly doc: string
  readonly min?: number
  readonly max?: number
  readonly choices?: readonly string[]
}
export type Key =
  | KeyOf<'text' | 'secret' | 'address', string | null>
  | KeyOf<'boolean', boolean>
  | KeyOf<'integer' | 'number' | 'duration' | 'size', number>
  | KeyOf<'list', readonly string[]>
  | KeyOf<'map', Readonly<Record<string, unknown>>>

export type Keys = Readonly<Record<string, Key>>

type ValueOf<K extends Key> = K['kind'] extends 'boolean'
  ? boolean
  : K['kind'] extends 'integer' | 'number' | 'duration' | 'size'
    ? number
    : K['kind'] extends 'list'
      ? readonly string[]
      : K['kind'] extends 'map'
        ? Readonly<Record<string, unknown>>
        : K['default'] extends string
          ? string
          : string | null

/** The resolved configuration: one member a key, named by its dotted key, so that a search for a key finds its uses. */
export type Config<T extends Keys> = { readonly [K in keyof T]: ValueOf<T[K]> }

/** A fault in the configuration, worded for the operator. `value` is empty for secrets. */
export type ConfigFault = { readonly key: string; readonly value: string; readonly message: string }

type Bounds = { min?: number; max?: number }

export const text = <D extends string | null>(value: D, doc: string, choices?: readonly string[]) =>
  ({ kind: 'text', default: value, doc, ...(choices ? { choices } : {}) }) as const
export const secret = (doc: string) => ({ kind: 'secret', default: null as string | null, doc }) as const
export const address = <D extends string | null>(value: D, doc: string) =>
  ({ kind: 'address', default: value, doc }) as const
export const boolean = (value: boolean, doc: string) => ({ kind: 'boolean', default: value, doc }) as const
export const integer = (value: number, doc: string, bounds: Bounds = {}) =>
  ({ kind: 'integer', default: value, doc, min: 0, ...bounds }) as const
export const decimal = (value: number, doc: string, bounds: Bounds = {}) =>
  ({ kind: 'number', default: value, doc, ...bounds }) as const
export const duration = (valueMs: number, doc: string, bounds: Bounds = {}) =>
  ({ kind: 'duration', default: valueMs, doc, min: 0, ...bounds }) as const
export const size = (valueBytes: number, doc: string, bounds: Bounds = {}) =>
  ({ kind: 'size', default: valueBytes, doc, min: 0, ...bounds }) as const
export const list = (value: readonly string[], doc: string) => ({ kind: 'list', default: value, doc }) as const
export const map = (doc: string) => ({ kind: 'map', default: {} as Readonly<Record<string, unknown>>, doc }) as const

/** The environment variable of a key: `SVC_` and the key in capitals, `_` for dots. */
export const environmentName = (key: string): string => `SVC_${key.toUpperCase().replaceAll('.', '_')}`
