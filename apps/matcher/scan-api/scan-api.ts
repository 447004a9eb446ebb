// The listener of the scan API, /scan/v1 (MAT section 2): its routes, and what is noted of a request.
import { SCAN_PROTO } from '../../../core/matching/scan-protocol.ts'
import { type EndpointListener, type Endpoints, startEndpointListener } from '../../http/endpoint-listener.ts'
import { enroll } from './enroll.ts'
import { ReportReceiver } from './receive-report.ts'
import { rotate } from './rotate.ts'
import type { ScanContext } from './scan-context.ts'

const ping = (nowMs: number): Response =>
  Response.json({ server_time_ms: Math.floor(nowMs), proto_min: SCAN_PROTO, proto_max: SCAN_PROTO })

function endpointsOf(context: ScanContext): Endpoints {
  const receiver = new ReportReceiver(context)
  return {
    '/scan/v1/ping': { name: 'ping', method: 'GET', handle: () => ping(context.nowMs()) },
    '/scan/v1/enroll': {
      name: 'enroll',
      method: 'POST',
      handle: (request, peer) => enroll(context, request, peer()),
    },
    '/scan/v1/report': { name: 'report', method: 'POST', handle: request => receiver.receive(request) },
    '/scan/v1/rotate': { name: 'rotate', method: 'POST', handle: request => rotate(context, request) },
  }
}

/** Serves the scan API on `listen`. Throws when the address or the certificate cannot be used. */
export function startScanApi(context: ScanContext): EndpointListener {
  const { config, log, metrics } = context
  return startEndpointListener({
    config,
    log,
    endpoints: endpointsOf(context),
    isPortShared: false,
    challenge: 'SVC-Scan',
    onResponse: (name, _request, status) => metrics.requests.inc({ endpoint: name, code: String(status) }),
  })
}
