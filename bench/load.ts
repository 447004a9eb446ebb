// A load generator, a process of its own: agents that send batches of host series to an agent API as fast as it answers.
// Usage: bun bench/load.ts URL TOKENS_FILE ROUNDS SERIES CONNECTIONS [START_MS] [RECONNECT]
// Every agent sends one batch a round; rounds are 30 s of sample time apart. Prints one JSON line: batches, samples, refused, seconds.
import { batchBytes, hostSeries } from './batches.ts'

const VARIANTS = 16
const [url = '', tokensFile = '', rounds = '10', seriesCount = '150', connections = '64', start = '', reconnect = '0'] =
  process.argv.slice(2)
const startMs = start === '' ? Date.now() - 3_600_000 : Number(start)
/** RECONNECT 1: every batch over a connection of its own. */
const tokens: string[] = await Bun.file(tokensFile).json()
const series = hostSeries(Number(seriesCount))

/** Random walks between 0 and 100, a decimal each, as host values are. */
const walks = Array.from({ length: VARIANTS }, () => series.map(() => Math.random() * 80))
function bodies(round: number): Uint8Array<ArrayBuffer>[] {
  const tsMs = startMs + round * 30_000
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

/** A connection that carries one request at a time; HTTP/1.1 by hand, so that an agent stays on its connection, as agents do. */
class Connection {
  private socket: Bun.Socket | null = null
  private answer: ((status: number) => void) | null = null
  private received = ''

  private async open(): Promise<Bun.Socket> {
    const { hostname, port } = new URL(url)
    return await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_, bytes) => this.take(bytes),
        close: () => {
          this.socket = null
          this.settle(0)
        },
      },
    })
  }

  private take(bytes: Uint8Array): void {
    this.received += Buffer.from(bytes).toString('latin1')
    const headEnd = this.received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const length = Number(/content-length: (\d+)/i.exec(this.received)?.[1] ?? 0)
    if (this.received.length < headEnd + 4 + length) return
    this.settle(Number(this.received.slice(9, 12)))
  }

  private settle(status: number): void {
    const { answer } = this
    this.answer = null
    this.received = ''
    answer?.(status)
  }

  /** The status of the answer; 0 when there was none. */
  async post(token: string, body: Uint8Array): Promise<number> {
    const socket = this.socket ?? (await this.open())
    this.socket = socket
    const answered = new Promise<number>(resolve => {
      this.answer = resolve
    })
    const head = Buffer.from(
      `POST /agent/v1/metrics HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${token}\r\ncontent-type: application/x-protobuf\r\n` +
        `content-encoding: zstd\r\nx-svc-proto: 1\r\nx-svc-agent-version: 1.0.0\r\ncontent-length: ${body.length}\r\n\r\n`,
    )
    socket.write(Buffer.concat([head, body]))
    const status = await answered
    if (reconnect === '1') {
      this.socket = null
      socket.end()
    }
    return status
  }
}

async function send(connection: Connection, token: string, body: Uint8Array): Promise<void> {
  const sentAt = performance.now()
  const status = await connection.post(token, body)
  latenciesMs.push(performance.now() - sentAt)
  if (status === 200) batches++
  else refused++
}

const lines = Array.from({ length: Number(connections) }, () => new Connection())
const startedAt = performance.now()
for (let round = 0; round < Number(rounds); round++) {
  const ofRound = bodies(round)
  // Each connection has agents of its own.
  const sender = async (connection: Connection, index: number) => {
    for (let agent = index; agent < tokens.length; agent += lines.length)
      await send(connection, tokens[agent]!, ofRound[agent % VARIANTS]!)
  }
  await Promise.all(lines.map(sender))
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
// The server may keep idle connections for a while; the figures do not wait for that.
process.exit(0)
// Connections are kept open by both sides; the process ends all the same.
process.exit(0)
