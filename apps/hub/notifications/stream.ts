// The realtime bell as server-sent events: `notification` each, and a comment every 25 s that keeps the line open.
import type { Hub } from '../hub-context.ts'

const HEARTBEAT_MS = 25_000
/** A client that reads so little is given up: it asks for the list when it comes back. */
const UNREAD_MAX = 1_000

/** A stream that ends when the client leaves or the hub stops. */
export function streamNotifications(hub: Hub, userId: string, signal: AbortSignal): Response {
  const encoder = new TextEncoder()
  let end = () => {}
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const send = (text: string) => {
        if ((controller.desiredSize ?? 0) < -UNREAD_MAX) end()
        else controller.enqueue(encoder.encode(text))
      }
      const stopListening = hub.bell.listen(userId, message =>
        send(`event: notification\ndata: ${JSON.stringify(message)}\n\n`),
      )
      const timer = setInterval(() => send(': heartbeat\n\n'), HEARTBEAT_MS)
      let isEnded = false
      end = () => {
        if (isEnded) return
        isEnded = true
        clearInterval(timer)
        stopListening()
        forgetClose()
        try {
          controller.close()
        } catch {
          // The client closed it first.
        }
      }
      const forgetClose = hub.bell.onClose(() => end())
      signal.addEventListener('abort', () => end())
      send(': connected\n\n')
    },
    cancel: () => end(),
  })
  return new Response(stream, { headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' } })
}
