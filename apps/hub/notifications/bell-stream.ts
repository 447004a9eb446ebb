// The realtime bell as server-sent events: one `notification` each, and a comment as heartbeat that keeps the
// connection open. Before each heartbeat the hub checks whether the caller may still listen: a stream outlives no
// token, session, user or permission.
import type { RouteContext } from '../platform/http/route.ts'

/** A client that reads too slowly is disconnected: it fetches the list when it reconnects. */
const UNREAD_MAX = 1_000

/**
 * A stream that ends when the client leaves, the hub stops or the caller is no longer admitted. Throws 429 for one
 * stream too many.
 */
export function streamNotifications(context: RouteContext): Response {
  const { hub, caller, companyId, signal, isStillAdmitted } = context
  const leave = hub.streams.open(caller.credentialId, companyId)
  const encoder = new TextEncoder()
  let end = () => leave()
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const send = (text: string) => {
        if ((controller.desiredSize ?? 0) < -UNREAD_MAX) end()
        else controller.enqueue(encoder.encode(text))
      }
      const stopListening = hub.bell.listen(caller.user.id, message =>
        send(`event: notification\ndata: ${JSON.stringify(message)}\n\n`),
      )
      let isLooking = false
      const beat = async () => {
        if (isLooking) return
        isLooking = true
        const isAdmitted = await isStillAdmitted()
        isLooking = false
        if (isEnded) return
        if (isAdmitted) send(': heartbeat\n\n')
        else end()
      }
      const timer = setInterval(() => void beat(), hub.config['streams.heartbeat'])
      let isEnded = false
      end = () => {
        if (isEnded) return
        isEnded = true
        leave()
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
      signal().addEventListener('abort', () => end())
      send(': connected\n\n')
    },
    cancel: () => end(),
  })
  return new Response(stream, { headers: { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' } })
}
