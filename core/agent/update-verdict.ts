// Whether an agent takes an update (document 3 "Proposed update-manifest extension", decision G-60): the signed text,
// and every reason to refuse.
import { compareVersions } from './version.ts'

export type Manifest = {
  readonly version: string
  readonly os: string
  readonly arch: string
  readonly channel: string
  readonly sha256: string
  readonly sizeBytes: number
  readonly minVersion: string
  readonly releasedAtMs: number
  readonly revokedVersions: readonly string[]
  readonly url: string
}

/** The first line of what is signed: a signature made for anything else cannot pass for one of an update. */
const UPDATE_SIGNATURE_PREFIX = 'svc-agent-update-manifest-v1'

/** Larger manifests and downloads are refused. */
export const UPDATE_BYTES_MAX = 40 * 1024 * 1024

/** The text under the Ed25519 signature: UTF-8 lines joined by newline. rollout_percent is not part of it. */
export function signedManifestText(manifest: Manifest): string {
  const revoked = [...manifest.revokedVersions].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)).join(',')
  return [
    UPDATE_SIGNATURE_PREFIX,
    manifest.version,
    manifest.os,
    manifest.arch,
    manifest.channel,
    manifest.sha256,
    String(manifest.sizeBytes),
    manifest.minVersion,
    String(manifest.releasedAtMs),
    revoked,
    manifest.url,
  ].join('\n')
}

type UpdateSituation = {
  readonly runningVersion: string
  readonly os: string
  readonly arch: string
  readonly channel: string
  /** Hosts from which a download is allowed. */
  readonly hosts: readonly string[]
  readonly isSignatureValid: boolean
  /** The version was rolled back within the last 24 hours. */
  readonly isFailed: boolean
}

type UpdateVerdict = { readonly take: true } | { readonly take: false; readonly reason: string }

/** Host of an https address (with its port when it has one); null for any other scheme and for credentials inside. */
function httpsHost(url: string): string | null {
  const found = /^https:\/\/([^\s/@?#]+)(?:[/?#]\S*)?$/i.exec(url)
  return found ? found[1]!.toLowerCase() : null
}

/** Whether this agent would install what the manifest describes, or the first reason why not. */
export function updateVerdict(manifest: Manifest, situation: UpdateSituation): UpdateVerdict {
  const refuse = (reason: string): UpdateVerdict => ({ take: false, reason })
  const { runningVersion } = situation
  if (!situation.isSignatureValid) return refuse('the signature does not verify')
  const order = compareVersions(manifest.version, runningVersion)
  if (order === null) return refuse('the version is not a semantic version')
  if (order <= 0) return refuse(`version ${manifest.version} is not newer than the running ${runningVersion}`)
  if (manifest.revokedVersions.includes(manifest.version)) return refuse(`version ${manifest.version} is revoked`)
  if (situation.isFailed) return refuse(`version ${manifest.version} failed here within the last 24 hours`)
  if (manifest.os !== situation.os || manifest.arch !== situation.arch || manifest.channel !== situation.channel)
    return refuse(`it is for ${manifest.os} ${manifest.arch} ${manifest.channel}`)
  if (manifest.minVersion !== '') {
    const fromMin = compareVersions(runningVersion, manifest.minVersion)
    if (fromMin === null || fromMin < 0)
      return refuse(`it needs at least version ${manifest.minVersion} to update from`)
  }
  if (!/^[0-9a-f]{64}$/.test(manifest.sha256)) return refuse('sha256 is not 64 lowercase hex characters')
  if (manifest.sizeBytes <= 0 || manifest.sizeBytes > UPDATE_BYTES_MAX)
    return refuse(`a download of ${manifest.sizeBytes} bytes is over ${UPDATE_BYTES_MAX}`)
  const host = httpsHost(manifest.url)
  if (host === null) return refuse('the url is not https')
  if (!situation.hosts.includes(host)) return refuse(`host ${host} is not one that the collector declares`)
  return { take: true }
}
