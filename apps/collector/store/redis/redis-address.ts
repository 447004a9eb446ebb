// Where Redis is: an address of one server, or of Sentinels, which know the primary of the moment. Sentinel's own form
// is no standard; this one is what other clients take:
// redis+sentinel://user:password@host:port,host:port/NAME/database.

type Endpoint = { readonly host: string; readonly port: number }

/** As `redis.url` says it, taken apart. `master` is the name of the primary at the Sentinels, null for one server. */
type ParsedRedisUrl = {
  readonly isTls: boolean
  readonly username: string
  readonly password: string
  readonly endpoints: readonly Endpoint[]
  readonly master: string | null
  readonly database: number
}

/** All that a connection needs, as plain data: it goes to threads. Certificates and keys are PEM texts. */
export type RedisAddress = {
  readonly url: string
  readonly sentinelPassword: string | null
  readonly ca: string | null
  readonly certificate: string | null
  readonly key: string | null
}

const REDIS_PORT = 6379
const SENTINEL_PORT = 26_379

/** An address without a certificate of its own and without Sentinels that ask for a password. */
export const plainAddress = (url: string): RedisAddress => ({
  url,
  sentinelPassword: null,
  ca: null,
  certificate: null,
  key: null,
})

/** A name or IPv4 address, or an IPv6 address in brackets, and a port. */
function endpointOf(text: string, defaultPort: number): Endpoint | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text)
  if (!match) return null
  const port = match[3] === undefined ? defaultPort : Number(match[3])
  return port > 0 && port <= 65_535 ? { host: match[1] ?? match[2]!, port } : null
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** Null where the text is not an address of a Redis: `redis://`, `rediss://`, or the two with `+sentinel`. */
export function parseRedisUrl(url: string): ParsedRedisUrl | null {
  const match = /^redis(s?)(\+sentinel)?:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/?#]+)((?:\/[^/?#]*)*)$/.exec(url)
  if (!match) return null
  const [, tls, sentinel, user = '', secret = '', hosts, path = ''] = match
  const isSentinel = sentinel !== undefined
  const endpoints = hosts!.split(',').map(text => endpointOf(text, isSentinel ? SENTINEL_PORT : REDIS_PORT))
  const parts = path.split('/').slice(1)
  const master = isSentinel ? decoded(parts.shift() ?? '') : null
  const [database = '', ...rest] = parts
  const [username, password] = [decoded(user), decoded(secret)]
  if (username === null || password === null || rest.length > 0 || !/^\d{0,4}$/.test(database)) return null
  if (isSentinel ? !master : endpoints.length > 1) return null
  const known = endpoints.filter(endpoint => endpoint !== null)
  if (known.length < endpoints.length) return null
  return { isTls: tls === 's', username, password, endpoints: known, master, database: Number(database) }
}
