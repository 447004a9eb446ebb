// Asks one name server directly: UDP, TCP where the answer is cut off, without recursion (RFC 1035 4.2, RFC 7766).
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { type DecodedPacket, decode, encode, type Answer as ResourceRecord } from 'dns-packet'
import type { RecordType } from '../../../core/dns/record-value.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'

const TIMEOUT_MS = 2_000
const TRIES = 2
const UDP_BYTES = 1_232
const TCP_BYTES_MAX = 65_535
const AUTHORITATIVE = 1 << 10
const RECURSION_DESIRED = 1 << 8
const ID_MAX = 0x10000
/** RFC 1035 4.1.1, by number. */
const CODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED']

export type NameServer = { readonly address: string; readonly port: number }
type Question = { readonly name: string; readonly type: RecordType | 'SOA' }

type NameServerResponse = {
  /** Canonical texts of the values of the name and type that were asked for; empty for none. */
  readonly values: ReadonlySet<string>
  /** Of a SOA record. */
  readonly serial: number | null
  readonly isAuthoritative: boolean
  /** NOERROR, NXDOMAIN, REFUSED, SERVFAIL … */
  readonly code: string
}

/** A name server gave no answer that can be read, in any of the tries. */
export class NoResponse extends Error {}

const withDot = (name: string): string => (name === '.' || name === '' ? '.' : `${name.toLowerCase()}.`)
const textOf = ({ data }: Extract<ResourceRecord, { type: 'TXT' }>): string =>
  Buffer.concat((Array.isArray(data) ? data : [data]).map(part => Buffer.from(part))).toString('utf8')

/** The text that a value is compared by; null for types that zones do not keep. */
function canonicalValue(answer: ResourceRecord): string | null {
  switch (answer.type) {
    case 'A':
    case 'AAAA':
      return parseAddress(answer.data)?.toString() ?? answer.data
    case 'CNAME':
    case 'NS':
    case 'PTR':
      return withDot(String(answer.data))
    case 'MX':
      return `${answer.data.preference ?? 0} ${withDot(answer.data.exchange)}`
    case 'SRV': {
      const { priority = 0, weight = 0, port, target } = answer.data
      return `${priority} ${weight} ${port} ${withDot(target)}`
    }
    case 'TXT':
      return textOf(answer)
    case 'CAA':
      return `${answer.data.flags ?? 0} ${answer.data.tag} "${answer.data.value}"`
    default:
      return null
  }
}

function overUdp({ address, port }: NameServer, query: Buffer, timeoutMs: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  const timer = setTimeout(() => reject(new NoResponse('timeout')), timeoutMs)
  socket.on('error', () => reject(new NoResponse('unreachable')))
  // A connected socket takes datagrams of this server only.
  socket.connect(port, address, () => socket.send(query))
  socket.on('message', message => {
    if (message.length > 2 && message.readUInt16BE(0) === query.readUInt16BE(0)) resolve(message)
  })
  return promise.finally(() => {
    clearTimeout(timer)
    socket.close()
  })
}

function overTcp({ address, port }: NameServer, query: Buffer, timeoutMs: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const socket = connect({ host: address, port })
  const timer = setTimeout(() => reject(new NoResponse('timeout')), timeoutMs)
  let received = Buffer.alloc(0)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(query.length)
  socket.on('connect', () => socket.write(Buffer.concat([length, query])))
  socket.on('error', () => reject(new NoResponse('unreachable')))
  socket.on('close', () => reject(new NoResponse('unreachable')))
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (received.length > TCP_BYTES_MAX + 2) reject(new NoResponse('unreadable'))
    else if (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0))
      resolve(received.subarray(2, 2 + received.readUInt16BE(0)))
  })
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

function read(message: Buffer): DecodedPacket {
  try {
    return decode(message)
  } catch {
    throw new NoResponse('unreadable')
  }
}

async function askOnce(
  server: NameServer,
  { name, type }: Question,
  isRecursive: boolean,
): Promise<NameServerResponse> {
  const query = encode({
    type: 'query',
    id: randomInt(ID_MAX),
    flags: isRecursive ? RECURSION_DESIRED : 0,
    questions: [{ type, name }],
    additionals: [
      {
        type: 'OPT',
        name: '.',
        udpPayloadSize: UDP_BYTES,
        extendedRcode: 0,
        ednsVersion: 0,
        flags: 0,
        flag_do: false,
        options: [],
      },
    ],
  })
  const first = read(await overUdp(server, query, TIMEOUT_MS))
  const packet = first.flag_tc ? read(await overTcp(server, query, TIMEOUT_MS)) : first
  const values = new Set<string>()
  let serial: number | null = null
  for (const answer of packet.answers ?? []) {
    if (answer.type !== type || answer.name.toLowerCase() !== name.toLowerCase()) continue
    if (answer.type === 'SOA') serial = answer.data.serial ?? null
    const value = canonicalValue(answer)
    if (value !== null) values.add(value)
  }
  const code = CODES[(packet.flags ?? 0) & 15] ?? 'unknown'
  return { values, serial, isAuthoritative: ((packet.flags ?? 0) & AUTHORITATIVE) !== 0, code }
}

/**
 * What a name server answers to one question, with one retry. Whoever calls has checked its address. Rejects
 * with NoResponse, also where the server refuses or fails.
 */
export async function askNameServer(
  server: NameServer,
  question: Question,
  { isRecursive = false } = {},
): Promise<NameServerResponse> {
  for (let tries = 1; ; tries++) {
    try {
      const answer = await askOnce(server, question, isRecursive)
      if (answer.code === 'NOERROR' || answer.code === 'NXDOMAIN') return answer
      throw new NoResponse(answer.code)
    } catch (error) {
      if (tries >= TRIES || !(error instanceof NoResponse)) throw error
    }
  }
}
