// Definitions as a block of the table `series`: what is copied as bytes is what was defined.
import { expect, test } from 'bun:test'
import { NativeReader } from '../../../core/samples/block/native-reader.ts'
import { NativeWriter } from '../../../core/samples/block/native-writer.ts'
import { definedBy, definitionList, writeSeriesBlock } from '../../../core/samples/block/series-definitions.ts'
import { serverWords } from '../../../core/samples/block/uuid-words.ts'
import { seriesId } from '../../../core/series/series-key.ts'
import { randomFrom } from '../../support/random.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const COMPANY = 'cccccccc-0000-4000-8000-000000000001'
const serverOf = (index: number): string => `aaaaaaaa-0000-4000-8000-${String(index).padStart(12, '0')}`

test(`[STO-001] rows of servers with the same lists and others, whole and cut, have their own ids, keys and times (SEED=${SEED})`, () => {
  const random = randomFrom(SEED)
  const upTo = (most: number): number => Math.floor(random() * (most + 1))
  // Longer than one byte of length can say, and with characters of several bytes.
  const keys = Array.from({ length: 40 }, (_, at) =>
    at % 3 === 0 ? `cpu_${at}` : `disk_${at}{mount="/${'đĩa'.repeat(upTo(60))}${at}"}`,
  )
  const listOf = (of: readonly string[]) =>
    definitionList(of.map(key => ({ idLo: seriesId(key).lo, idHi: seriesId(key).hi, key })))
  const lists = [listOf(keys), listOf(keys.slice(7, 9)), listOf([])]
  const defined = Array.from({ length: 30 }, (_, index) => {
    const list = lists[upTo(2)]!
    const whole = definedBy({ companyId: COMPANY, serverId: serverOf(index) }, list, 1_800_000_000_000 + index)
    const end = upTo(whole.end)
    return { ...whole, begin: upTo(end), end }
  })
  const writer = new NativeWriter()
  writeSeriesBlock(writer, defined)
  const wanted = defined.flatMap(({ serverId, seenAtMs, list, begin, end }) =>
    list.definitions.slice(begin, end).map(({ key }) => ({
      server: [...serverWords([{ companyId: COMPANY, serverId }])],
      metric: key.split('{')[0],
      id: seriesId(key),
      key,
      times: [seenAtMs, seenAtMs],
    })),
  )
  const block = writer.finish()
  const reader = new NativeReader(block)
  const { view } = reader
  const text = (): string => {
    const length = reader.text()
    return new TextDecoder().decode(block.subarray(reader.end() - length, reader.end()))
  }
  const rows = reader.begin()
  expect(rows).toBe(wanted.length)
  const words = (at: number, count: number) =>
    Array.from({ length: count }, (_, word) => view.getUint32(at + word * 4, true))
  const [companies, servers] = [reader.column(rows * 16), reader.column(rows * 16)]
  reader.column(0)
  const metrics = Array.from({ length: rows }, text)
  const ids = reader.column(rows * 8)
  reader.column(0)
  const texts = Array.from({ length: rows }, text)
  const times = [reader.column(rows * 8), reader.column(rows * 8)]
  const found = texts.map((key, row) => ({
    server: [...words(companies + row * 16, 4), ...words(servers + row * 16, 4)],
    metric: metrics[row],
    id: { lo: view.getUint32(ids + row * 8, true), hi: view.getUint32(ids + row * 8 + 4, true) },
    key,
    times: times.map(at => Number(view.getBigInt64(at + row * 8, true))),
  }))
  expect(found).toEqual(wanted)
})
