// The listener of the agent API (document 3 "Agent to collector"): who handles what, and what is noted of a request.
import { create } from '@bufbuild/protobuf'
import type { Logger } from 'pino'
import { limits } from '../../../../core/limits.ts'
import { PingResponseSchema } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { type EndpointListener, type Endpoints, startEndpointListener } from '../../../http/endpoint-listener.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { IngestConfig } from '../../config.ts'
import type { BatchMetrics } from '../../telemetry.ts'
import { enroll } from '../agents/forward-enrollment.ts'
import { renewCredentials } from '../agents/forward-renewal.ts'
import { receiveInventory } from '../agents/receive-inventory.ts'
import { serveConfig } from '../agents/serve-config.ts'
import { serveUpdate } from '../agents/serve-update.ts'
import type { IngestContext } from '../context.ts'
import type { MetricsReceiver } from '../metrics/receive-metrics.ts'
import { type ControlHandlers, controlEndpoints, localEndpoints } from './agent-endpoints.ts'
import { messageResponse } from './responses.ts'

type ListenerParts = {
  readonly config: IngestConfig
  readonly log: Logger
  readonly metrics: Pick<BatchMetrics, 'hot'>
  readonly endpoints: Endpoints
  /** Overrides the port of `config.listen`: the one that the first of several threads got. */
  readonly port?: number
  /** Other threads listen on the same port. */
  readonly isPortShared: boolean
}

export function ping(request: IncomingRequest, nowMs: number): Response {
  const serverTimeMs = Math.floor(nowMs)
  const { protoMin, protoMax } = limits
  if ((request.headers.get('accept') ?? '').includes('application/x-protobuf'))
    return messageResponse(
      PingResponseSchema,
      create(PingResponseSchema, { serverTimeMs: BigInt(serverTimeMs), protoMin, protoMax }),
      false,
    )
  return Response.json({ server_time_ms: serverTimeMs, proto_min: protoMin, proto_max: protoMax })
}

/** Every endpoint, batches included. */
export const allEndpoints = (context: IngestContext, receiver: MetricsReceiver): Endpoints => ({
  ...localEndpoints({
    ping: request => ping(request, context.nowMs()),
    metrics: request => receiver.receive(request),
  }),
  ...servedControlEndpoints(context),
})

/** The control endpoints, as the main thread serves them. */
export function servedControlEndpoints(context: IngestContext): Endpoints {
  const handlers: ControlHandlers = {
    enroll: (request, peer) => enroll(context, request, peer()),
    config: request => serveConfig(context, request),
    inventory: request => receiveInventory(context, request),
    renew: request => renewCredentials(context, request),
    update: request => serveUpdate(context, request),
  }
  return controlEndpoints(name => handlers[name])
}

/** Counts a response and logs it when the request had an X-Request-Id, failed, or was not a batch. */
function note(parts: ListenerParts, endpoint: string, request: IncomingRequest, status: number): void {
  const key = `${endpoint} ${status}`
  const { requests } = parts.metrics.hot
  requests.set(key, (requests.get(key) ?? 0) + 1)
  const requestId = request.headers.get('x-request-id')
  if (requestId === null && endpoint === 'metrics') return
  const line = { endpoint, status, ...(requestId === null ? {} : { request_id: requestId.slice(0, 64) }) }
  if (requestId !== null) parts.log.info(line, 'agent request')
  else parts.log.debug(line, 'agent request')
}

/** Serves the agent API on `config.listen`. */
export const startListener = (parts: ListenerParts): EndpointListener =>
  startEndpointListener({ ...parts, onResponse: (name, request, status) => note(parts, name, request, status) })
