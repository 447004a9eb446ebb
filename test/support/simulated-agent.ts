// An agent that a test drives: it enrolls with a licence and sends the batches that the test tells it to, over the real
// protocol.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import {
  EnrollRequestSchema,
  EnrollResponseSchema,
  type MetricsAck,
  MetricsAckSchema,
  MetricsBatchSchema,
  RenewResponseSchema,
} from '../../proto/gen/svc/agent/v1/agent_pb.ts'

type SimulatedSeries = {
  readonly name: string
  readonly labels?: Record<string, string>
  /** (time in ms, value) pairs. */
  readonly points: readonly (readonly [tsMs: number, value: number])[]
}

const HEADERS = { 'content-type': 'application/x-protobuf', 'x-svc-proto': '1', 'x-svc-agent-version': '1.0.0' }

export class SimulatedAgent {
  seq = 0

  constructor(
    readonly agentUrl: string,
    readonly agentId: string,
    readonly token: string,
  ) {}

  /** Enrolls a server of this hostname; the hub must be able to pair it. */
  static async enroll(agentUrl: string, license: string, hostname: string): Promise<SimulatedAgent> {
    const request = create(EnrollRequestSchema, {
      license,
      hostname,
      machineId: `machine-${hostname}`,
      ipAddresses: [],
      os: { family: 'linux', name: 'Debian', version: '12', kernel: '6.1', arch: 'x64' },
      agentVersion: '1.0.0',
    })
    const response = await fetch(`${agentUrl}/agent/v1/enroll`, {
      method: 'POST',
      headers: HEADERS,
      body: toBinary(EnrollRequestSchema, request),
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    if (response.status !== 200)
      throw new Error(`enrollment answered ${response.status}: ${new TextDecoder().decode(bytes)}`)
    const { agentId, agentToken } = fromBinary(EnrollResponseSchema, bytes)
    return new SimulatedAgent(agentUrl, agentId, agentToken)
  }

  /** Asks for a new token; this agent goes on with the one it has. */
  async renew(): Promise<string> {
    const response = await fetch(`${this.agentUrl}/agent/v1/credentials/renew`, {
      method: 'POST',
      headers: { ...HEADERS, authorization: `Bearer ${this.token}` },
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    if (response.status !== 200)
      throw new Error(`the renewal answered ${response.status}: ${new TextDecoder().decode(bytes)}`)
    return fromBinary(RenewResponseSchema, bytes).agentToken
  }

  /** Sends one batch; resolves to status and, for 200, the acknowledgement. */
  async send(
    series: readonly SimulatedSeries[],
    intervalSeconds = 30,
    says: { readonly bufferBytes?: bigint; readonly bufferBatches?: number; readonly warnings?: string[] } = {},
  ): Promise<{ status: number; ack: MetricsAck | null; text: string }> {
    const batch = create(MetricsBatchSchema, {
      seq: BigInt(++this.seq),
      sentAtMs: BigInt(Date.now()),
      series: series.map(({ name, labels, points }) => ({
        name,
        labels: labels ?? {},
        points: points.map(([tsMs, value]) => ({ tsMs: BigInt(Math.floor(tsMs)), value })),
      })),
      stats: { intervalSeconds, ...says },
    })
    const response = await fetch(`${this.agentUrl}/agent/v1/metrics`, {
      method: 'POST',
      headers: { ...HEADERS, authorization: `Bearer ${this.token}`, 'content-encoding': 'zstd' },
      body: new Uint8Array(Bun.zstdCompressSync(toBinary(MetricsBatchSchema, batch))),
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    const isAck = response.status === 200
    return {
      status: response.status,
      ack: isAck ? fromBinary(MetricsAckSchema, bytes) : null,
      text: isAck ? '' : new TextDecoder().decode(bytes),
    }
  }
}
