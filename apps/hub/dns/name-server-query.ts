// Asks one name server directly: UDP, TCP where the answer is cut off, without recursion (RFC 1035 4.2, RFC 7766).
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { type DecodedPacket, decode, encode, type Answer as ResourceRecord } from 'dns-packet'
import { isWithin } from '../../../core/dns/domain-name.ts'
import type { RecordType } from '../../../core/dns/record-value.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'

const TIMEOUT_MS = 2_000
const TRIES = 2
const UDP_BYTES = 1_232
const TCP_BYTES_MAX = 65_535
const RECURSION_DESIRED = 1 << 8
const ID_MAX = 0x10000
/** RFC 1035 4.1.1, by number. */
const CODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED']

export type NameServer = { readonly address: string; readonly port: number }
type Question = {
  readonly name: string
  readonly type: RecordType | 'SOA'
  /** Whose answer is asked for. */
  readonly zone: string
}

type NameServerResponse = {
  /** Canonical texts of the values of the name and type that were asked for; empty for none. */
  readonly values: ReadonlySet<string>
  /** Of a SOA record. */
  readonly serial: number | null
  /** The name from which on other servers answer, where this one only says which (a referral). */
  readonly cut: string | null
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
    case 'AAAA': {
      const address = parseAddress(answer.data)
      if (address === null) throw new NoResponse('unreadable')
      return address.toString()
    }
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

/** Throws NoResponse for what is no answer to this question: the question itself, that to another one, a part. */
function checkResponse(packet: DecodedPacket, { name, type }: Question): void {
  if (!packet.flag_qr) throw new NoResponse('unreadable')
  const code = CODES[(packet.flags ?? 0) & 15] ?? 'unknown'
  if (code !== 'NOERROR' && code !== 'NXDOMAIN') throw new NoResponse(code)
  const isAnother = (asked: { readonly type: string; readonly name: string }): boolean =>
    asked.type !== type || asked.name.toLowerCase() !== name.toLowerCase()
  // Some servers leave it out.
  if (packet.questions?.some(isAnother)) throw new NoResponse('unreadable')
  if (packet.flag_tc) throw new NoResponse('truncated')
}

/**
 * The name of a referral; null where the server answers by itself. Throws NoResponse for a server that has not got the
 * zone, not even its SOA: its answers, also that there is nothing, are not those of the zone.
 */
function cutOf(packet: DecodedPacket, { name, type, zone }: Question): string | null {
  if (packet.flag_aa) return null
  // Some servers put the name servers of a cut among the answers when these are what is asked for.
  const records = [...(packet.answers ?? []), ...(packet.authorities ?? [])]
  const cut = records.find(record => record.type === 'NS')?.name.toLowerCase() ?? zone
  if (cut !== zone && isWithin(cut, zone) && isWithin(name.toLowerCase(), cut)) return cut
  if (type === 'SOA' && !packet.answers?.some(record => record.type === 'SOA'))
    throw new NoResponse('not authoritative')
  return null
}

async function askOnce(server: NameServer, question: Question, isRecursive: boolean): Promise<NameServerResponse> {
  const { name, type } = question
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
  const packet = first.flag_qr && first.flag_tc ? read(await overTcp(server, query, TIMEOUT_MS)) : first
  checkResponse(packet, question)
  const cut = isRecursive ? null : cutOf(packet, question)
  // A referral has the name servers of the cut as authorities and their addresses, glue, as additional records.
  const referred = cut === null ? [] : [...(packet.authorities ?? []), ...(packet.additionals ?? [])]
  const values = new Set<string>()
  let serial: number | null = null
  for (const record of [...(packet.answers ?? []), ...referred]) {
    if (record.type !== type || record.name.toLowerCase() !== name.toLowerCase()) continue
    if (record.type === 'SOA') serial = record.data.serial ?? null
    const value = canonicalValue(record)
    if (value !== null) values.add(value)
  }
  return { values, serial, cut }
}

/**
 * What a name server answers to one question, with one retry. Whoever calls has checked its address. Rejects
 * with NoResponse, also where the server refuses, fails or has not got the zone.
 */
export async function askNameServer(
  server: NameServer,
  question: Question,
  { isRecursive = false } = {},
): Promise<NameServerResponse> {
  for (let tries = 1; ; tries++) {
    try {
      return await askOnce(server, question, isRecursive)
    } catch (error) {
      if (tries >= TRIES || !(error instanceof NoResponse)) throw error
    }
  }
}
