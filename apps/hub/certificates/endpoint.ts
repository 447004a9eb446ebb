// Where a certificate is served: a host, a port, and the name that is asked for.
import { Type } from '@sinclair/typebox'
import { parseHostName } from '../../../core/dns/domain-name.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { integer, optional, text } from '../platform/http/request-schema.ts'
import { named, nullable, string } from '../platform/http/response-schema.ts'
import { normalHost } from './good-for-host.ts'

const PORT_DEFAULT = 443

export type Endpoint = { readonly host: string; readonly port: number; readonly sni: string | null }
type GivenEndpoint = {
  readonly host: string
  readonly port?: number | null | undefined
  readonly sni?: string | null | undefined
}

export const endpointMembers = {
  host: text(253),
  port: optional(integer(1, 65_535)),
  sni: optional(text(253)),
}
export const endpointForm = Type.Object(endpointMembers)
export const endpointResponse = named('CertificateEndpoint', {
  host: string(),
  port: Type.Integer(),
  sni: nullable(string()),
})

/** An endpoint as a request gives it, in the form that is kept. */
export const normalEndpoint = ({ host, port, sni }: GivenEndpoint): Endpoint => ({
  host: parseAddress(host)?.toString() ?? parseHostName(host) ?? host,
  port: port ?? PORT_DEFAULT,
  sni: sni ? normalHost(sni) : null,
})

type Fault = { readonly field: 'host' | 'sni'; readonly text: Words }

/** What is wrong with a member of an endpoint that its schema cannot say; the schema names what is no text. */
export function endpointFault({ host, sni }: { readonly host?: unknown; readonly sni?: unknown }): Fault | null {
  const text = words('host_or_address')
  if (typeof host === 'string' && parseAddress(host) === null && parseHostName(host) === null)
    return { field: 'host', text }
  return typeof sni === 'string' && sni !== '' && parseHostName(sni) === null ? { field: 'sni', text } : null
}

/** The name that clients ask for there; null where they have an address only. */
export const askedName = ({ host, sni }: Pick<Endpoint, 'host' | 'sni'>): string | null =>
  sni ?? (parseAddress(host) === null ? host : null)

/** `www.example.com:443`, `[2001:db8::1]:443`. */
export const placeText = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
