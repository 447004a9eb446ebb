// A client that puts onto the wire what a client library would not send: bytes as they are given, segment by segment.
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { until } from './until.ts'

export type RawConnection = { readonly socket: Socket; received(): string; isClosed(): boolean }

/** Opens a connection to the server of a URL, over TLS for https. */
export function openRaw(url: string): RawConnection {
  const { hostname, port, protocol } = new URL(url)
  const options = { port: Number(port), host: hostname, allowHalfOpen: true }
  const socket = protocol === 'https:' ? connectTls({ ...options, rejectUnauthorized: false }) : connect(options)
  let received = ''
  let isClosed = false
  socket.setNoDelay(true)
  socket.on('data', part => {
    received += part.toString('latin1')
  })
  for (const event of ['end', 'close', 'error'])
    socket.on(event, () => {
      isClosed = true
    })
  return { socket, received: () => received, isClosed: () => isClosed }
}

export const statusesOf = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(found => Number(found[1]))

type RawResponse = { readonly statuses: number[]; readonly text: string; readonly isClosed: boolean }

/**
 * Sends segments, each once the one before it is on its way; resolves once there are so many responses, or the
 * connection is closed.
 */
export async function askRaw(url: string, segments: readonly string[], count: number): Promise<RawResponse> {
  const { socket, received, isClosed } = openRaw(url)
  for (const segment of segments)
    await new Promise<void>(resolve => socket.write(Buffer.from(segment, 'latin1'), () => setImmediate(resolve)))
  await until(`${count} responses`, () => isClosed() || statusesOf(received()).length >= count, 10_000)
  socket.destroy()
  return { statuses: statusesOf(received()), text: received(), isClosed: isClosed() }
}
