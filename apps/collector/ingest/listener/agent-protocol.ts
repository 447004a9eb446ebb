// Which protocol versions of agents and which forms of a body are spoken here (document 3 "Versioning", "Errors";
// decision G-50): what a call must say of itself, and what it is answered otherwise.
import { limits } from '../../../../core/limits.ts'
import { ApiError, badRequest } from '../../../http/api-error.ts'

const INTEGER = /^[+-]?\d{1,15}$/

/** The protocol version and the software version of an agent. */
export type AgentProtocol = { readonly version: number; readonly agentVersion: string }

/** Reads both headers, which every call but ping must have. An unsupported protocol version is 426 (decision G-50). */
export function protocolOf(headers: { get(name: string): string | null }): AgentProtocol | ApiError {
  const proto = headers.get('x-svc-proto')
  const agentVersion = headers.get('x-svc-agent-version')
  if (proto === '1' && agentVersion) return { version: 1, agentVersion }
  if (proto === null || !INTEGER.test(proto.trim()))
    return badRequest('header X-SVC-Proto is missing or no whole number')
  if (!agentVersion) return badRequest('header X-SVC-Agent-Version is missing')
  const version = Number(proto)
  if (version >= limits.protoMin && version <= limits.protoMax) return { version, agentVersion }
  const spoken =
    limits.protoMin === limits.protoMax
      ? `version ${limits.protoMax}`
      : `versions ${limits.protoMin} to ${limits.protoMax}`
  return new ApiError(426, 'upgrade_required', `protocol version ${version} is not spoken here, only ${spoken}`)
}

/** The form of a body by its Content-Type. None counts as protobuf. */
export function bodyForm(contentType: string | null, acceptsJson: boolean): 'protobuf' | 'json' | ApiError {
  if (contentType === 'application/x-protobuf' || contentType === null) return 'protobuf'
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase()
  if (type === 'application/x-protobuf' || type === '') return 'protobuf'
  if (type === 'application/json' && acceptsJson) return 'json'
  return badRequest('the Content-Type must be application/x-protobuf')
}
