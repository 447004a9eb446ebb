// A load generator, a process of its own: agents that send batches of host series to an agent API as fast as it answers.
// Usage: bun bench/load.ts URL TOKENS_FILE ROUNDS SERIES CONNECTIONS [START_MS]
// Every agent sends one batch a round; rounds are 30 s of sample time apart. Prints one JSON line: batches, samples, refused, seconds.
import { batchBytes, hostSeries } from './batches.ts'

const VARIANTS = 16
const [
  url = '',
  tokensFile = '',
  rounds = '10',
  seriesCount = '150',
  connections = '64',
  start = String(Date.now() - 3_600_000),
] = process.argv.slice(2)
const tokens: string[] = await Bun.file(tokensFile).json()
const series = hostSeries(Number(seriesCount))

/** Random walks between 0 and 100, a decimal each, as host values are. */
const walks = Array.from({ length: VARIANTS }, () => series.map(() => Math.random() * 80))
function bodies(round: number): Uint8Array<ArrayBuffer>[] {
  const tsMs = Number(start) + round * 30_000
  return walks.map(walk => {
    const bytes = batchBytes(series, round + 1, tsMs, index => {
      walk[index] = Math.min(85, Math.max(0, walk[index]! + (Math.random() - 0.5) * 4))
      return Math.round(walk[index]! * 10) / 10
    })
    return new Uint8Array(Bun.zstdCompressSync(bytes))
  })
}

let batches = 0
let refused = 0
const latenciesMs: number[] = []
async function send(token: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const sentAt = performance.now()
  const response = await fetch(`${url}/agent/v1/metrics`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/x-protobuf',
      'content-encoding': 'zstd',
      'x-svc-proto': '1',
      'x-svc-agent-version': '1.0.0',
    },
    body,
  })
  await response.arrayBuffer()
  latenciesMs.push(performance.now() - sentAt)
  if (response.status === 200) batches++
  else refused++
}

const startedAt = performance.now()
for (let round = 0; round < Number(rounds); round++) {
  const ofRound = bodies(round)
  let next = 0
  const sender = async () => {
    while (next < tokens.length) {
      const agent = next++
      await send(tokens[agent]!, ofRound[agent % VARIANTS]!)
    }
  }
  await Promise.all(Array.from({ length: Number(connections) }, sender))
}
latenciesMs.sort((a, b) => a - b)
const quantile = (q: number) => Math.round((latenciesMs[Math.floor(latenciesMs.length * q)] ?? 0) * 100) / 100
console.log(
  JSON.stringify({
    batches,
    samples: batches * series.length,
    refused,
    seconds: Math.round(performance.now() - startedAt) / 1000,
    p50_ms: quantile(0.5),
    p99_ms: quantile(0.99),
  }),
)
