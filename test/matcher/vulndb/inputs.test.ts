// What a source may be given as, and what is refused before it is believed (MAT-063, 066, 074, 088).
import { describe, expect, test } from 'bun:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { strToU8, zipSync } from 'fflate'
import { JsonSplitter } from '../../../apps/matcher/vulndb/input/json-values.ts'
import { buildOf, tar } from './support.ts'

const usn = (id: number): object => ({
  id: `USN-${id}-1`,
  upstream: [`CVE-2024-000${id}`],
  affected: [
    {
      package: { ecosystem: 'Ubuntu:22.04:LTS', name: 'curl' },
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: `${id}-1` }] }],
    },
  ],
})

const texts = [1, 2, 3].map(id => JSON.stringify(usn(id)))
const zip = (files: Record<string, string>): Uint8Array =>
  zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)])))

const fixesOf = async (files: Record<string, unknown>): Promise<string[]> => {
  using built = await buildOf({ ubuntu: files })
  return built.rules('ubuntu:22.04', 'curl').map(({ vuln }) => vuln)
}

const three = ['CVE-2024-0001', 'CVE-2024-0002', 'CVE-2024-0003']

describe('forms of a source', () => {
  const entries = { 'USN-1-1.json': texts[0]!, 'USN-2-1.json': texts[1]!, 'USN-3-1.json': texts[2]! }
  const forms: Record<string, Record<string, unknown>> = {
    'a zip': { 'all.zip': zip(entries) },
    'a zip with folders and other files': { 'all.zip': zip({ ...entries, 'README.md': '#', 'a/b/c.txt': 'x' }) },
    'a folder': { 'a/1.json': texts[0], 'b/2.json': texts[1], 'b/c/3.json': texts[2], 'b/notes.txt': 'x' },
    'records a line': { 'all.jsonl': `${texts.join('\n')}\n` },
    'records a line in gzip': { 'all.jsonl.gz': gzipSync(texts.join('\n')) },
    'records a line in zstd': { 'all.jsonl.zst': zstdCompressSync(texts.join('\n')) },
    'a zip without a name that tells': { data: zip(entries) },
    'one array': { 'all.json': `[${texts.join(',')}]` },
    'values after each other': { 'all.json': texts.map(text => JSON.stringify(JSON.parse(text), null, 2)).join('\n') },
    'a folder of packed records': {
      'a/1.json.gz': gzipSync(texts[0]!),
      'a/2.json.zst': zstdCompressSync(texts[1]!),
      'a/3.json': texts[2],
    },
    'a tar archive in zstd': { 'all.tar.zst': zstdCompressSync(tar(entries)) },
    'a tar archive in gzip': { 'all.tar.gz': gzipSync(tar({ ...entries, 'other.txt': 'x'.repeat(2000) })) },
  }
  for (const [name, files] of Object.entries(forms))
    test(`[MAT-088] ${name}`, async () => expect(await fixesOf(files)).toEqual(three))

  test('[MAT-088] one record', async () =>
    expect(await fixesOf({ 'USN-1-1.json': texts[0] })).toEqual(['CVE-2024-0001']))
})

describe('refused', () => {
  const refused = async (files: Record<string, unknown>, reason: string): Promise<void> =>
    await expect(buildOf({ ubuntu: files })).rejects.toThrow(reason)

  test('[MAT-074] entries with .. or an absolute name', async () => {
    for (const name of ['../1.json', 'a/../../1.json', '/1.json', 'C:\\1.json', 'a\\..\\1.json'])
      await refused({ 'all.zip': zip({ [name]: texts[0]! }) }, 'an absolute name or one with ..')
    await refused({ 'all.tar': tar({ '../1.json': texts[0]! }) }, 'an absolute name or one with ..')
  })

  test('[MAT-074] an entry or a stream that inflates beyond 200 times', async () => {
    const zeros = `{"id":"${'0'.repeat(16 * 1024 * 1024)}"}`
    await refused({ 'all.zip': zip({ '1.json': zeros }) }, 'inflates beyond 200 times')
    await refused({ 'all.json.gz': gzipSync(zeros) }, 'inflates beyond 200 times')
    await refused({ 'all.json.zst': zstdCompressSync(zeros) }, 'inflates beyond 200 times')
  })

  test('[MAT-074] an archive or a stream that is cut short', async () => {
    const noise = JSON.stringify({
      ...usn(1),
      details: Array.from({ length: 4000 }, (_, i) => Math.sin(i).toString(36)),
    })
    const whole = {
      'all.zip': zip({ '1.json': noise }),
      'all.json.gz': gzipSync(noise),
      'all.json.zst': zstdCompressSync(noise),
    }
    for (const [name, bytes] of Object.entries(whole))
      await refused({ [name]: bytes.subarray(0, Math.floor(bytes.length / 2)) }, 'truncated')
    await refused({ 'all.tar': tar({ '1.json': noise }).subarray(0, 1500) }, 'truncated')
  })

  test('[MAT-066] [MAT-074] an archive whose check sums are wrong', async () => {
    const all = { '1.json': texts[0]!, '2.json': texts[1]! }
    const stored = Buffer.from(zipSync({ '1.json': [strToU8(texts[0]!), { level: 0 }] }))
    stored.write('9', stored.indexOf('"1-1"') + 1)
    await refused({ 'all.zip': stored }, 'an entry has another check sum')
    const packed = Buffer.from(zip(all))
    packed[packed.indexOf(Buffer.from([0x50, 0x4b, 0x01, 0x02])) + 16]! ^= 1
    await refused({ 'all.zip': packed }, 'an entry has another check sum')
    const renamed = tar(all)
    renamed.write('3', 0)
    await refused({ 'all.tar': renamed }, 'a header has another check sum')
  })

  test('[MAT-066] files that are no JSON are records that cannot be read', async () => {
    await refused({ 'all.zip': zip({ '1.json': texts[0]!, '2.json': 'no JSON' }) }, '1 of its 2 records cannot be read')
    await refused({ 'all.jsonl': `${texts.join('\n')}\n{"id":` }, '1 of its 4 records cannot be read')
    await refused({ 'all.json': '' }, 'cannot be read')
  })

  test('[MAT-065] a source without records', async () => {
    await refused({ 'all.zip': zip({ 'README.md': '#' }) }, 'it has no records')
    await refused({ 'all.jsonl': '' }, 'it has no records')
  })

  test('the JSON of another thing where a tracker is expected', async () => {
    await expect(buildOf({ debian: { 'tracker.json': [1, 2] } })).rejects.toThrow('it is not the JSON of a Debian')
    for (const text of [
      '{"a":{}}}',
      'hello {"a":{}}',
      '{"a":{}} world',
      '{"a":{}}{"b":{}}',
      '{"a":{}},{"b":{}}',
      ',{"a":{}}',
      ',',
    ])
      await expect(buildOf({ debian: { 'tracker.json': text } })).rejects.toThrow('it is no JSON')
    await expect(buildOf({ debian: { 'tracker.json': '['.repeat(100_000) } })).rejects.toThrow('nested deeper than 64')
    await expect(buildOf({ kev: { 'kev.json': { items: [] } } })).rejects.toThrow('is not the CISA catalogue')
    await expect(buildOf({ epss: { 'epss.csv': 'a,b\n1,2\n' } })).rejects.toThrow('is not an EPSS file')
  })
})

describe('cutting JSON', () => {
  const cut = (text: string, level: 0 | 1 | 2, size: number): [string[], unknown][] => {
    const splitter = new JsonSplitter(level)
    const bytes = Buffer.from(text)
    const pieces: [string[], unknown][] = []
    for (let at = 0; at < bytes.length; at += size)
      for (const { keys, text: piece } of splitter.push(bytes.subarray(at, at + size)))
        pieces.push([[...keys], JSON.parse(piece)])
    expect(splitter.isWhole).toBeTrue()
    return pieces
  }

  test('the same pieces come out whatever the sizes of the chunks', () => {
    const value = {
      'a "key" \\ with { brackets': { x: ['é', '}', '\\"', 1.5e3, null, true], y: {} },
      plain: 'text, with : and }',
      list: [1, [2, [3]], { z: '' }],
      empty: [],
    }
    for (const text of [JSON.stringify(value), JSON.stringify(value, null, 3)])
      for (const size of [1, 2, 3, 7, 64, 100_000]) {
        expect(cut(text, 1, size)).toEqual(Object.entries(value).map(([key, item]) => [[key], item]))
        expect(cut(text, 2, size).filter(([keys]) => keys[0] === 'list')).toEqual([
          [['list'], 1],
          [['list'], [2, [3]]],
          [['list'], { z: '' }],
        ])
        expect(cut(`${text}\n${text}`, 0, size)).toEqual([
          [[], value],
          [[], value],
        ])
      }
  })
})
