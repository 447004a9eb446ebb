// The writer of a bus, killed at random moments while it publishes and a reader lets segments go.
// The seed is printed; KILLS and SEED change the run.
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileBusReader } from '../../apps/collector/bus/file-bus-reader.ts'
import { randomFrom } from '../support/random.ts'

const KILLS = Number(process.env.KILLS ?? 12)
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const publisher = join(import.meta.dir, 'bus-publisher.ts')
/** Entries that are acknowledged before a kill, at most. */
const ACKNOWLEDGED_MAX = 150

test(`[BUS-004, BUS-005] a bus whose writer is killed ${KILLS} times has every acknowledged entry once, in its order`, async () => {
  console.log(`bus: SEED=${SEED} KILLS=${KILLS}`)
  const random = randomFrom(SEED)
  const directory = mkdtempSync(join(tmpdir(), 'svc-bus-kill-'))
  const path = join(directory, 'bus.sqlite')
  const reader = new FileBusReader(path, ['test'])
  const found: number[] = []
  let position = 0
  /** A little at a time: who reads to the end while somebody writes faster never comes to it. */
  const readSome = async (): Promise<boolean> => {
    const groups = await reader.read(0, position, 4 * 1024 * 1024)
    for (const group of groups) {
      const numbers = numbersIn(group.bytes)
      expect([group.firstPosition, numbers.length]).toEqual([position + 1, group.count])
      found.push(...numbers)
      position = group.firstPosition + group.count - 1
    }
    if (groups.length > 0) await reader.pass('test', 0, position)
    return groups.length > 0
  }
  let acknowledgedCount = 0
  let next = 1
  for (let kill = 0; kill < KILLS; kill++) {
    const child = Bun.spawn(['bun', publisher, path, String(next), String(SEED + kill)], { stdout: 'pipe' })
    const goal = 1 + Math.floor(random() * ACKNOWLEDGED_MAX)
    const acknowledged = await acknowledgedUntil(child, goal, readSome)
    while (await readSome());
    const held = new Set(found)
    expect(
      acknowledged.filter(number => !held.has(number)),
      `kill ${kill}`,
    ).toEqual([])
    acknowledgedCount += acknowledged.length
    next = Math.max(0, ...acknowledged, found.at(-1) ?? 0) + 1_000_000
  }
  expect(acknowledgedCount).toBeGreaterThan(0)
  expect(found).toEqual([...new Set(found)].sort((a, b) => a - b))
  expect(await reader.lastPosition()).toBe(found.length)
  await reader.close()
  rmSync(directory, { recursive: true, force: true })
}, 3_600_000)

/** What a publisher acknowledged, which is killed as soon as that is `goal` entries. */
async function acknowledgedUntil(
  child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>,
  goal: number,
  meanwhile: () => Promise<unknown>,
): Promise<number[]> {
  let text = ''
  let lines = 0
  const decoder = new TextDecoder()
  for await (const chunk of child.stdout) {
    const more = decoder.decode(chunk)
    text += more
    lines += more.split('\n').length - 1
    if (lines >= goal) child.kill('SIGKILL')
    else await meanwhile()
  }
  await child.exited
  // A line that was cut off is no word of an acknowledgement.
  return text.split('\n').slice(0, -1).map(Number)
}

/** The numbers of the entries, which lie one after another and have them at both ends. */
function numbersIn(bytes: Uint8Array): number[] {
  const words = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8)
  const numbers: number[] = []
  for (let at = 0; at < words.length; ) {
    const number = words[at]!
    const end = words.indexOf(number, at + 1)
    if (end < 0) throw new Error(`entry ${number} has no end`)
    numbers.push(number)
    at = end + 1
  }
  return numbers
}
