// What name servers answer of a zone that is no plain answer: referrals to other servers, and what is no answer at all.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode, TRUNCATED_RESPONSE } from 'dns-packet'
import { startNameServer } from '../support/name-server.ts'
import { A, at, DnsRig } from './dns-rig.ts'
import type { Json } from './hub-harness.ts'

setDefaultTimeout(60_000)
const rig = new DnsRig()
const { made, zone, shown, run, newName } = rig

describe('delegations', () => {
  const recordsOf = (name: string) => [
    { type: 'NS', value: 'ns1' },
    A('ns1', '127.0.0.1'),
    { name: 'sub', type: 'NS', value: `ns.sub.${name}.` },
    { name: 'sub', type: 'NS', value: 'ns.example.net.' },
    A('ns.sub', '192.0.2.53'),
    { name: 'ns.sub', type: 'AAAA', value: '2001:db8::53' },
    A('sub', '192.0.2.54'),
    A('deep.sub', '192.0.2.55'),
    { name: 'deep.sub', type: 'TXT', value: 'below' },
  ]
  const head = (name: string) => `$ORIGIN ${name}.\n$TTL 60\n@ SOA ns1 a 7 1 2 3 4\n@ NS ns1\nns1 A 127.0.0.1\n`

  /** What a verification finds of the records where this is served. */
  async function found(lines: readonly string[]) {
    const name = newName('cut-')
    const served = await startNameServer(join(rig.folder, name), name, `${head(name)}${lines.join('\n')}\n`)
    try {
      const server = await made('/dns/servers', { name, host: '127.0.0.1', port: served.port })
      const of = await zone({ name, server_ids: [server.id], records: recordsOf(name) })
      const { state, result } = await run(of)
      expect(state).toBe('done')
      const rows: Json[] = (await rig.tenant.call('GET', at(of))).body.data
      const states = rows.map(row => `${row.name} ${row.type} ${row.state}`).sort()
      return { states, result, syncState: (await shown(of)).sync_state }
    } finally {
      await served.stop()
    }
  }
  const whole = ['sub NS ns.sub', 'sub NS ns.example.net.', 'ns.sub A 192.0.2.53', 'ns.sub AAAA 2001:db8::53']
  const inSync = [
    '@ NS in_sync',
    'deep.sub A unknown',
    'deep.sub TXT unknown',
    'ns.sub A in_sync',
    'ns.sub AAAA in_sync',
    'ns1 A in_sync',
    'sub A unknown',
    'sub NS in_sync',
    'sub NS in_sync',
  ]

  test('[R-053] [RES-208] a delegation that is served is no drift, and what lies below it nobody says', async () => {
    const { states, result, syncState } = await found([...whole, 'deep.sub A 192.0.2.55'])
    expect(states).toEqual(inSync)
    expect([syncState, result.missing, result.different, result.extra, result.changes]).toEqual([
      'in_sync',
      0,
      0,
      0,
      [],
    ])
  })

  test('[R-053] [RES-208] other name servers and other glue are drift, and so is what lies below a cut that is not meant', async () => {
    const other = await found(['sub NS ns.sub', 'ns.sub A 192.0.2.99', 'ns.sub AAAA 2001:db8::53'])
    expect(other.states).toContain('sub NS different')
    expect(other.states).toContain('ns.sub A different')
    expect(other.states).toContain('ns.sub AAAA in_sync')
    expect(other.syncState).toBe('drifted')
    const none = await found(['deep.sub TXT below'])
    expect(none.states.filter(line => line.endsWith(' missing'))).toHaveLength(6)
    const below = await found(['deep.sub NS ns.example.net.', ...whole.slice(2)])
    expect(below.states).toContain('deep.sub TXT missing')
    expect(below.states).toContain('sub NS missing')
  })
})

describe('answers that are none', () => {
  type Way = 'echo' | 'another question' | 'not authoritative' | 'a referral upwards' | 'cut off' | 'three bytes'

  /** What a server says to a question, over TCP too. */
  function answerIn(way: Way, query: Buffer): Buffer {
    if (way === 'echo') return query
    const { id, questions = [] } = decode(query)
    const name = questions[0]?.name ?? ''
    const soa = { mname: 'a', rname: 'b', serial: 7, refresh: 1, retry: 1, expire: 1, minimum: 1 }
    const isOwn = way !== 'not authoritative' && way !== 'a referral upwards'
    const answers: Answer[] = isOwn && questions[0]?.type === 'SOA' ? [{ type: 'SOA', name, data: soa }] : []
    const answer = encode({
      type: 'response',
      id,
      flags: (isOwn ? AUTHORITATIVE_ANSWER : 0) | (way === 'cut off' ? TRUNCATED_RESPONSE : 0),
      questions: way === 'another question' ? [{ type: 'A', name: 'other.example.net' }] : questions,
      answers: way === 'three bytes' && answers.length === 0 ? [{ type: 'A', name, data: '1.2.3.4' }] : answers,
      authorities: way === 'a referral upwards' ? [{ type: 'NS', name: 'com', data: 'ns.example.net' }] : [],
    })
    if (way !== 'three bytes' || answers.length > 0) return answer
    answer.writeUInt16BE(3, answer.length - 6)
    return answer.subarray(0, -1)
  }

  /** Over UDP and TCP at one port: one that is free of both. */
  async function serve(way: Way) {
    for (;;) {
      const tcp = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: {
          data(socket, query) {
            const answer = answerIn(way, Buffer.from(query).subarray(2))
            socket.write(Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 0xff]), answer]))
          },
        },
      })
      const udp = await Bun.udpSocket({
        hostname: '127.0.0.1',
        port: tcp.port,
        socket: {
          data: (self, query, port, address) => {
            self.send(answerIn(way, Buffer.from(query)), port, address)
          },
        },
      }).catch(() => null)
      if (udp) return { udp, tcp }
      tcp.stop(true)
    }
  }

  const ways: [Way, string][] = [
    ['echo', 'unreadable'],
    ['another question', 'unreadable'],
    ['not authoritative', 'not authoritative'],
    ['a referral upwards', 'not authoritative'],
    ['cut off', 'truncated'],
    ['three bytes', 'unreadable'],
  ]
  for (const [way, error] of ways)
    test(`[RES-209] a name server whose answer is ${way} is unreachable, and nothing is missing`, async () => {
      const { udp, tcp } = await serve(way)
      try {
        const server = await made('/dns/servers', { name: way, host: '127.0.0.1', port: udp.port })
        const of = await zone({ server_ids: [server.id], records: [A('www'), { type: 'NS', value: 'ns1' }] })
        expect(await run(of)).toMatchObject({ state: 'failed', error: `no name server answers: ${error}` })
        expect((await shown(of)).sync_state).toBe('unreachable')
        const rows: Json[] = (await rig.tenant.call('GET', at(of))).body.data
        expect(rows.map(row => row.state)).toEqual(['unknown', 'unknown'])
      } finally {
        udp.close()
        tcp.stop(true)
      }
    })
})

test('[R-053] of very many answers to one question a record keeps a hundred', async () => {
  const name = newName('many-')
  const lines = Array.from({ length: 300 }, (_, index) => `many A 10.0.${index >> 8}.${index & 255}`)
  const file = `$ORIGIN ${name}.\n$TTL 60\n@ SOA ns1 a 7 1 2 3 4\n@ NS ns1\nns1 A 127.0.0.1\n${lines.join('\n')}\n`
  const served = await startNameServer(join(rig.folder, name), name, file)
  try {
    const server = await made('/dns/servers', { name, host: '127.0.0.1', port: served.port })
    const of = await zone({ name, server_ids: [server.id], records: [A('many', '10.0.1.43')] })
    expect((await run(of)).result).toMatchObject({ in_sync: 1, extra: 299 })
    const [row] = (await rig.tenant.call('GET', `${at(of)}?type=A`)).body.data
    expect([row.state, row.seen[0].values.length]).toEqual(['in_sync', 100])
  } finally {
    await served.stop()
  }
})
