import { expect, test } from 'bun:test'
import { readRpmHeader, readRpmQueryLine } from '../../../core/matching/rpm-header.ts'
import { randomFrom } from '../../support/random.ts'

type Entry = { readonly tag: number; readonly type: number; readonly bytes: Uint8Array; readonly count?: number }

const text = (tag: number, value: string, type = 6): Entry => ({ tag, type, bytes: Buffer.from(`${value}\0`) })

function number(tag: number, value: number): Entry {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return { tag, type: 4, bytes }
}

/** A header as rpm stores it. */
function header(entries: readonly Entry[]): Buffer {
  const index = entries.map(({ tag, type, count = 1 }, at) => {
    const entry = Buffer.alloc(16)
    const offset = entries.slice(0, at).reduce((sum, { bytes }) => sum + bytes.length, 0)
    for (const [place, value] of [tag, type, offset, count].entries()) entry.writeUInt32BE(value, place * 4)
    return entry
  })
  const data = Buffer.concat(entries.map(({ bytes }) => bytes))
  const intro = Buffer.alloc(8)
  intro.writeUInt32BE(entries.length, 0)
  intro.writeUInt32BE(data.length, 4)
  return Buffer.concat([intro, ...index, data])
}

const BASH = [
  text(1000, 'bash'),
  text(1001, '5.1.8'),
  text(1002, '9.el9'),
  number(1003, 0),
  number(1008, 1_700_000_000),
  text(1011, 'AlmaLinux'),
  text(1022, 'x86_64'),
  text(1044, 'bash-5.1.8-9.el9.src.rpm'),
  text(1004, 'summary', 9),
]

const packageOf = (entries: readonly Entry[]) => {
  const outcome = readRpmHeader(header(entries))
  if (typeof outcome === 'string') throw new Error(outcome)
  return outcome
}

test('[MAT-009] the tags of a header are read', () => {
  expect(packageOf(BASH)).toEqual({
    installed: {
      name: 'bash',
      version: '5.1.8-9.el9',
      arch: 'x86_64',
      source: 'bash',
      sourceVersion: '5.1.8-9.el9',
      module: '',
      vendor: 'AlmaLinux',
    },
    installedAtSeconds: 1_700_000_000,
  })
  const more = packageOf([...BASH.filter(({ tag }) => tag !== 1003), number(1003, 7), text(5096, 'a:b:c:d')])
  expect(more.installed).toMatchObject({ version: '7:5.1.8-9.el9', sourceVersion: '7:5.1.8-9.el9', module: 'a:b:c:d' })
})

test('[MAT-012] the source is cut out of the name of its file from the right', () => {
  const sourceOf = (name: string) => {
    const { installed } = packageOf([...BASH.filter(({ tag }) => tag !== 1044), text(1044, name)])
    return `${installed.source} ${installed.sourceVersion}`
  }
  expect(sourceOf('python3.11-setuptools-65.5.1-2.el9.src.rpm')).toBe('python3.11-setuptools 65.5.1-2.el9')
  expect(sourceOf('nvidia-550-1.nosrc.rpm')).toBe('nvidia 550-1')
  for (const none of ['', '(none)', 'odd', 'a-b.src.rpm', '-1-2.src.rpm'])
    expect(sourceOf(none)).toBe('bash 5.1.8-9.el9')
})

test('[MAT-012] a trusted key is no package', () => {
  expect(readRpmHeader(header([text(1000, 'gpg-pubkey'), text(1001, 'abc'), text(1002, '1')]))).toBe('key')
  expect(readRpmQueryLine('gpg-pubkey\t0\tabc\t1\t(none)\t(none)\t0\t(none)\t(none)')).toBe('key')
})

test('[MAT-009] counts, offsets and lengths that lead outside of a header are found out', () => {
  const whole = header(BASH)
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(whole)
    copy.writeUInt32BE(value, at)
    return readRpmHeader(copy)
  }
  expect(changed(0, 0xffffffff)).toBe('malformed')
  expect(changed(0, BASH.length + 100)).toBe('malformed')
  expect(changed(4, 0xffffffff)).toBe('malformed')
  expect(changed(4, whole.length)).toBe('malformed')
  // The first entry: its type, offset and count.
  expect(changed(12, 99)).toBe('malformed')
  expect(changed(16, 0xffffffff)).toBe('malformed')
  expect(changed(16, whole.length)).toBe('malformed')
  expect(changed(20, 0)).toBe('malformed')
  expect(readRpmHeader(new Uint8Array(7))).toBe('malformed')
  expect(readRpmHeader(header(BASH.filter(({ tag }) => tag !== 1002)))).toBe('malformed')
  // A text that never ends.
  expect(readRpmHeader(header([...BASH.slice(1), { tag: 1000, type: 6, bytes: Buffer.from('bash') }]))).toBe(
    'malformed',
  )
})

test('[MAT-009] no change of a byte and no cut makes it crash', () => {
  const seed = Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 1_000_000)
  console.log(`seed ${seed}`)
  const random = randomFrom(seed)
  const whole = header(BASH)
  for (let round = 0; round < 20_000; round++) {
    const copy = Buffer.from(whole.subarray(0, random() < 0.3 ? Math.floor(random() * whole.length) : whole.length))
    for (let change = 0; change < 3 && copy.length > 0; change++)
      copy[Math.floor(random() * copy.length)] = Math.floor(random() * 256)
    const outcome = readRpmHeader(copy)
    if (typeof outcome === 'object') expect(outcome.installed.name).not.toBe('')
  }
})

test('[MAT-011] [MAT-012] a line of rpm -qa says what a header says', () => {
  const line = 'bash\t0\t5.1.8\t9.el9\tx86_64\tbash-5.1.8-9.el9.src.rpm\t1700000000\tAlmaLinux\t(none)'
  expect(readRpmQueryLine(line)).toEqual(packageOf(BASH))
  expect(readRpmQueryLine(line.replace(/\t\(none\)$/, ''))).toEqual(packageOf(BASH))
  for (const torn of ['', 'bash', 'bash\tx\t1\t2\ta\ts\t0\tv\tm', line.slice(0, 20), `${line}\tmore`])
    expect(readRpmQueryLine(torn)).toBe('malformed')
})

test('[MAT-009] a header that repeats a tag some thousand times costs no more than one that has it once', () => {
  const long = text(1000, 'x'.repeat(16 * 1024 * 1024))
  const blob = header([long])
  const entry = blob.subarray(8, 24)
  const entries = Buffer.concat(Array.from({ length: 60_000 }, () => entry))
  const intro = Buffer.alloc(8)
  intro.writeUInt32BE(60_000, 0)
  blob.copy(intro, 4, 4, 8)
  const began = performance.now()
  expect(readRpmHeader(Buffer.concat([intro, entries, blob.subarray(24)]))).toBe('malformed')
  expect(performance.now() - began).toBeLessThan(5_000)
})
