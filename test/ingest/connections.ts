// Batches over connections of their own, so that a test meets every listener thread: the system spreads new connections
// over them.
import { connect } from 'node:net'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { MetricsBatchSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'

export type FreshResponse = { readonly status: number; readonly body: Uint8Array<ArrayBuffer>; readonly head: string }

/** Sends a batch over a new connection, which is closed after the answer. Rejects when there is none. */
export function sendFresh(
  url: string,
  token: string,
  batch: MessageInitShape<typeof MetricsBatchSchema>,
): Promise<FreshResponse> {
  const body = toBinary(MetricsBatchSchema, create(MetricsBatchSchema, batch))
  const { hostname, port } = new URL(url)
  const head = [
    'POST /agent/v1/metrics HTTP/1.1',
    'host: ingest',
    `authorization: Bearer ${token}`,
    'x-svc-proto: 1',
    'x-svc-agent-version: 1.2.3',
    'content-type: application/x-protobuf',
    `content-length: ${body.length}`,
    'connection: close',
  ].join('\r\n')
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    const socket = connect(Number(port), hostname, () => {
      socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]))
    })
    const settle = () => {
      const bytes = Buffer.concat(parts)
      const headEnd = bytes.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const text = bytes.subarray(0, headEnd).toString('latin1')
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (bytes.length < headEnd + 4 + length) return
      resolve({
        status: Number(text.slice(9, 12)),
        body: new Uint8Array(bytes.subarray(headEnd + 4, headEnd + 4 + length)),
        head: text,
      })
      socket.destroy()
    }
    socket.on('data', part => {
      parts.push(Buffer.from(part))
      settle()
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the connection ended without an answer')))
  })
}
