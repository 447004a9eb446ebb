// Identities of findings and events (MAT-140, MAT-162): the only file of matching that hashes.
import { hash } from 'node:crypto'
import type { FindingKind } from './finding-event.ts'

type FindingIdentity = {
  readonly kind: FindingKind
  /** The server's own distribution, without release. */
  readonly distro: string
  readonly package_key: string
  readonly vuln_id: string
}

/** 64 hex characters, which survive attaching, upgrades of package and release, and new databases. */
export function findingKey(companyId: string, hostId: string, finding: FindingIdentity): string {
  const { kind, distro, package_key, vuln_id } = finding
  return sha256(`svc-finding-v1\n${companyId}\n${hostId}\n${kind}\n${distro}\n${package_key}\n${vuln_id}`)
}

export function eventId(hostId: string, seq: number): string {
  return sha256(`svc-event-v1\n${hostId}\n${seq}`)
}

const sha256 = (text: string): string => hash('sha256', text, 'hex')
