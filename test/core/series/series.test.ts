// Identity of a series, labels, UUIDs.
import { describe, expect, test } from 'bun:test'
import { uuidFromText } from '../../../core/series/hash.ts'
import { isLabelKey, isMetricName, isReservedLabel, truncateUtf8 } from '../../../core/series/labels.ts'
import { fullSeriesKey, parseSeriesKey, seriesId, seriesKey } from '../../../core/series/series-key.ts'
import { isUuid, readUuid, writeUuid } from '../../../core/series/uuid.ts'

describe('series key', () => {
  const f = (metric: string, labels: Record<string, string>, expected: string) =>
    expect(fullSeriesKey(metric, labels)).toBe(expected)

  test('[RUL-036] metric{label="value"} with sorted labels; no labels, no braces; an empty value is no label', () => {
    f('cpu_usage_percent', {}, 'cpu_usage_percent')
    f(
      'disk_used_percent',
      { mount: '/', fstype: 'ext4', device: '/dev/sda1' },
      'disk_used_percent{device="/dev/sda1",fstype="ext4",mount="/"}',
    )
    f('port_up', { port: '80', proto: '' }, 'port_up{port="80"}')
    f('http_up', { target: 'a"b\\c\nd' }, 'http_up{target="a\\"b\\\\c\\nd"}')
  })

  test('a key gives back its metric and labels', () => {
    const cases: Record<string, string>[] = [{}, { a: '' }, { a: '1', b: 'x,y="z"\\' }, { target: 'line\nbreak' }]
    for (const labels of cases) {
      const kept = Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== ''))
      expect(parseSeriesKey(fullSeriesKey('m', labels))).toEqual({ metric: 'm', labels: kept })
    }
    expect(() => parseSeriesKey('m{a="1')).toThrow('not a series key')
  })

  const ofBytes = (bytes: number) => 'x'.repeat(bytes - 'http_up{target=""}'.length)

  test('[RUL-037, RUL-038] up to 255 bytes whole; beyond, a head of 242 bytes, ~ and 12 characters of hash', () => {
    const whole = seriesKey('http_up', { target: ofBytes(255) })
    expect(Buffer.byteLength(whole)).toBe(255)
    expect(whole.endsWith('"}')).toBe(true)
    const cut = seriesKey('http_up', { target: ofBytes(256) })
    expect(cut).toMatch(/^http_up\{target="x+~[0-9a-f]{12}$/)
    expect(Buffer.byteLength(cut)).toBe(255)
    const wide = seriesKey('http_up', { target: 'é'.repeat(200) })
    expect(Buffer.byteLength(wide)).toBeLessThanOrEqual(255)
    expect(wide).not.toContain('\ufffd')
  })

  test('[RUL-039] long keys with the same head differ', () => {
    const a = seriesKey('http_up', { target: `${'x'.repeat(300)}a` })
    const b = seriesKey('http_up', { target: `${'x'.repeat(300)}b` })
    expect(a.slice(0, 242)).toBe(b.slice(0, 242))
    expect(a).not.toBe(b)
  })

  test('the id of a series is the start of the SHA-256 of its key, for ever', () => {
    // printf %s cpu_usage_percent | sha256sum
    expect(seriesId('cpu_usage_percent')).toEqual(seriesId('cpu_usage_percent'))
    const { lo, hi } = seriesId('cpu_usage_percent')
    const bytes = Buffer.alloc(8)
    bytes.writeUInt32LE(lo, 0)
    bytes.writeUInt32LE(hi, 4)
    expect(bytes.toString('hex')).toBe(
      new Bun.CryptoHasher('sha256').update('cpu_usage_percent').digest('hex').slice(0, 16),
    )
  })
})

test('names, label keys and reserved labels are judged as the documents write them', () => {
  for (const name of ['a', 'cpu_usage_percent', `a${'b'.repeat(63)}`]) expect(isMetricName(name)).toBe(true)
  for (const name of ['', 'A', '1a', 'a-b', `a${'b'.repeat(64)}`, 'a\n']) expect(isMetricName(name)).toBe(false)
  expect(isLabelKey(`a${'b'.repeat(31)}`)).toBe(true)
  expect(isLabelKey(`a${'b'.repeat(32)}`)).toBe(false)
  for (const key of ['company_id', 'server_id', 'agent_id']) expect(isReservedLabel(key)).toBe(true)
})

test('[ING-030] a cut never splits a character', () => {
  const f = (text: string, bytes: number, expected: string) => expect(truncateUtf8(text, bytes)).toBe(expected)
  f('abc', 3, 'abc')
  f('abcd', 3, 'abc')
  f('aé', 2, 'a')
  f('aé', 3, 'aé')
  f('a€b', 3, 'a')
  f('😀x', 3, '')
  f('😀x', 4, '😀')
})

test('a UUID survives its 16 bytes, and one made of text is the same for the same text', () => {
  const bytes = new Uint8Array(40)
  for (const uuid of [
    '00000000-0000-4000-8000-000000000000',
    'ffffffff-ffff-4fff-bfff-ffffffffffff',
    crypto.randomUUID(),
  ]) {
    writeUuid(bytes, 11, uuid)
    expect(readUuid(bytes, 11)).toBe(uuid)
  }
  expect(uuidFromText('a')).toBe(uuidFromText('a'))
  expect(uuidFromText('a')).not.toBe(uuidFromText('b'))
  expect(isUuid(uuidFromText('a'))).toBe(true)
  for (const text of ['', 'FFFFFFFF-ffff-4fff-bfff-ffffffffffff', 'x', '00000000000040008000000000000000'])
    expect(isUuid(text)).toBe(false)
})
