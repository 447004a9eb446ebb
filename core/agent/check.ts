// The active checks of an agent: what each type needs, and the series labels of its results (document 1 "Check sync
// envelope", document 3 "Agent config semantics", decisions G-62, G-63).
import { limits } from '../limits.ts'

type CheckOf<T extends string, Fields> = {
  readonly id: string
  readonly type: T
  readonly timeoutMs: number
} & Readonly<Fields>

export type Check =
  | CheckOf<'service', { name: string }>
  | CheckOf<'port', { port: number; proto: 'tcp' | 'udp' }>
  | CheckOf<'tcp', { target: string }>
  | CheckOf<'http', { url: string; expectStatus: number }>
  | CheckOf<'cert', { target: string }>

/** A check as it comes from configuration, before validation: absent fields are empty or 0. */
export type RawCheck = {
  readonly id: string
  readonly type: string
  readonly name: string
  readonly target: string
  readonly port: number
  readonly proto: string
  readonly url: string
  readonly expectStatus: number
  readonly timeoutSeconds: number
}

const SERVICE_NAME = /^[A-Za-z0-9@._-]{1,128}$/
const EXPECT_STATUS_DEFAULT = 200

/** host and port of `host:port` or `[v6]:port`; null for anything else. */
export function parseTarget(target: string): { host: string; port: number } | null {
  const found = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]/]+)):(\d{1,5})$/.exec(target)
  if (!found) return null
  const port = Number(found[3])
  const host = found[1] ?? found[2] ?? ''
  return port >= 1 && port <= 65_535 ? { host, port } : null
}

function isHttpUrl(text: string): boolean {
  return /^https?:\/\/[^\s/@?#]+(?:[/?#].*)?$/i.test(text)
}

const isStatus = (status: number): boolean => Number.isInteger(status) && status >= 100 && status <= 599

/**
 * The validated check, or `{ fault }` with a sentence for the operator. An absent timeout is 5 s, an absent expected
 * status 200.
 */
export function parseCheck(raw: RawCheck): Check | { fault: string } {
  const fault = (what: string) => ({ fault: `check ${raw.id || '(without id)'}: ${what}` })
  const { id } = raw
  if (id === '') return fault('has no id')
  const seconds = raw.timeoutSeconds === 0 ? limits.checkTimeoutSecondsDefault : raw.timeoutSeconds
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > limits.checkTimeoutSecondsMax)
    return fault(`timeout_seconds must be 1 to ${limits.checkTimeoutSecondsMax}`)
  const timeoutMs = seconds * 1000
  switch (raw.type) {
    case 'service':
      return SERVICE_NAME.test(raw.name)
        ? { id, type: 'service', timeoutMs, name: raw.name }
        : fault('name must be 1 to 128 characters of A-Z a-z 0-9 @ . _ -')
    case 'port': {
      const proto = raw.proto === 'udp' ? 'udp' : raw.proto === 'tcp' ? 'tcp' : null
      if (proto === null) return fault('proto must be tcp or udp')
      const isPort = Number.isInteger(raw.port) && raw.port >= 1 && raw.port <= 65_535
      return isPort ? { id, type: 'port', timeoutMs, port: raw.port, proto } : fault('port must be 1 to 65535')
    }
    case 'tcp':
    case 'cert':
      return parseTarget(raw.target)
        ? { id, type: raw.type, timeoutMs, target: raw.target }
        : fault('target must be host:port')
    case 'http': {
      if (!isHttpUrl(raw.url)) return fault('url must be an http or https address without credentials')
      const expectStatus = raw.expectStatus === 0 ? EXPECT_STATUS_DEFAULT : raw.expectStatus
      if (!isStatus(expectStatus)) return fault('expect_status must be 100 to 599')
      return { id, type: 'http', timeoutMs, url: raw.url, expectStatus }
    }
    default:
      return fault('type must be service, port, tcp, http or cert')
  }
}
