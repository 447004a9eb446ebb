// GET /agent/v1/update (document 3; decision G-60): the manifest to the agents that it is for; 204 to all others, and
// to everyone while the emergency stop is on.

import { create } from '@bufbuild/protobuf'
import { UpdateManifestSchema } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { ApiError, badRequest } from '../../../http/api-error.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import type { IngestContext } from '../context.ts'
import { protocolOf } from '../listener/agent-protocol.ts'
import { messageResponse } from '../listener/responses.ts'

export async function serveUpdate(context: IngestContext, request: IncomingRequest): Promise<Response | ApiError> {
  const { headers } = request
  const protocol = protocolOf(headers)
  if (protocol instanceof ApiError) return protocol
  const session = await context.authenticator.authenticate(headers.get('authorization'), context.nowMs())
  if (session instanceof ApiError) return session
  const query = new URL(request.url).searchParams
  const [os, arch, version, channel] = ['os', 'arch', 'version', 'channel'].map(name => query.get(name) ?? '')
  if (!os || !arch || !version || !channel)
    return badRequest('query parameters os, arch, version and channel are needed')
  const manifest = context.updates.offerFor({ agentId: session.record.agentId, os, arch, version, channel })
  if (!manifest) return new Response(null, { status: 204 })
  const isJson = context.config['debug.accept_json'] && (headers.get('accept') ?? '').includes('application/json')
  return messageResponse(
    UpdateManifestSchema,
    create(UpdateManifestSchema, {
      version: manifest.version,
      url: manifest.url,
      sha256: manifest.sha256,
      signatureEd25519: manifest.signature,
      minVersion: manifest.minVersion,
      rolloutPercent: manifest.rolloutPercent,
      releasedAtMs: BigInt(manifest.releasedAtMs),
      os: manifest.os,
      arch: manifest.arch,
      channel: manifest.channel,
      sizeBytes: BigInt(manifest.sizeBytes),
      keyId: manifest.keyId,
      revokedVersions: [...manifest.revokedVersions],
    }),
    isJson,
  )
}
