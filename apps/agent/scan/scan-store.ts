// What the scanner keeps in the state directory: who this host is at the matcher, how it stands with it, the report
// that could not be sent, and what the collector said of it. Several processes may use it, one at a time (`scan.lock`),
// so that each round begins by reading.
import type { ScanHistory } from '../../../core/agent/scan-schedule.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { ScanSettings } from '../../../core/matching/scan-protocol.ts'
import { SCAN_HOST_FILE } from '../config.ts'
import type { StateDir } from '../state/state-dir.ts'
import { isScanKey } from './scan-keys.ts'

export type ScanHost = {
  /** Empty until a matcher has answered the enrollment. */
  readonly hostId: string
  readonly privateKey: string
  /** A key that the matcher may or may not have taken already. */
  readonly nextPrivateKey: string | null
  readonly keyMadeAtMs: number
  /** SHA-256 of the code that it was enrolled with: another one is a wish to enroll anew. */
  readonly codeHash: string
  /** Enrolled by a code of the collector, and so of the company that the agent belongs to. */
  readonly isRemote: boolean
  /** Why the matcher takes nothing more of this host until it is enrolled again. */
  readonly refused: '' | 'host_revoked' | 'machine_changed'
  /** The machine-id that was refused. */
  readonly refusedMachineIdHash: string
}

export type ScanReason = 'not_enrolled' | 'host_revoked' | 'machine_changed' | 'inactive' | 'unreachable'

export type ScanState = ScanHistory & {
  readonly reason: ScanReason | null
  readonly lastError: string | null
  readonly matchStatus: string | null
  readonly openFindings: number | null
  /** The hash of the report that the matcher holds; empty when it holds none. */
  readonly heldHash: string
  /** The hash of a report that the matcher refused for what it is. */
  readonly refusedHash: string
  /** SHA-256 of a code that the matcher does not take. */
  readonly refusedCodeHash: string
  readonly failures: number
  readonly retryAtMs: number | null
  /** How far the matcher's clock is ahead of this host's. */
  readonly offsetMs: number
  readonly lastSignedAtMs: number
  /** Of the package databases and the start of the host, when it was scanned last. */
  readonly databaseStamp: string
  readonly bootId: string
}

export type UnsentReport = {
  readonly contentHash: string
  readonly machineIdHash: string
  /** As it is sent: JSON in zstd. */
  readonly body: Uint8Array
  /** The time that a call of it without an answer was signed with; null before. */
  readonly signedAtMs: number | null
}

/** What the collector said; a member that it left out is empty. */
type RemoteScan = { readonly matcherUrl: string; readonly enrolCode: string }

export const NO_SCAN_STATE: ScanState = {
  lastReportAtMs: null,
  earlyAtMs: null,
  nextAtMs: null,
  settings: null,
  reason: null,
  lastError: null,
  matchStatus: null,
  openFindings: null,
  heldHash: '',
  refusedHash: '',
  refusedCodeHash: '',
  failures: 0,
  retryAtMs: null,
  offsetMs: 0,
  lastSignedAtMs: 0,
  databaseStamp: '',
  bootId: '',
}

export const SCAN_STATE_FILE = 'scan-state'
const UNSENT_FILE = 'scan-unsent'
const REMOTE_FILE = 'scan-remote'
const REASONS: readonly unknown[] = ['not_enrolled', 'host_revoked', 'machine_changed', 'inactive', 'unreachable']

export class ScanStore {
  readonly #dir: StateDir
  /** What could not be written counts while the process lives. */
  #unsavedState: ScanState | null = null

  constructor(dir: StateDir) {
    this.#dir = dir
  }

  host(): ScanHost | null {
    const fields = this.#read(SCAN_HOST_FILE)
    if (fields === null) return null
    const privateKey = textOf(fields.private_key)
    const nextKey = textOf(fields.next_private_key)
    if (!isScanKey(privateKey)) return null
    const refused = fields.refused === 'host_revoked' || fields.refused === 'machine_changed' ? fields.refused : ''
    return {
      hostId: textOf(fields.host_id),
      privateKey,
      nextPrivateKey: isScanKey(nextKey) ? nextKey : null,
      keyMadeAtMs: numberOf(fields.key_made_at_ms) ?? 0,
      codeHash: textOf(fields.code_hash),
      isRemote: fields.is_remote === true,
      refused,
      refusedMachineIdHash: textOf(fields.refused_machine_id_hash),
    }
  }

  /** Keeps the host durably: a key is on the disk before it is used. Throws when the disk refuses. */
  writeHost(host: ScanHost): void {
    this.#write(SCAN_HOST_FILE, {
      host_id: host.hostId,
      private_key: host.privateKey,
      next_private_key: host.nextPrivateKey,
      key_made_at_ms: host.keyMadeAtMs,
      code_hash: host.codeHash,
      is_remote: host.isRemote,
      refused: host.refused,
      refused_machine_id_hash: host.refusedMachineIdHash,
    })
  }

  state(): ScanState {
    return this.#unsavedState ?? scanStateOf(this.#read(SCAN_STATE_FILE))
  }

  /** Changes what is known of the standing with the matcher, on the disk where it takes it. */
  update(change: Partial<ScanState>): ScanState {
    const state = { ...this.state(), ...change }
    try {
      this.#write(SCAN_STATE_FILE, documentOf(state))
      this.#unsavedState = null
    } catch {
      this.#unsavedState = state
    }
    return state
  }

  unsent(): UnsentReport | null {
    const fields = this.#read(UNSENT_FILE)
    const body = Buffer.from(textOf(fields?.body), 'base64')
    if (fields === null || body.length === 0) return null
    return {
      contentHash: textOf(fields.content_hash),
      machineIdHash: textOf(fields.machine_id_hash),
      body,
      signedAtMs: numberOf(fields.signed_at_ms),
    }
  }

  /** Keeps the one report that is to be sent; null when there is none any more. */
  keepUnsent(report: UnsentReport | null): void {
    if (report === null) {
      this.#dir.remove(UNSENT_FILE)
      return
    }
    this.#write(UNSENT_FILE, {
      content_hash: report.contentHash,
      machine_id_hash: report.machineIdHash,
      body: Buffer.from(report.body).toString('base64'),
      signed_at_ms: report.signedAtMs,
    })
  }

  remote(): RemoteScan | null {
    const fields = this.#read(REMOTE_FILE)
    return fields === null ? null : { matcherUrl: textOf(fields.matcher_url), enrolCode: textOf(fields.enrol_code) }
  }

  keepRemote({ matcherUrl, enrolCode }: RemoteScan): void {
    this.#write(REMOTE_FILE, { matcher_url: matcherUrl, enrol_code: enrolCode })
  }

  /**
   * The agent was enrolled anew, with another company perhaps: what came by the collector of before, and a host that
   * was enrolled by it, are forgotten.
   */
  forgetRemote(): void {
    this.#dir.remove(REMOTE_FILE)
    if (this.host()?.isRemote) this.forgetHost()
  }

  /** Forgets who this host is, and its unsent report (MAT-048). */
  forgetHost(): void {
    this.#dir.remove(SCAN_HOST_FILE)
    this.keepUnsent(null)
    this.update({ ...NO_SCAN_STATE, offsetMs: this.state().offsetMs })
  }

  #read(name: string): Unchecked | null {
    try {
      const parsed: unknown = JSON.parse(this.#dir.read(name) ?? 'null')
      return isObject(parsed) ? parsed : null
    } catch {
      return null
    }
  }

  #write(name: string, document: Readonly<Record<string, unknown>>): void {
    this.#dir.write(name, `${JSON.stringify(document, null, 2)}\n`, true)
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null

/** What a matcher answered of how to go on; null for anything else. */
export function scanSettingsOf(value: unknown): ScanSettings | null {
  if (!isObject(value)) return null
  const interval_seconds = numberOf(value.interval_seconds)
  const next_after_seconds = numberOf(value.next_after_seconds)
  if (interval_seconds === null || interval_seconds < 1 || next_after_seconds === null) return null
  const { reason } = value
  return {
    enabled: value.enabled !== false,
    reason: reason === 'disabled' || reason === 'inactive' || reason === 'plan' ? reason : '',
    interval_seconds,
    next_after_seconds,
    version: numberOf(value.version) ?? 0,
  }
}

const isReason = (value: unknown): value is ScanReason => REASONS.includes(value)

/** The state in a document of `scan-state`; that of a host that never scanned for anything else. */
export function scanStateOf(fields: Unchecked | null): ScanState {
  if (fields === null) return NO_SCAN_STATE
  const offsetMs = fields.offset_ms
  return {
    lastReportAtMs: numberOf(fields.last_report_at_ms),
    earlyAtMs: numberOf(fields.early_at_ms),
    nextAtMs: numberOf(fields.next_at_ms),
    settings: scanSettingsOf(fields.settings),
    reason: isReason(fields.reason) ? fields.reason : null,
    lastError: textOf(fields.last_error) || null,
    matchStatus: textOf(fields.match_status) || null,
    openFindings: numberOf(fields.open_findings),
    heldHash: textOf(fields.held_hash),
    refusedHash: textOf(fields.refused_hash),
    refusedCodeHash: textOf(fields.refused_code_hash),
    failures: numberOf(fields.failures) ?? 0,
    retryAtMs: numberOf(fields.retry_at_ms),
    offsetMs: typeof offsetMs === 'number' && Number.isFinite(offsetMs) ? offsetMs : 0,
    lastSignedAtMs: numberOf(fields.last_signed_at_ms) ?? 0,
    databaseStamp: textOf(fields.database_stamp),
    bootId: textOf(fields.boot_id),
  }
}

const documentOf = (state: ScanState) => ({
  last_report_at_ms: state.lastReportAtMs,
  early_at_ms: state.earlyAtMs,
  next_at_ms: state.nextAtMs,
  settings: state.settings,
  reason: state.reason,
  last_error: state.lastError,
  match_status: state.matchStatus,
  open_findings: state.openFindings,
  held_hash: state.heldHash,
  refused_hash: state.refusedHash,
  refused_code_hash: state.refusedCodeHash,
  failures: state.failures,
  retry_at_ms: state.retryAtMs,
  offset_ms: state.offsetMs,
  last_signed_at_ms: state.lastSignedAtMs,
  database_stamp: state.databaseStamp,
  boot_id: state.bootId,
})
