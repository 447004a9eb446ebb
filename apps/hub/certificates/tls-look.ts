// What a TLS server shows of itself: its certificates in the order in which it sends them. Nothing of them is trusted,
// nothing is sent to it. Whoever calls has checked the address.
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { type ForwardProxy, NoConnection, openConnection } from '../platform/open-connection.ts'

const TIMEOUT_MS = 10_000
const CERTIFICATES_MAX = 10

type Shown = { readonly sent: readonly Buffer[]; readonly tlsVersion: string }

/** No certificate was seen; the message is a word: timeout, refused, unreachable, tls. */
export class NotSeen extends Error {}

function sentBy(socket: TLSSocket): Buffer[] {
  const sent: Buffer[] = []
  const known = new Set<string>()
  let certificate: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (certificate?.raw && !known.has(certificate.fingerprint256) && sent.length < CERTIFICATES_MAX) {
    known.add(certificate.fingerprint256)
    sent.push(certificate.raw)
    certificate = certificate.issuerCertificate
  }
  return sent
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timeout',
  ENETUNREACH: 'unreachable',
  EHOSTUNREACH: 'unreachable',
}

/** The connection through the company's way out; null where it has none, and the handshake connects by itself. */
async function tunnelTo(place: { host: string; port: number }, via: ForwardProxy | null, timeoutMs: number) {
  if (via === null) return null
  try {
    return await openConnection(place, via, performance.now() + timeoutMs)
  } catch (error) {
    if (error instanceof NoConnection) throw new NotSeen(error.fault)
    throw error
  }
}

/** Shakes hands with a server, by the company's way out where it has one, and hangs up. Rejects with NotSeen. */
export async function lookAtTls(
  address: string,
  port: number,
  serverName: string | null,
  via: ForwardProxy | null,
  timeoutMs = TIMEOUT_MS,
): Promise<Shown> {
  const tunnel = await tunnelTo({ host: address, port }, via, timeoutMs)
  const { promise, resolve, reject } = Promise.withResolvers<Shown>()
  const socket = connect({
    ...(tunnel === null ? { host: address, port } : { socket: tunnel }),
    rejectUnauthorized: false,
    // Old servers are looked at too: that they are old is for others to say.
    minVersion: 'TLSv1',
    checkServerIdentity: () => undefined,
    ...(serverName === null ? {} : { servername: serverName }),
  })
  const timer = setTimeout(() => {
    reject(new NotSeen('timeout'))
    socket.destroy()
  }, timeoutMs)
  let isConnected = tunnel !== null
  socket.once('connect', () => {
    isConnected = true
  })
  socket.once('secureConnect', () => {
    const sent = sentBy(socket)
    if (sent.length === 0) reject(new NotSeen('tls'))
    else resolve({ sent, tlsVersion: socket.getProtocol() ?? 'unknown' })
  })
  socket.on('error', (error: NodeJS.ErrnoException) =>
    reject(new NotSeen(REASONS[error.code ?? ''] ?? (isConnected ? 'tls' : 'unreachable'))),
  )
  socket.once('close', () => reject(new NotSeen('tls')))
  return promise.finally(() => {
    clearTimeout(timer)
    // The end of the handshake still goes out, or the server would log a broken one.
    socket.end(() => socket.destroy())
  })
}
