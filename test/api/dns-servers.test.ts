// Zones and real name servers: NSD that answers otherwise or not at all, PowerDNS that is published to and read.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { callsOf } from '../../apps/hub/dns/powerdns-api.ts'
import { countStatements } from '../support/count-statements.ts'
import { startNameServer } from '../support/name-server.ts'
import { PowerDns } from '../support/powerdns.ts'
import { A, at, DnsRig } from './dns-rig.ts'
import type { Json } from './hub-harness.ts'

setDefaultTimeout(60_000)
const rig = new DnsRig()
const { made, zone, shown, run, newName } = rig

describe('verification', () => {
  test('[check 16.22] [RES-208] [RES-211] three planted differences are found, and no other', async () => {
    const name = newName('verified-')
    const lines = ['www A 192.0.2.1', 'mail A 192.0.2.99', 't TXT "a" "b"', '*.wild A 192.0.2.4', 'more A 192.0.2.7']
    const file = `$ORIGIN ${name}.\n$TTL 60\n@ SOA ns1 a 7 1 2 3 4\n@ NS ns1.${name}.\nns1 A 127.0.0.1\n${lines.join('\n')}\n`
    const served = await startNameServer(join(rig.folder, 'a'), name, file)
    try {
      const server = await made('/dns/servers', { name: 'real', host: '127.0.0.1', port: served.port })
      const records = [
        { type: 'NS', value: 'ns1' },
        A('ns1', '127.0.0.1'),
        A('www'),
        A('mail', '192.0.2.2'),
        A('gone', '192.0.2.3'),
        A('*.wild', '192.0.2.4'),
        A('more', '192.0.2.7', { enabled: false }),
        { name: 't', type: 'TXT', value: 'ab' },
      ]
      const of = await zone({ name, server_ids: [server.id], records })
      const { state, result } = await run(of)
      expect(state).toBe('done')
      expect(result).toMatchObject({ checked: 8, in_sync: 5, missing: 1, different: 1, serials: { real: 7 } })
      const states = (await rig.tenant.call('GET', at(of))).body.data.map((row: Json) => [row.name, row.state])
      expect(states.filter(([, of_]: string[]) => of_ !== 'in_sync')).toEqual([
        ['gone', 'missing'],
        ['mail', 'different'],
        ['more', 'extra'],
      ])
      const shown = (await rig.tenant.call('GET', `/dns/zones/${of.id}`)).body.data
      expect([shown.sync_state, shown.health, shown.conditions[0].code]).toEqual(['drifted', 'warning', 'zone_drifted'])
      const refused = await rig.tenant.call('POST', `/dns/zones/${of.id}/sync`, { mode: 'publish' })
      expect(refused.body.errors).toHaveProperty('mode')
    } finally {
      await served.stop()
    }
  })

  test('[RES-209] a name server that does not answer makes the zone unreachable, and drift of nobody', async () => {
    const silent = await startNameServer(join(rig.folder, 'b'), 'silent.example.com', '@ 60 SOA a b 1 2 3 4 5\n')
    await silent.stop()
    const server = await made('/dns/servers', { name: 'silent', host: '127.0.0.1', port: silent.port })
    const of = await zone({ server_ids: [server.id], records: [A('www')] })
    const codes = async () =>
      (await rig.tenant.call('GET', `/dns/zones/${of.id}`)).body.data.conditions.map((each: Json) => each.code)
    expect((await run(of)).state).toBe('failed')
    expect(await codes()).toEqual([])
    await run(of)
    expect(await codes()).toEqual(['nameserver_unreachable'])
    expect((await rig.tenant.call('GET', `/dns/zones/${of.id}`)).body.data.sync_state).toBe('unreachable')
  })
})

describe('serials and pace', () => {
  test('[RES-210] servers whose serials differ for over ten minutes are told of, and until they agree', async () => {
    const name = newName('serials-')
    const file = (serial: number) => `$ORIGIN ${name}.\n$TTL 60\n@ SOA ns1 a ${serial} 1 2 3 4\nwww A 192.0.2.1\n`
    const served = await Promise.all(
      [7, 8].map(serial => startNameServer(join(rig.folder, `s${serial}`), name, file(serial))),
    )
    try {
      const servers = await Promise.all(
        served.map(({ port }, index) => made('/dns/servers', { name: `serial ${index}`, host: '127.0.0.1', port })),
      )
      const of = await zone({ name, server_ids: servers.map(each => each.id), records: [A('www')] })
      await rig.tenant.call('POST', at(of), { type: 'NS', value: 'ns1' })
      const codes = async () => (await shown(of)).conditions.map((each: Json) => each.code)
      expect((await run(of)).result.serials).toEqual({ 'serial 0': 7, 'serial 1': 8 })
      expect(await codes()).not.toContain('serial_mismatch')
      // Ten minutes go by.
      await rig.hub.hub.database.client`
        update dns_zone_states set serials_differ_since = serials_differ_since - interval '601 seconds' where zone_id = ${of.id}`
      await run(of)
      expect(await codes()).toContain('serial_mismatch')
      await rig.tenant.call('PATCH', `/dns/zones/${of.id}`, { server_ids: [servers[0].id] })
      await run(of)
      expect(await codes()).not.toContain('serial_mismatch')
    } finally {
      await Promise.all(served.map(each => each.stop()))
    }
  })

  test('[RES-217] a zone of ten thousand records is listed and exported', async () => {
    const of = await zone()
    await rig.hub.hub.database.client.begin(async sql => {
      // Without what keeps search and counts, which is not what is asked here.
      await sql`set local session_replication_role = replica`
      await sql`
        insert into dns_records (id, company_id, zone_id, name, type, value, fqdn)
        select gen_random_uuid(), ${rig.tenant.companyId}, ${of.id}, 'h' || n, 'A', '192.0.2.1', 'h' || n || '.' || ${of.name}
        from generate_series(1, 10000) n`
    })
    expect((await rig.tenant.call('GET', at(of))).body.meta.total).toBe(10_000)
    let lines: string[] = []
    const statements = await countStatements(rig.hub.hub.database.client, async () => {
      const response = await fetch(`${rig.hub.url}/api/v1/dns/zones/${of.id}/export`, {
        headers: { Authorization: `Bearer ${rig.tenant.token}` },
      })
      lines = (await response.text()).split('\n').filter(line => line.includes(' IN A '))
    })
    expect(lines).toHaveLength(10_000)
    // A few, and those of the hub's clock: none for each record.
    expect(statements).toBeWithin(1, 100)
  })

  test('[RES-217] a name server is asked at most twenty times a second, of however many zones', async () => {
    const asked: number[] = []
    const socket = await Bun.udpSocket({
      hostname: '127.0.0.1',
      socket: {
        data(self, query, port, address) {
          asked.push(performance.now())
          // An answer without records: authoritative, no error.
          const answer = Buffer.from(query)
          answer[2] = 0x84
          answer[3] = 0
          self.send(answer, port, address)
        },
      },
    })
    try {
      const server = await made('/dns/servers', { name: 'counting', host: '127.0.0.1', port: socket.port })
      const records = Array.from({ length: 10 }, (_, index) => A(`h${index}`))
      const zones = await Promise.all(
        [1, 2, 3].map(() => zone({ server_ids: [server.id], records: [...records, { type: 'NS', value: 'ns1' }] })),
      )
      for (const { result } of await Promise.all(zones.map(of => run(of))))
        expect(result).toMatchObject({ checked: 11, missing: 11 })
      expect(asked).toHaveLength(36)
      // A question goes at its turn or later; the first ones of three zones, which wait for no answer, may come
      // together.
      expect((asked.at(-1) ?? 0) - (asked[0] ?? 0)).toBeGreaterThan((asked.length - 5) * 50)
    } finally {
      socket.close()
    }
  })
})

describe('PowerDNS', () => {
  let pdns: PowerDns
  beforeAll(async () => {
    pdns = await PowerDns.start(join(rig.folder, 'pdns'))
    // One company may start so many runs a minute.
    rig.tenant = await rig.hub.tenant()
  })
  afterAll(() => pdns?.stop())

  /** A zone at PowerDNS, and in the hub with these records. */
  async function published(records: readonly Json[]): Promise<Json> {
    const name = newName('p')
    await pdns.createZone(name)
    const server = await made('/dns/servers', {
      name,
      host: '127.0.0.1',
      port: pdns.port,
      integration: 'powerdns',
      api_url: pdns.apiUrl,
      api_key: pdns.apiKey,
    })
    expect(JSON.stringify(server)).not.toContain(pdns.apiKey)
    return zone({ name, server_ids: [server.id], records: [{ type: 'NS', value: 'ns1' }, ...records] })
  }
  const served = async (of: Json): Promise<string[]> =>
    (await pdns.zone(of.name)).rrsets
      .flatMap(({ name, type, records }) => records.map(({ content }) => `${name} ${type} ${content}`))
      .filter(line => !line.includes(' SOA '))
      .sort()

  test('what the zone intends is what the server has, of every type, and a second time nothing is sent', async () => {
    const of = await published([
      A('www'),
      A('*.wild', '192.0.2.4', { ttl: 60 }),
      { name: 'v6', type: 'AAAA', value: '2001:db8::1' },
      { name: 'alias', type: 'CNAME', value: 'www' },
      { type: 'MX', value: '10 mail.example.net.' },
      { type: 'TXT', value: `${'x'.repeat(300)} "q" \\ ü` },
      { name: '_sip._tcp', type: 'SRV', value: '1 2 3 sip.example.net.' },
      { type: 'CAA', value: '0 issue "ca.example.net"' },
      A('off', '192.0.2.9', { enabled: false }),
    ])
    const before = (await pdns.zone(of.name)).serial
    const first = await run(of, { mode: 'publish' })
    expect([first.state, first.error]).toEqual(['done', null])
    expect(first.result).toMatchObject({ checked: 10, in_sync: 9, missing: 0, different: 0, deleted: 0 })
    expect((await served(of)).map(line => line.split(' ').slice(0, 2).join(' '))).toEqual(
      [
        `*.wild.${of.name}. A`,
        `_sip._tcp.${of.name}. SRV`,
        `alias.${of.name}. CNAME`,
        ...['CAA', 'MX', 'NS', 'TXT'].map(type => `${of.name}. ${type}`),
        `v6.${of.name}. AAAA`,
        `www.${of.name}. A`,
      ].sort(),
    )
    const { serial } = await pdns.zone(of.name)
    expect(serial).toBeGreaterThan(before)
    expect((await run(of, { mode: 'publish' })).result).toMatchObject({ replaced: 0, deleted: 0, in_sync: 9 })
    expect((await pdns.zone(of.name)).serial).toBe(serial)
    expect((await shown(of)).sync_state).toBe('in_sync')
  })

  test('[check 16.23] [RES-212] what would delete 4 of 10 records, or nearly all, is not sent, unless it is forced', async () => {
    const of = await published(Array.from({ length: 9 }, (_, index) => A(`h${index}`)))
    expect((await run(of, { mode: 'publish' })).state).toBe('done')
    const before = await served(of)
    expect(before).toHaveLength(10)
    const rows: Json[] = (await rig.tenant.call('GET', `${at(of)}?type=A`)).body.data
    for (const { id } of rows.slice(0, 4)) await rig.tenant.call('DELETE', at(of, id))
    const refused = await run(of, { mode: 'publish' })
    expect([refused.state, refused.error]).toEqual(['failed', 'unsafe_publish'])
    expect((await run(of, { mode: 'publish', dry_run: true })).result).toMatchObject({ replaced: 0, deleted: 4 })
    for (const { id } of rows.slice(4, 8)) await rig.tenant.call('DELETE', at(of, id))
    expect((await run(of, { mode: 'publish' })).error).toBe('unsafe_publish')
    expect(await served(of)).toEqual(before)
    expect((await run(of, { mode: 'publish', force: true })).result).toMatchObject({ deleted: 8, in_sync: 2 })
    expect(await served(of)).toHaveLength(2)
    // Three of ten, or four of nine, may go.
    await rig.tenant.call('DELETE', at(of, rows[8].id))
    expect((await run(of, { mode: 'publish' })).result).toMatchObject({ deleted: 1 })
  })

  test('[RES-212] records that the server has as disabled count among what is deleted, unless they stay', async () => {
    const of = await published([A('www'), A('other')])
    expect((await run(of, { mode: 'publish' })).state).toBe('done')
    const records = (first: number) =>
      Array.from({ length: 5 }, (_, index) => ({ content: `192.0.2.${first + index}`, disabled: true }))
    const set = { type: 'A', ttl: 3600 }
    const own = { content: '192.0.2.1', disabled: false }
    await pdns.replace(of.name, { ...set, name: `www.${of.name}.`, records: [own, ...records(20)] })
    expect((await run(of, { mode: 'publish' })).result).toMatchObject({ replaced: 0, deleted: 0 })
    await pdns.replace(of.name, { ...set, name: `off.${of.name}.`, records: records(30) })
    await pdns.replace(of.name, { ...set, name: `off2.${of.name}.`, records: records(40) })
    expect((await run(of, { mode: 'publish' })).error).toBe('unsafe_publish')
    const { changes } = (await run(of, { mode: 'publish', dry_run: true })).result
    expect(changes.map(({ name, values }: Json) => [name, values.length])).toEqual([
      ['off', 5],
      ['off2', 5],
    ])
    expect((await run(of, { mode: 'publish', force: true })).result).toMatchObject({ deleted: 2, in_sync: 3 })
  })

  test('what the server has is read into the zone, which keeps what it has', async () => {
    const of = await published([A('kept')])
    const text = { content: '"tab \\009 and \\"ü\\"" " in two"' }
    await pdns.replace(of.name, { name: `new.${of.name}.`, type: 'TXT', ttl: 60, records: [text] })
    await pdns.replace(of.name, {
      name: `m.${of.name}.`,
      type: 'MX',
      ttl: 120,
      records: [{ content: `5 mx.${of.name}.` }],
    })
    const trial = await run(of, { mode: 'read', dry_run: true })
    expect(trial.result).toMatchObject({ created: 1, deleted: 0 })
    expect(trial.result.skipped).toHaveLength(1)
    const done = await run(of, { mode: 'read' })
    expect([done.state, done.result.created]).toEqual(['done', 1])
    const names = (await rig.tenant.call('GET', at(of))).body.data.map((row: Json) => [row.name, row.type, row.ttl])
    expect(names).toContainEqual(['m', 'MX', 120])
    expect(names).toContainEqual(['kept', 'A', null])
  })

  test('[R-054] [RES-208] a delegation with its glue is in step once it is published', async () => {
    const of = await published([
      { name: 'sub', type: 'NS', value: 'ns.example.net.' },
      { name: 'own', type: 'NS', value: 'own' },
      A('own', '192.0.2.53'),
    ])
    const { result } = await run(of, { mode: 'publish' })
    expect(result).toMatchObject({ checked: 4, in_sync: 4, missing: 0, different: 0 })
    expect((await shown(of)).sync_state).toBe('in_sync')
  })

  test('[R-054] a name that becomes a CNAME, or no longer is one, is published', async () => {
    const of = await published([A('y'), A('sw'), { name: 'sw', type: 'TXT', value: 'x' }])
    expect((await run(of, { mode: 'publish' })).state).toBe('done')
    const become = async (records: readonly Json[]) => {
      const rows: Json[] = (await rig.tenant.call('GET', at(of))).body.data
      for (const { id } of rows.filter(({ name }) => name === 'sw')) await rig.tenant.call('DELETE', at(of, id))
      await rig.tenant.call('POST', at(of), { records })
    }
    await become([{ name: 'sw', type: 'CNAME', value: 'y' }])
    expect(await run(of, { mode: 'publish' })).toMatchObject({ state: 'done', error: null })
    expect((await served(of)).filter(line => line.startsWith('sw.'))).toEqual([`sw.${of.name}. CNAME y.${of.name}.`])
    await become([A('sw', '192.0.2.7'), { name: 'sw', type: 'TXT', value: 'z' }])
    expect(await run(of, { mode: 'publish' })).toMatchObject({ state: 'done', error: null, result: { deleted: 1 } })
    expect((await served(of)).filter(line => line.startsWith('sw.'))).toEqual([
      `sw.${of.name}. A 192.0.2.7`,
      `sw.${of.name}. TXT "z"`,
    ])
  })

  test('[R-054] a call changes at most 100 sets, and all of a name, what goes before what comes', () => {
    const set = (name: string, type: 'A' | 'CNAME') => ({ name, type, ttl: 60, values: ['192.0.2.1'] })
    const names = Array.from({ length: 160 }, (_, index) => `n${index}`)
    const calls = callsOf(
      names.map(name => set(name, 'A')),
      names.slice(5, 100).map(name => set(name, 'CNAME')),
      'example.com',
    )
    expect(calls.map(call => call.length)).toEqual([100, 100, 55])
    for (const call of calls)
      for (const [name, patches] of Map.groupBy(call, each => each.name)) {
        const isBoth = calls.flat().filter(each => each.name === name).length === 2
        expect(patches.map(each => each.changetype)).toEqual(isBoth ? ['DELETE', 'REPLACE'] : ['REPLACE'])
      }
  })

  test('[R-054] why the API refuses a change stands in the run', async () => {
    const of = await published([{ name: 'held', type: 'CNAME', value: 'ns1' }])
    const records = [{ content: `3 1 1 ${'ab'.repeat(32)}` }]
    await pdns.replace(of.name, { name: `held.${of.name}.`, type: 'TLSA', ttl: 60, records })
    const { state, error } = await run(of, { mode: 'publish' })
    expect(state).toBe('failed')
    expect(error).toStartWith(`the API answered 422: RRset held.${of.name}. IN CNAME: Conflicts`)
  })

  test('[R-054] what a zone cannot keep is skipped with its reason, and the rest is read', async () => {
    const of = await published([A('kept')])
    const set = (name: string, type: string, ttl: number, ...contents: string[]) => ({
      name: name === '@' ? `${of.name}.` : `${name}.${of.name}.`,
      type,
      ttl,
      records: contents.map(content => ({ content, disabled: false })),
    })
    const rrsets = [
      set('0/25', 'NS', 60, 'ns.example.net.'),
      set('@', 'TXT', 60, '"v=spf1 -all"', '"v=spf1 +all"'),
      set('plain', 'SRV', 60, '0 5 80 www.example.net.'),
      set('past', 'A', -5, '192.0.2.1'),
      set('kept', 'CNAME', 60, 'www.example.net.'),
      set('odd', 'CAA', 60, '0 issuemail "x"'),
      set('good', 'A', 60, '192.0.2.2'),
    ]
    const api = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({ rrsets }) })
    try {
      await rig.tenant.call('PATCH', `/dns/servers/${of.server_ids[0]}`, {
        api_url: `http://127.0.0.1:${api.port}`,
        api_key: pdns.apiKey,
      })
      const { error, result } = await run(of, { mode: 'read' })
      expect([error, result.created]).toEqual([null, 2])
      expect(result.skipped.map(({ text, reason }: Json) => `${text}: ${reason}`).sort()).toEqual([
        '0/25 NS ns.example.net.: name',
        '@ TXT v=spf1 -all: spf_twice',
        'kept CNAME www.example.net.: cname_beside',
        'odd CAA 0 issuemail "x": unreadable',
        'past A 192.0.2.1: ttl',
        'plain SRV 0 5 80 www.example.net.: service_name',
      ])
    } finally {
      await api.stop(true)
    }
  })

  test('[R-054] the serial is raised too where the server does not do it by itself, once a publication', async () => {
    const of = await published([A('www')])
    await pdns.keepSerial(of.name)
    const soa = { name: `${of.name}.`, type: 'SOA', ttl: 900 }
    await pdns.replace(of.name, {
      ...soa,
      records: [{ content: `ns1.${of.name}. a.${of.name}. 4294967295 10800 3600 604800 60` }],
    })
    const soas = async () => (await pdns.zone(of.name)).rrsets.filter(({ type }) => type === 'SOA')
    const { state, result } = await run(of, { mode: 'publish' })
    expect([state, result.in_sync]).toEqual(['done', 2])
    const { serial } = await pdns.zone(of.name)
    expect(serial).toBe(Number(`${new Date(rig.hub.hub.now()).toISOString().slice(0, 10).replaceAll('-', '')}00`))
    expect(Object.values(result.serials)).toEqual([serial])
    expect(await soas()).toMatchObject([
      { ...soa, records: [{ content: `ns1.${of.name}. a.${of.name}. ${serial} 10800 3600 604800 60` }] },
    ])
    await run(of, { mode: 'publish' })
    expect((await pdns.zone(of.name)).serial).toBe(serial)
    await rig.tenant.call('POST', at(of), A('more'))
    await run(of, { mode: 'publish' })
    expect((await pdns.zone(of.name)).serial).toBe(serial + 1)
  })

  test('[R-054] an answer of the API that breaks off fails the run', async () => {
    const api = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"rrsets": [')
        },
      },
    })
    try {
      const of = await published([])
      await rig.tenant.call('PATCH', `/dns/servers/${of.server_ids[0]}`, {
        api_url: `http://127.0.0.1:${api.port}`,
        api_key: pdns.apiKey,
      })
      for (const mode of ['publish', 'read'])
        expect(await run(of, { mode })).toMatchObject({ state: 'failed', error: 'the API does not answer' })
    } finally {
      api.stop(true)
    }
  })

  test('[RES-018] a wrong key fails the run, and no key stands in a run, an answer or the log', async () => {
    const of = await published([A('www')])
    const wrong = `wrong-${crypto.randomUUID()}`
    await rig.tenant.call('PATCH', `/dns/servers/${of.server_ids[0]}`, { api_key: wrong })
    const refused = await run(of, { mode: 'publish' })
    expect([refused.state, refused.error]).toEqual(['failed', 'the API answered 401'])
    const seen = JSON.stringify([
      refused,
      await shown(of),
      (await rig.tenant.call('GET', '/dns/servers')).body,
      (await rig.tenant.call('GET', '/audit-log')).body,
    ])
    for (const key of [wrong, pdns.apiKey]) expect(seen).not.toContain(key)
  })
})
