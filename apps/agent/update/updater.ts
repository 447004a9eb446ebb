// Looks whether there is a newer agent, verifies what the collector offers, and stages it beside the executable
// (document 3 "Proposed update-manifest extension", decision G-60). An agent that cannot replace itself says what it
// would do.
import { fromBinary } from '@bufbuild/protobuf'
import { actionFor } from '../../../core/agent/response-action.ts'
import { isVersionFailed } from '../../../core/agent/update-trial.ts'
import { type Manifest, signedManifestText, updateVerdict } from '../../../core/agent/update-verdict.ts'
import { type UpdateManifest, UpdateManifestSchema } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { AgentParts } from '../agent-parts.ts'
import { agentVersion } from '../config.ts'
import type { CollectorClient } from '../transport/collector-client.ts'
import type { TaskResult } from '../transport/uplink.ts'
import { manifestOf } from '../transport/wire.ts'
import type { Installation } from './installation.ts'
import { isSigned } from './signature.ts'
import { stageUpdate } from './update-download.ts'
import { readUpdateRecord } from './update-records.ts'

type UpdaterParts = AgentParts & {
  readonly client: CollectorClient
  readonly token: () => string
  /** A version is staged and may be put in place. */
  readonly onStaged: (version: string) => void
}

export class Updater {
  readonly #parts: UpdaterParts
  readonly #stop = new AbortController()
  #isStaging = false

  constructor(parts: UpdaterParts) {
    this.#parts = parts
  }

  /** Ends a download under way. */
  stop(): void {
    this.#stop.abort()
  }

  /** Checks once for an update. The request has os, arch, version and channel, and nothing more. */
  async check(): Promise<TaskResult> {
    const { client, platform, options, token } = this.#parts
    const nextInMs = options.update.checkPeriodMs
    if (this.#isStaging || this.#parts.isOnTrial()) return { action: 'success', reply: null, nextInMs }
    const query = new URLSearchParams({
      os: platform,
      arch: process.arch,
      version: agentVersion,
      channel: options.update.channel,
    })
    const reply = await client.call({ method: 'GET', path: `/update?${query}`, token: token() })
    const action = actionFor('update', reply)
    if (action !== 'success' || reply.kind !== 'answer') return { action, reply, nextInMs }
    this.#report(reply.status === 204 ? null : this.#consider(reply.body))
    return { action, reply, nextInMs }
  }

  #report(finding: string | null): void {
    const { status, log } = this.#parts
    if (finding !== null && finding !== status.facts.update) log.info({ finding }, 'update check')
    status.update({ update: finding })
  }

  /** What is made of an offer, in words. */
  #consider(body: Uint8Array): string {
    let message: UpdateManifest
    try {
      message = fromBinary(UpdateManifestSchema, body)
    } catch {
      return 'an update is offered in a form that cannot be understood'
    }
    const { options, platform, clock, dir, client, installation } = this.#parts
    const { update } = options
    const version = message.version.slice(0, 64)
    if (update.publicKeyPem === null)
      return `version ${version} is offered; without update.public_key_file it is not trusted`
    const manifest = manifestOf(message)
    const verdict = updateVerdict(manifest, {
      runningVersion: agentVersion,
      os: platform,
      arch: process.arch,
      channel: update.channel,
      hosts: update.hosts.length > 0 ? update.hosts : [new URL(client.collectorUrl).host],
      isSignatureValid: isSigned(signedManifestText(manifest), message.signatureEd25519, update.publicKeyPem),
      isFailed: isVersionFailed(readUpdateRecord(dir), manifest.version, clock.now()),
    })
    if (!verdict.take) return `version ${version} is refused: ${verdict.reason}`
    if (installation === null || !update.isInstalled) return `version ${version} is offered and would be installed`
    void this.#stage(manifest, installation)
    return `version ${version} is being downloaded`
  }

  /** Beside the other work: a slow download must not hold up what is sent. */
  async #stage(manifest: Manifest, installation: Installation): Promise<void> {
    const { options, log, onStaged } = this.#parts
    const { version, url, sha256, sizeBytes } = manifest
    const { caPem } = options
    this.#isStaging = true
    const order = { version, url, sha256, sizeBytes, caPem, userAgent: `svc-agent/${agentVersion}` }
    const fault = await stageUpdate(order, installation, this.#stop.signal)
    this.#isStaging = false
    if (this.#stop.signal.aborted) return
    if (fault !== null) log.error({ version, fault }, 'an update cannot be installed')
    this.#report(
      fault === null ? `version ${version} is being installed` : `version ${version} cannot be installed: ${fault}`,
    )
    if (fault === null) onStaged(version)
  }
}
