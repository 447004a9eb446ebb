// A simulated fleet, a process of its own: agents with their own state that send batches of host series to an agent
// API, all at once as fast as they are answered, or each in its interval with a phase and jitter of its own, as agents
// do. Usage: bun bench/fleet.ts URL TOKENS_FILE [--rounds 10] [--series 150] [--connections 64] [--start-ms MS]
// [--interval-ms 0] [--jitter 0.1]
//   [--reconnect] [--random] [--seed N] [--share backfill=0.05 --share garbage=0.01 …]
// Every agent sends `rounds` times. --interval-ms 0: as fast as it is answered, rounds 30 s of sample time apart from
// --start-ms (an hour ago).
// --reconnect: a connection for every batch. --random: values without a pattern, instead of random walks.
// --share: of the agents that behave otherwise than well (fleet-agents.ts).
// Prints one JSON line: latencies and counts of the well-behaved, counts by status, and `unexpected`: answers that a
// behaviour must not get.
import { parseArgs } from 'node:util'
import { Random } from '../test/fuzz/seeded.ts'
import { hostSeries } from './batches.ts'
import { type Behaviour, behaviourNames, behaviours, type FleetAgent, fleetOf, type Sending } from './fleet-agents.ts'

const SAMPLE_INTERVAL_MS = 30_000
const SLOW_BYTES = 10
const TICK_MS = 2

type FleetOptions = {
  readonly url: string
  readonly tokens: readonly string[]
  readonly rounds: number
  readonly seriesCount: number
  readonly connections: number
  readonly startMs: number
  /** 0: as fast as they are answered. */
  readonly intervalMs: number
  /** Of the interval, either way. */
  readonly jitter: number
  readonly reconnects: boolean
  /** Values have no pattern; else they are random walks. */
  readonly isRandom: boolean
  readonly seed: number
  readonly shares: Partial<Readonly<Record<Behaviour, number>>>
}

/**
 * A connection that carries one request at a time; HTTP/1.1 by hand, so that an agent stays on its connection, as
 * agents do.
 */
class Connection {
  private socket: Bun.Socket | null = null
  private answer: ((status: number) => void) | null = null
  private received = ''
  /** Settles when what was sent before is answered. */
  free: Promise<unknown> = Promise.resolve()

  constructor(private readonly url: URL) {}

  private async open(): Promise<Bun.Socket> {
    const { hostname, port, protocol } = this.url
    const isTls = protocol === 'https:'
    const shaken = Promise.withResolvers<void>()
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      ...(isTls ? { tls: { rejectUnauthorized: false } } : {}),
      socket: {
        data: (_, bytes) => this.take(bytes),
        close: () => {
          shaken.resolve()
          this.end()
        },
        handshake: () => shaken.resolve(),
      },
    })
    // What is written before the handshake is lost.
    if (isTls) await shaken.promise
    return socket
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

  /** The next request opens another connection. */
  end(): void {
    this.socket?.end()
    this.socket = null
    this.settle(0)
  }

  /** The status of the answer; 0 when there was none. */
  async post({ token, body, manner }: Sending): Promise<number> {
    this.socket ??= await this.open()
    const { socket } = this
    const answered = new Promise<number>(resolve => {
      this.answer = resolve
    })
    const head = Buffer.from(
      `POST /agent/v1/metrics HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${token}\r\ncontent-type: application/x-protobuf\r\n` +
        `content-encoding: zstd\r\nx-svc-proto: 1\r\nx-svc-agent-version: 1.0.0\r\ncontent-length: ${body.length}\r\n\r\n`,
    )
    if (manner === 'whole') socket.write(Buffer.concat([head, body]))
    else {
      socket.write(Buffer.concat([head, body.subarray(0, body.length >> 1)]))
      for (let at = 0; manner === 'slow' && at < SLOW_BYTES && this.socket; at++) {
        socket.write(body.subarray((body.length >> 1) + at, (body.length >> 1) + at + 1))
        await Bun.sleep(1000)
      }
      this.end()
    }
    return await answered
  }
}

class Fleet {
  private readonly agents: readonly FleetAgent[]
  private readonly lines: readonly Connection[]
  private readonly latenciesMs: number[] = []
  private readonly statuses: Record<string, number> = {}
  private readonly unexpected: Record<string, number> = {}
  private batches = 0
  private refused = 0

  constructor(
    private readonly options: FleetOptions,
    private readonly random = new Random(options.seed),
  ) {
    this.agents = fleetOf(options.tokens, hostSeries(options.seriesCount), random, options)
    const url = new URL(options.url)
    this.lines = Array.from({ length: options.connections }, () => new Connection(url))
  }

  async run() {
    const startedAt = performance.now()
    await (this.options.intervalMs > 0 ? this.inIntervals() : this.atOnce())
    const { latenciesMs, options } = this
    latenciesMs.sort((a, b) => a - b)
    const quantile = (q: number) => Math.round((latenciesMs[Math.floor(latenciesMs.length * q)] ?? 0) * 100) / 100
    return {
      agents: this.agents.length,
      batches: this.batches,
      samples: this.batches * options.seriesCount,
      refused: this.refused,
      seconds: Math.round(performance.now() - startedAt) / 1000,
      p50_ms: quantile(0.5),
      p99_ms: quantile(0.99),
      statuses: this.statuses,
      unexpected: this.unexpected,
      seed: options.seed,
    }
  }

  /** Each connection has agents of its own, which send one after the other. */
  private async atOnce(): Promise<void> {
    const { agents, lines, options } = this
    const sender = async (line: Connection, first: number) => {
      for (let round = 0; round < options.rounds; round++)
        for (let index = first; index < agents.length; index += lines.length)
          await this.turn(agents[index]!, line, options.startMs + round * SAMPLE_INTERVAL_MS, SAMPLE_INTERVAL_MS)
    }
    await Promise.all(lines.map(sender))
  }

  /** Each agent has a phase of its own in the interval, and jitter. */
  private async inIntervals(): Promise<void> {
    const { agents, lines, options, random } = this
    const { intervalMs, jitter, rounds } = options
    const turns: { readonly atMs: number; readonly index: number }[] = []
    for (let index = 0; index < agents.length; index++) {
      const phaseMs = random.float() * intervalMs
      for (let round = 0; round < rounds; round++)
        turns.push({ atMs: phaseMs + (round + (random.float() - 0.5) * 2 * jitter) * intervalMs, index })
    }
    turns.sort((a, b) => a.atMs - b.atMs)
    const startedAt = performance.now()
    const running: Promise<unknown>[] = []
    for (let next = 0; next < turns.length; ) {
      const nowMs = performance.now() - startedAt
      for (; next < turns.length && turns[next]!.atMs <= nowMs; next++) {
        const { index } = turns[next]!
        const line = lines[index % lines.length]!
        const turn = line.free.then(() => this.turn(agents[index]!, line, Date.now(), intervalMs))
        line.free = turn
        running.push(turn)
      }
      await Bun.sleep(TICK_MS)
    }
    await Promise.all(running)
  }

  private async turn(agent: FleetAgent, line: Connection, tsMs: number, intervalMs: number): Promise<void> {
    for (const sending of agent.next(tsMs, intervalMs)) {
      const sentAt = performance.now()
      const status = await line.post(sending)
      this.note(agent.behaviour, status, performance.now() - sentAt)
      if (this.options.reconnects) line.end()
    }
  }

  private note(behaviour: Behaviour, status: number, latencyMs: number): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1
    const allowed: readonly number[] = behaviours[behaviour]
    if (!allowed.includes(status)) {
      const name = `${behaviour} ${status}`
      this.unexpected[name] = (this.unexpected[name] ?? 0) + 1
    }
    if (status === 200) this.batches++
    else this.refused++
    if (behaviour === 'good') this.latenciesMs.push(latencyMs)
  }
}

/** Sends everything that there is to send, and counts. */
const runFleet = (options: FleetOptions) => new Fleet(options).run()
type FleetReport = Awaited<ReturnType<typeof runFleet>>

/** The same in a process of its own: its processor time is not that of the caller. */
export async function fleetProcess(url: string, tokensFile: string, ...args: readonly string[]): Promise<FleetReport> {
  const command = ['bun', import.meta.path, url, tokensFile, ...args]
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'inherit' })
  return JSON.parse(await new Response(child.stdout).text())
}

function sharesOf(given: readonly string[]): Partial<Record<Behaviour, number>> {
  const shares: Partial<Record<Behaviour, number>> = {}
  for (const share of given) {
    const [name = '', value = ''] = share.split('=')
    const behaviour = behaviourNames.find(known => known === name)
    if (!behaviour) throw new Error(`no behaviour ${name}: ${behaviourNames.join(', ')}`)
    shares[behaviour] = Number(value)
  }
  return shares
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '10' },
      series: { type: 'string', default: '150' },
      connections: { type: 'string', default: '64' },
      'start-ms': { type: 'string', default: String(Date.now() - 3_600_000) },
      'interval-ms': { type: 'string', default: '0' },
      jitter: { type: 'string', default: '0.1' },
      reconnect: { type: 'boolean', default: false },
      random: { type: 'boolean', default: false },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
      share: { type: 'string', multiple: true, default: [] },
    },
  })
  const [url = '', tokensFile = ''] = positionals
  const report = await runFleet({
    url,
    tokens: await Bun.file(tokensFile).json(),
    rounds: Number(values.rounds),
    seriesCount: Number(values.series),
    connections: Number(values.connections),
    startMs: Number(values['start-ms']),
    intervalMs: Number(values['interval-ms']),
    jitter: Number(values.jitter),
    reconnects: values.reconnect,
    isRandom: values.random,
    seed: Number(values.seed),
    shares: sharesOf(values.share),
  })
  console.log(JSON.stringify(report))
  // The server may keep idle connections for a while; the figures do not wait for that.
  process.exit(0)
}
