import { describe, expect, test } from 'bun:test'
import { parseDomainName, parseHostName, recordName, reverseName } from '../../../core/dns/domain-name.ts'
import { parseRecordValue, type RecordType, recordTypes, valueExamples } from '../../../core/dns/record-value.ts'
import { isNewerSerial, nextSerial } from '../../../core/dns/serial.ts'
import { compareWithServers, setKey } from '../../../core/dns/zone-difference.ts'
import {
  quoteStrings,
  readZoneFile,
  writeZoneFile,
  type ZoneFile,
  type ZoneFileFault,
} from '../../../core/dns/zone-file.ts'
import { faultInZone, type ZoneRecord } from '../../../core/dns/zone-rules.ts'

const ZONE = 'example.com'
const canonical = (type: RecordType, text: string, zone = ZONE) => parseRecordValue(type, text, zone)?.value ?? null

test('the example of a type, which a wrong value is told, has the form of the type, and is kept as it is', () => {
  for (const type of recordTypes)
    expect([type, canonical(type, valueExamples[type])]).toEqual([type, valueExamples[type]])
})

describe('names', () => {
  test('[RES-188] spellings of one name are one name', () => {
    for (const text of ['WWW.Example.COM.', 'www', 'WWW', 'www.example.com'])
      expect(recordName(text, ZONE)).toEqual({ name: 'www' })
    for (const text of ['', '@', 'example.com.', 'EXAMPLE.com']) expect(recordName(text, ZONE)).toEqual({ name: '@' })
  })
  test('[RES-189] a whole name outside the zone is refused', () => {
    for (const text of ['www.example.org.', 'com.', 'badexample.com.'])
      expect(recordName(text, ZONE)).toEqual({ fault: 'outside' })
  })
  test('[RES-190] labels and names have their lengths, and a wildcard is the first label', () => {
    const bad = [
      'a..b',
      '.',
      'a.*',
      '*a',
      `${'x'.repeat(64)}`,
      `${'a.'.repeat(124)}aaa`,
      '-a',
      'a-',
      'a b',
      'a/b',
      'a%',
    ]
    for (const text of bad) expect(recordName(text, ZONE)).toEqual({ fault: 'form' })
    for (const text of ['*', '*.a', '_dmarc', '_sip._tcp', 'x'.repeat(63), '1.2', 'xn--bcher-kva'])
      expect(recordName(text, ZONE)).toEqual({ name: text })
  })
  test('[RES-191] both spellings of an international name are one', () => {
    expect(recordName('Bücher', ZONE)).toEqual({ name: 'xn--bcher-kva' })
    expect(parseDomainName('bücher.example')).toBe('xn--bcher-kva.example')
    expect(parseHostName('việt.example.')).toBe('xn--vit-5kz.example')
  })
  test('an address is no host name, and has a name in the reverse tree', () => {
    expect(parseHostName('192.0.2.1')).toBeNull()
    expect(reverseName('192.0.2.1')).toBe('1.2.0.192.in-addr.arpa')
    expect(reverseName('2001:db8::1')).toBe(`1.${'0.'.repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa`)
  })
})

describe('values', () => {
  test('[RES-193] addresses are of their family and kept in one spelling', () => {
    for (const text of ['1.2.3', '01.2.3.4', '::1', '1.2.3.4/24', '1.2.3.256', ''])
      expect(canonical('A', text)).toBeNull()
    expect(canonical('A', ' 192.0.2.1 ')).toBe('192.0.2.1')
    expect(canonical('AAAA', '2001:DB8:0:0::1')).toBe('2001:db8::1')
    for (const text of ['192.0.2.1', '::ffff:192.0.2.1', 'fe80::1%eth0']) expect(canonical('AAAA', text)).toBeNull()
  })
  test('[RES-194] mail goes to a host name', () => {
    expect(parseRecordValue('MX', '10 Mail', ZONE)).toMatchObject({
      value: '10 mail.example.com.',
      priority: 10,
      target: 'mail.example.com.',
    })
    expect(canonical('MX', '0 .')).toBe('0 .')
    for (const text of ['10 192.0.2.1', '10', 'x mail', '70000 mail', '10 .', '-1 mail', '10 a b'])
      expect(canonical('MX', text)).toBeNull()
  })
  test('services, authorities of certificates, texts, pointers', () => {
    expect(parseRecordValue('SRV', '1 2 5060 sip.example.net', ZONE)).toMatchObject({
      value: '1 2 5060 sip.example.net.',
      priority: 1,
      weight: 2,
      port: 5060,
    })
    for (const text of ['1 2 5060', '1 2 70000 a.b', '1 2 5060 192.0.2.1']) expect(canonical('SRV', text)).toBeNull()
    expect(canonical('NS', '192.0.2.1')).toBeNull()
    expect(canonical('PTR', 'host.example.com')).toBe('host.example.com.')
    expect(canonical('TXT', 'a "b" \\c; d')).toBe('a "b" \\c; d')
    for (const text of ['', 'a\nb', 'x'.repeat(4097)]) expect(canonical('TXT', text)).toBeNull()
  })
  test('[RES-197] authorizations of certificate authorities have known tags', () => {
    expect(canonical('CAA', '0 issue "ca.example.net"')).toBe('0 issue "ca.example.net"')
    expect(canonical('CAA', '128 IODEF mailto:a@example.net')).toBe('128 iodef "mailto:a@example.net"')
    for (const text of ['0 isue "ca.example.net"', '1 issue "a"', '0 iodef "a@b"', '0 issue'])
      expect(canonical('CAA', text)).toBeNull()
  })
})

const record = (name: string, type: RecordType, text: string, zone = ZONE): ZoneRecord => ({
  name,
  type,
  ...parseRecordValue(type, text, zone)!,
})
const faultOf = (added: ZoneRecord, ...others: ZoneRecord[]) =>
  faultInZone(added, ZONE, name => others.filter(other => other.name === name))

describe('records beside one another', () => {
  test('[RES-192] an alias stands alone, in whichever order they are made', () => {
    const [alias, address] = [record('www', 'CNAME', 'a.example.net'), record('www', 'A', '192.0.2.1')]
    expect(faultOf(alias, address)).toEqual({ field: 'name', reason: 'cname_beside' })
    expect(faultOf(address, alias)).toEqual({ field: 'name', reason: 'cname_beside' })
    expect(faultOf(record('@', 'CNAME', 'a.example.net'))?.field).toBe('name')
    expect(faultOf(record('www', 'CNAME', 'b.example.net'), alias)?.field).toBe('value')
    expect(faultOf(record('www', 'CNAME', 'www'))?.field).toBe('value')
    expect(faultOf(alias, record('mail', 'A', '192.0.2.1'))).toBeNull()
  })
  test('[RES-194] mail and services do not lead to an alias of the zone', () => {
    const alias = record('mail', 'CNAME', 'a.example.net')
    expect(faultOf(record('@', 'MX', '10 mail'), alias)).toEqual({ field: 'value', reason: 'target_is_cname' })
    expect(faultOf(record('_sip._tcp', 'SRV', '1 1 1 mail'), alias)?.field).toBe('value')
    expect(faultOf(record('@', 'MX', '0 .'), record('@', 'MX', '10 x'))?.field).toBe('value')
  })
  test('[RES-196] [RES-198] [RES-200] services by name, pointers in reverse zones, each value once', () => {
    expect(faultOf(record('sip', 'SRV', '1 1 1 a.b'))).toEqual({ field: 'name', reason: 'service_name' })
    expect(faultOf(record('_sip._tcp.a', 'SRV', '1 1 1 a.b'))).toBeNull()
    expect(faultOf(record('1', 'PTR', 'a.b'))?.field).toBe('name')
    expect(faultInZone(record('1', 'PTR', 'a.b'), '2.0.192.in-addr.arpa', () => [])).toBeNull()
    expect(faultOf(record('a', 'A', '192.0.2.1'), record('a', 'A', '192.0.2.1'))?.field).toBe('value')
    expect(faultOf(record('@', 'TXT', 'v=spf1 -all'), record('@', 'TXT', 'v=spf1 +all'))?.field).toBe('value')
  })
  test('a delegated name has name servers and their addresses only', () => {
    const delegation = record('sub', 'NS', 'ns.example.net')
    expect(faultOf(record('sub', 'TXT', 'x'), delegation)?.field).toBe('value')
    expect(faultOf(record('sub', 'A', '192.0.2.1'), delegation)).toBeNull()
    expect(faultOf(record('@', 'TXT', 'x'), record('@', 'NS', 'ns.example.net'))).toBeNull()
  })
})

const FILE = `$TTL 1h ; of all
@   IN  SOA ns1 host\\.master.example.com. (
        2026010100 ; serial
        1h 15m 2w 5m )
        IN NS ns1
        IN NS ns.example.net.
ns1     A   192.0.2.53
www 300 IN A 192.0.2.10
    IN 600 AAAA 2001:db8::10
        TXT "a;b" "c\\"d" ( "e"
          "\\195\\188" )
$ORIGIN sub.example.com.
mail    MX 10 @
@       CAA 0 issue "ca.example.net"
_sip._tcp SRV 1 2 5060 sip
old.example.org. A 192.0.2.1
x       HINFO a b
x       RRSIG A 8 3 300 x
`
const isFault = (file: ZoneFile | ZoneFileFault): file is ZoneFileFault => 'fault' in file
function read(content: string, zone = ZONE): ZoneFile {
  const file = readZoneFile(content, zone)
  if (isFault(file)) throw new Error(JSON.stringify(file))
  return file
}
const short = ({ records }: ZoneFile) => records.map(({ name, type, value, ttl }) => `${name} ${ttl} ${type} ${value}`)

describe('zone files', () => {
  test('[RES-204] a file is read as a name server reads it', () => {
    const file = read(FILE)
    expect(short(file)).toEqual([
      '@ null NS ns1.example.com.',
      '@ null NS ns.example.net.',
      'ns1 null A 192.0.2.53',
      'www 300 A 192.0.2.10',
      'www 600 AAAA 2001:db8::10',
      'www null TXT a;bc"deü',
      'mail.sub null MX 10 sub.example.com.',
      'sub null CAA 0 issue "ca.example.net"',
      '_sip._tcp.sub null SRV 1 2 5060 sip.sub.example.com.',
    ])
    expect(file.soa).toMatchObject({
      primary: 'ns1.example.com',
      contact: 'host.master@example.com',
      serial: 2026010100,
    })
    expect(file.soa).toMatchObject({ refresh: 3600, retry: 900, expire: 1_209_600, minimum: 300 })
  })
  test('[RES-205] what is not taken is named by its line, and a fault by the first', () => {
    expect(read(FILE).skipped.map(({ line, reason }) => [line, reason])).toEqual([
      [16, 'outside_zone'],
      [17, 'unknown_type'],
      [18, 'dnssec'],
    ])
    const faults: [string, number, string][] = [
      ['www A 1.2.3\n', 1, 'value'],
      ['\n\nwww A "1.2.3.4', 3, 'quote'],
      ['@ SOA a b (\n1 2 3', 1, 'parenthesis'],
      ['www A 192.0.2.1 )\n', 1, 'parenthesis'],
      ['  A 192.0.2.1\n', 1, 'name'],
      ['www\n', 1, 'type'],
      ['www TXT "\\999"\n', 1, 'escape'],
      ['@ SOA a b 1 2 3 4\n', 1, 'soa'],
    ]
    for (const [content, line, fault] of faults) expect(readZoneFile(content, ZONE)).toEqual({ line, fault } as never)
  })
  test('[RES-207] nothing is included or generated', () => {
    for (const content of ['$INCLUDE /etc/passwd\n', '$GENERATE 1-9 a A 192.0.2.$\n'])
      expect(readZoneFile(content, ZONE)).toEqual({ line: 1, fault: 'directive' })
  })
  test('[RES-195] [RES-203] what is written reads the same, long texts, quotes and backslashes too', () => {
    const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
    console.log(`zone files: SEED=${seed}`)
    let state = seed
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return (state >>> 8) % below
    }
    const pick = <T>(items: readonly T[]): T => items[random(items.length)]!
    const words = [
      'a',
      '\\',
      '"',
      ';',
      '(',
      ')',
      ' ',
      'ü',
      '日',
      'v=x',
      '\u00a0',
      'x'.repeat(200),
      '😀',
      '$TTL',
      '@',
      "'",
    ]
    const soa = {
      primary: 'ns1.example.com',
      contact: 'a.b;c@example.com',
      serial: 7,
      refresh: 1,
      retry: 2,
      expire: 3,
      minimum: 4,
    }
    for (let run = 0; run < 200; run++) {
      const records = Array.from({ length: 1 + random(8) }, (_, at) => {
        const text = Array.from({ length: 1 + random(8) }, () => pick(words)).join('')
        const type = pick<RecordType>(['TXT', 'MX', 'A', 'CAA', 'SRV'])
        const values: Record<string, string> = {
          TXT: text,
          MX: '10 m',
          A: '192.0.2.1',
          CAA: '0 issue ";"',
          SRV: '1 1 1 .',
        }
        const value = parseRecordValue(type, values[type]!, ZONE)!.value
        return {
          name: pick(['@', 'a', '*', '_a._b']) + (at > 0 ? '' : ''),
          type,
          value,
          ttl: pick([null, 60]),
          enabled: true,
        }
      })
      const file = read(writeZoneFile(ZONE, soa, 3600, records))
      const line = (r: { name: string; type: string; value: string; ttl: number | null }) =>
        `${r.name} ${r.type} ${r.value} ${r.ttl}`
      expect(file.records.map(line).sort()).toEqual(records.map(line).sort())
      expect(file.soa).toEqual(soa)
    }
  })
  test('[RES-195] a text of 600 bytes is strings of 255 at most', () => {
    const strings = quoteStrings('x'.repeat(600)).split(' ')
    expect(strings.map(({ length }) => length - 2)).toEqual([255, 255, 90])
  })
  test('a record that is not enabled is a comment', () => {
    const soa = { primary: 'a.b', contact: 'a@b.c', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 1 }
    const off = { name: 'www', type: 'A' as const, value: '192.0.2.1', ttl: null, enabled: false }
    expect(writeZoneFile(ZONE, soa, 60, [off])).toContain('; www IN A 192.0.2.1')
    expect(read(writeZoneFile(ZONE, soa, 60, [off])).records).toEqual([])
  })
  test('garbage is a fault and never an exception', () => {
    for (const content of ['', '\n;x\n', '$', '$TTL', '(', ')', '"', '\\', 'a'.repeat(5000), '\0', '@ IN', 'a b c d e'])
      expect(typeof readZoneFile(content, ZONE)).toBe('object')
  })
})

describe('serials', () => {
  test('[RES-202] a date goes on where the day is used up, and numbers wrap', () => {
    const now = new Date('2026-11-22T10:00:00Z')
    expect(nextSerial('date', 2026112107, now)).toBe(2026112200)
    expect(nextSerial('date', 2026112200, now)).toBe(2026112201)
    expect(nextSerial('date', 2026123100, now)).toBe(2026123101)
    expect(nextSerial('increment', 2 ** 32 - 1, now)).toBe(0)
    expect(isNewerSerial(0, 2 ** 32 - 1)).toBe(true)
    expect(isNewerSerial(5, 5)).toBe(false)
  })
})

describe('differences', () => {
  test('[RES-208] a record is missing, different or in step by what every server answers', () => {
    const records = [
      { id: '1', name: 'www', type: 'A', value: '192.0.2.1', enabled: true },
      { id: '2', name: 'mail', type: 'A', value: '192.0.2.2', enabled: true },
      { id: '3', name: 'ftp', type: 'A', value: '192.0.2.3', enabled: true },
      { id: '4', name: 'off', type: 'A', value: '192.0.2.4', enabled: false },
      { id: '5', name: 'gone', type: 'A', value: '192.0.2.5', enabled: false },
    ]
    const all = new Map(
      records.filter(({ name }) => name !== 'gone').map(r => [setKey(r.name, r.type), new Set([r.value])] as const),
    )
    const behind = new Map([...all, [setKey('mail', 'A'), new Set(['192.0.2.9'])] as const])
    behind.delete(setKey('ftp', 'A'))
    const { states, unknown } = compareWithServers(records, [all, behind])
    expect(Object.fromEntries(states)).toEqual({
      1: 'in_sync',
      2: 'different',
      3: 'missing',
      4: 'extra',
      5: 'disabled',
    })
    expect(unknown).toEqual([{ name: 'mail', type: 'A', value: '192.0.2.9' }])
  })
  test('[RES-208] what a server says nothing of is judged by the others, and without any unknown', () => {
    const record = { id: '1', name: 'ns.sub', type: 'A', value: '192.0.2.1', enabled: true }
    const stateBy = (...servers: (ReadonlySet<string> | null)[]) => {
      const { states, unknown } = compareWithServers(
        [record],
        servers.map(set => new Map([[setKey('ns.sub', 'A'), set]])),
      )
      expect(unknown).toEqual([])
      return states.get('1')
    }
    expect(stateBy(null)).toBe('unknown')
    expect(stateBy(null, new Set(['192.0.2.1']))).toBe('in_sync')
    expect(stateBy(null, new Set())).toBe('missing')
  })
  test('[RES-208] what a wildcard makes for a record that is disabled is neither in force nor extra', () => {
    const record = (id: string, name: string, value: string, enabled = true, type = 'A') => ({
      id,
      name,
      type,
      value,
      enabled,
    })
    const records = [
      record('1', '*', '192.0.2.1'),
      record('2', 'old', '192.0.2.1', false),
      record('3', 'old', '192.0.2.2', false),
      record('4', 'mail', 'x', true, 'TXT'),
      record('5', 'mail', '192.0.2.1', false),
      record('6', '*.deep', '192.0.2.6'),
      record('7', 'a.b.deep', '192.0.2.6', false),
      record('8', '*.off', '192.0.2.1', false),
    ]
    const served = (of: Record<string, string>) =>
      new Map(Object.entries(of).map(([key, value]) => [key, new Set([value])] as const))
    const made = served({
      '* A': '192.0.2.1',
      'old A': '192.0.2.1',
      'mail TXT': 'x',
      '*.deep A': '192.0.2.6',
      'a.b.deep A': '192.0.2.6',
      '*.off A': '192.0.2.1',
    })
    const { states, unknown } = compareWithServers(records, [made])
    expect([...states.values()]).toEqual([
      'in_sync',
      'disabled',
      'disabled',
      'in_sync',
      'disabled',
      'in_sync',
      'disabled',
      'disabled',
    ])
    expect(unknown).toEqual([])
    // A name that has another record is no name for the wildcard (RFC 4592): its address was given by hand.
    const byHand = compareWithServers(records, [new Map([...made, ...served({ 'mail A': '192.0.2.1' })])])
    expect(byHand.states.get('5')).toBe('extra')
    const another = compareWithServers(records, [new Map([...made, ...served({ 'old A': '192.0.2.9' })])])
    expect(another.unknown).toEqual([{ name: 'old', type: 'A', value: '192.0.2.9' }])
  })
})
