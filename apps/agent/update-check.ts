// Looks whether there is a newer agent, verifies what the collector offers and says what it would do. It does not replace
// itself (decision G-60).
import { createPublicKey, verify } from 'node:crypto'
import { fromBinary } from '@bufbuild/protobuf'
import type { Logger } from 'pino'
import { actionFor } from '../../core/agent/answer.ts'
import { signedManifestText, updateVerdict } from '../../core/agent/update-manifest.ts'
import { limits } from '../../core/limits.ts'
import { type UpdateManifest, UpdateManifestSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { CollectorClient } from './collector-client.ts'
import { type AgentOptions, agentVersion } from './config.ts'
import type { StatusReport } from './status.ts'
import type { TaskResult } from './uplink.ts'
import { manifestOf } from './wire.ts'

/** Whether the manifest carries a signature by the key; false for any key or signature that cannot be used. */
export function isManifestSigned(manifest: UpdateManifest, publicKeyPem: string): boolean {
  try {
    const text = signedManifestText(manifestOf(manifest))
    return verify(null, Buffer.from(text), createPublicKey(publicKeyPem), manifest.signatureEd25519)
  } catch {
    return false
  }
}

export type UpdateCheckParts = {
  readonly client: CollectorClient
  readonly status: StatusReport
  readonly log: Logger
  readonly update: AgentOptions['update']
  readonly collectorUrl: string
  readonly platform: string
  readonly token: () => string
}

/** One look. The request says os, arch, version and channel, nothing more. */
export async function checkForUpdate(parts: UpdateCheckParts): Promise<TaskResult> {
  const { client, platform, update, token } = parts
  const query = new URLSearchParams({
    os: platform,
    arch: process.arch,
    version: agentVersion,
    channel: update.channel,
  })
  const reply = await client.call({ method: 'GET', path: `/update?${query}`, token: token() })
  const action = actionFor('update', reply)
  const nextInMs = limits.inventoryPeriodMs
  if (action !== 'success' || reply.kind !== 'answer') return { action, reply, nextInMs }
  report(parts, reply.status === 204 ? null : describe(parts, reply.body))
  return { action, reply, nextInMs }
}

function report({ status, log }: UpdateCheckParts, finding: string | null): void {
  if (finding !== null && finding !== status.facts.update) log.info({ finding }, 'update check')
  status.update({ update: finding })
}

function describe({ update, collectorUrl, platform }: UpdateCheckParts, body: Uint8Array): string {
  let manifest: UpdateManifest
  try {
    manifest = fromBinary(UpdateManifestSchema, body)
  } catch {
    return 'an update is offered in a form that cannot be understood'
  }
  const version = manifest.version.slice(0, 64)
  if (update.publicKeyPem === null)
    return `version ${version} is offered; without update.public_key_file it is not trusted`
  const verdict = updateVerdict(manifestOf(manifest), {
    runningVersion: agentVersion,
    os: platform,
    arch: process.arch,
    channel: update.channel,
    hosts: update.hosts.length > 0 ? update.hosts : [new URL(collectorUrl).host],
    isSignatureValid: isManifestSigned(manifest, update.publicKeyPem),
  })
  return verdict.take
    ? `version ${version} is offered and would be installed`
    : `version ${version} is refused: ${verdict.reason}`
}
