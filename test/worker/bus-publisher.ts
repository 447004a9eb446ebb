// A process that publishes on a bus as fast as it can and prints the number of every entry that was acknowledged, until
// it is killed. Usage: bun bus-publisher.ts PATH FROM SEED
import { FileBusWriter } from '../../apps/collector/bus/file-bus-writer.ts'
import { randomFrom } from '../support/random.ts'

const [path, from, seed] = process.argv.slice(2)
const ENTRY_BYTES_MAX = 512 * 1024
const random = randomFrom(Number(seed))
const writer = new FileBusWriter({
  path: path!,
  bytesMax: 256 * 1024 * 1024,
  ageMaxMs: 3_600_000,
  groupWaitMs: 1,
  nowMs: Date.now,
  onPublished: () => {},
  onError: error => {
    throw error
  },
})

/** An entry that tells its number at both ends. */
function entryOf(number: number): Uint8Array {
  const words = new Float64Array(2 + Math.floor((random() ** 3 * ENTRY_BYTES_MAX) / 8))
  words[0] = number
  words[words.length - 1] = number
  return new Uint8Array(words.buffer)
}

for (let number = Number(from); ; ) {
  const publishing = Array.from({ length: 1 + Math.floor(random() * 8) }, async () => {
    const own = number++
    const refusal = await writer.publish('a', entryOf(own))
    return refusal === null ? own : null
  })
  const kept = (await Promise.all(publishing)).filter(own => own !== null)
  if (kept.length > 0) process.stdout.write(`${kept.join('\n')}\n`)
}
