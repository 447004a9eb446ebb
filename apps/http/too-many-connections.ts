// What a client sees when a listener has as many connections as it takes: 503 over TCP; over TLS, and where very many
// come, the connection is closed at once.
import type { Socket } from 'bun'
import type { Connection } from './http-connection.ts'
import { plainHead } from './http-response.ts'

/** The bound of a listener that is given none. */
export const CONNECTIONS_MAX = 50_000
/** Connections beyond the bound that are told so; further ones are closed without a word. */
const TURNED_AWAY_MAX = 1000
/** How long a client that was turned away has to read why. */
const TURNED_AWAY_SECONDS = 5

/** A connection beyond the bound: what it sends is read by nobody. */
const turnedAway: Connection = {
  isIdle: true,
  isAwaited: false,
  receive: () => {},
  drain: () => {},
  end: () => {},
  closed: () => {},
  finish: () => {},
}
const TURNED_AWAY = `${plainHead(503, { 'retry-after': '10', 'content-length': '0', connection: 'close' })}\r\n`

/** The connections of a listener that were turned away and are not closed yet. */
export class BeyondBound {
  private count = 0

  turnAway(socket: Socket<Connection>, isTls: boolean): void {
    socket.data = turnedAway
    this.count++
    if (isTls || this.count > TURNED_AWAY_MAX) return void socket.terminate()
    socket.timeout(TURNED_AWAY_SECONDS)
    socket.end(TURNED_AWAY)
  }

  has(socket: Socket<Connection>): boolean {
    return socket.data === turnedAway
  }

  /** Any connection of the listener was closed. */
  closed(socket: Socket<Connection>): void {
    if (this.has(socket)) this.count--
  }
}
