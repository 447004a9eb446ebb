// What each type of check looks at: the form of its target, the metric and labels of its series (document 1
// "Check sync envelope"; decision G-63).
import { isDeepStrictEqual } from 'node:util'
import type { RawMatchers } from '../../../core/alerting/rules/matchers.ts'
import { targetLabel } from '../../../core/series/labels.ts'
import type { CheckType } from '../platform/db/schema.ts'
import { type Words, words } from '../platform/http/api-texts.ts'

export const checkTypes = ['service', 'port', 'tcp', 'http', 'cert'] as const satisfies readonly CheckType[]

export type Target = Readonly<Record<string, string | number>>

const SERVICE_NAME = /^[A-Za-z0-9@._-]{1,128}$/
const URL_CHARS_MAX = 2048
export const STATUS_DEFAULT = 200

type Unchecked = Readonly<Record<string, unknown>>
type Parsed = { readonly target: Target } | { readonly field: string; readonly text: Words }

const fault = (field: string, text: Words): Parsed => ({ field: `target.${field}`, text })
const isPort = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535

/** `host:port`, with an IPv6 host in brackets. */
function isHostPort(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > 260) return false
  const found = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?):(\d{1,5})$/.exec(value)
  return found !== null && isPort(Number(found[3]))
}

function parsePort(raw: Unchecked): Parsed {
  if (!isPort(raw.port)) return fault('port', words('pattern'))
  if (raw.proto !== 'tcp' && raw.proto !== 'udp') return fault('proto', words('one_of', { values: 'tcp, udp' }))
  return { target: { port: raw.port, proto: raw.proto } }
}

function parseHttp(raw: Unchecked): Parsed {
  const url = typeof raw.url === 'string' && raw.url.length <= URL_CHARS_MAX ? URL.parse(raw.url) : null
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return fault('url', words('url'))
  if (url.username !== '' || url.password !== '') return fault('url', words('url_credentials'))
  const status = raw.expect_status ?? STATUS_DEFAULT
  if (!Number.isInteger(status) || (status as number) < 100 || (status as number) > 599)
    return fault('expect_status', words('integer'))
  return { target: { url: raw.url as string, expect_status: status as number } }
}

/** The stored target of a type, with only the fields of that type, or the field that is wrong. */
export function parseTarget(type: CheckType, raw: Unchecked): Parsed {
  switch (type) {
    case 'service':
      if (typeof raw.name !== 'string' || !SERVICE_NAME.test(raw.name)) return fault('name', words('pattern'))
      return { target: { name: raw.name } }
    case 'port':
      return parsePort(raw)
    case 'tcp':
    case 'cert':
      return isHostPort(raw.target) ? { target: { target: raw.target } } : fault('target', words('pattern'))
    case 'http':
      return parseHttp(raw)
  }
}

export const UP_METRICS = { service: 'service_up', port: 'port_up', tcp: 'tcp_connect_up', http: 'http_up' } as const

/** The matchers that pick the series of a check, whatever server it runs on. */
export function targetMatchers(type: CheckType, target: Target): RawMatchers {
  const text = (value: string | number | undefined): string => String(value ?? '')
  switch (type) {
    case 'service':
      return { name: text(target.name) }
    case 'port':
      return { port: text(target.port), proto: text(target.proto) }
    case 'tcp':
    case 'cert':
      return { target: targetLabel(text(target.target)) }
    case 'http':
      return { target: targetLabel(text(target.url)) }
  }
}

/** True when two checks of a type would write the same series. */
export const isSameSeries = (type: CheckType, one: Target, other: Target): boolean =>
  isDeepStrictEqual(targetMatchers(type, one), targetMatchers(type, other))
