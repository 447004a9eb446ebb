// The conversation with the matcher (MAT section 2): a code becomes a scan host, and a report is delivered, by its hash
// alone where the matcher holds it. What each answer leaves behind stands in the store; when to try again, and whether,
// is read from there.
import type { Logger } from 'pino'
import { isEarlyReport, nextReportAtMs, scanRetryMs } from '../../../core/agent/scan-schedule.ts'
import { renewalDueAtMs } from '../../../core/agent/token-renewal.ts'
import { isObject } from '../../../core/json-object.ts'
import type { Report } from '../../../core/matching/report-schema.ts'
import { rotationText } from '../../../core/matching/scan-protocol.ts'
import { hostName, ipAddresses } from '../collectors/host.ts'
import type { ScanClient, ScanReply, SignedCall } from './scan-client.ts'
import { activeHost, canEnroll, codeHashOf, enrollmentRefusal } from './scan-enrollment.ts'
import { makeScanKey, publicKeyOf, signText } from './scan-keys.ts'
import {
  NO_SCAN_STATE,
  type ScanHost,
  type ScanReason,
  type ScanStore,
  scanSettingsOf,
  type UnsentReport,
} from './scan-store.ts'

/** Where reports go, and what makes this host a scan host there; `code` is empty without one. */
export type ScanTarget = { readonly matcherUrl: string; readonly code: string; readonly isRemote: boolean }

type ReporterParts = {
  readonly store: ScanStore
  readonly client: ScanClient
  readonly log: Logger
  readonly now: () => number
  readonly random: () => number
  readonly intervalMs: number
  readonly renewPeriodMs: number
}

/** A call whose answer never came is made again as it was for so long: the matcher then answers what it answered. */
const SAME_CALL_MS = 240_000

export class ScanReporter {
  readonly #parts: ReporterParts

  constructor(parts: ReporterParts) {
    this.#parts = parts
  }

  /**
   * Delivers a report, and enrolls before when it must: `os` is null for a report of an earlier scan, by which nobody
   * enrolls. Answers whether the matcher took it; if not, the state says why, and when to try again.
   */
  async deliver(report: UnsentReport, os: Report['os'] | null, target: ScanTarget): Promise<boolean> {
    const { store, now, intervalMs } = this.#parts
    const host = await this.#ensureHost(report, os, target)
    if (host === null) return false
    if (report.contentHash === store.state().refusedHash) {
      store.keepUnsent(null)
      store.update({ nextAtMs: now() + intervalMs, retryAtMs: null, failures: 0 })
      return false
    }
    const isTaken = this.#finish(await this.#report(report, host), report, host)
    if (isTaken) await this.#rotateWhenDue()
    return isTaken
  }

  /** The host that reports; null when there is none to be had now, for the reason in the state. */
  async #ensureHost(report: UnsentReport, os: Report['os'] | null, target: ScanTarget): Promise<ScanHost | null> {
    const { store, now, intervalMs } = this.#parts
    const host = store.host()
    if (activeHost(host) !== null) return host
    if (os !== null && canEnroll(host, target.code, store.state().refusedCodeHash))
      return this.#enroll(report, os, target)
    // The machine-id that it was enrolled with may come back.
    const isBack = host?.refused === 'machine_changed' && host.refusedMachineIdHash !== report.machineIdHash
    if (host !== null && isBack) return { ...host, refused: '' }
    store.keepUnsent(null)
    store.update({
      reason: host?.refused || 'not_enrolled',
      retryAtMs: null,
      failures: 0,
      nextAtMs: now() + intervalMs,
    })
    return null
  }

  async #enroll(report: UnsentReport, os: Report['os'], target: ScanTarget): Promise<ScanHost | null> {
    const { store, now, log, intervalMs } = this.#parts
    const known = store.host()
    // The key of an enrollment whose answer never came: with the same code it gets the same host.
    const privateKey = known !== null && known.hostId === '' ? known.privateKey : makeScanKey()
    const pending: ScanHost = {
      hostId: '',
      privateKey,
      nextPrivateKey: null,
      keyMadeAtMs: now(),
      codeHash: codeHashOf(target.code),
      isRemote: target.isRemote,
      refused: '',
      refusedMachineIdHash: '',
    }
    store.writeHost(pending)
    const document = {
      code: target.code,
      public_key: publicKeyOf(privateKey),
      hostname: hostName().slice(0, 253),
      ip_addresses: ipAddresses().slice(0, 32),
      machine_id_hash: report.machineIdHash,
      os,
    }
    const body = Buffer.from(JSON.stringify(document))
    const reply = await this.#call({ path: '/enroll', hostId: '', privateKey, body })
    const isTaken = reply.kind === 'answer' && reply.status < 300
    const hostId = isTaken ? reply.data.host_id : null
    if (!isTaken || typeof hostId !== 'string' || !/^[\w-]{1,128}$/.test(hostId)) {
      this.#refuseEnrollment(reply, pending.codeHash)
      return null
    }
    const host = { ...pending, hostId }
    store.writeHost(host)
    const { offsetMs, databaseStamp, bootId, lastSignedAtMs } = store.state()
    const settings = scanSettingsOf(reply.data.settings)
    store.keepUnsent(report)
    const nextAtMs = now() + intervalMs
    store.update({ ...NO_SCAN_STATE, offsetMs, databaseStamp, bootId, lastSignedAtMs, settings, nextAtMs })
    log.info({ host_id: hostId }, 'this host is a scan host')
    return host
  }

  #refuseEnrollment(reply: ScanReply, codeHash: string): void {
    const { store, log } = this.#parts
    const refusal = enrollmentRefusal(reply)
    if (refusal !== 'for_good') {
      this.#tryLater(reply, refusal === 'for_now' ? 'not_enrolled' : 'unreachable')
      return
    }
    const lastError = reply.message
    store.update({ reason: 'not_enrolled', lastError, refusedCodeHash: codeHash, retryAtMs: null, failures: 0 })
    log.error({ message: reply.message }, 'the matcher does not take this host: another code is needed')
  }

  /** Asks first whether the report is held, where it may be. */
  async #report(report: UnsentReport, { hostId, privateKey }: ScanHost): Promise<ScanReply> {
    const { store, now } = this.#parts
    const { contentHash, signedAtMs, body } = report
    const { heldHash, offsetMs } = store.state()
    const isSameCall = signedAtMs !== null && Math.abs(now() + offsetMs - signedAtMs) < SAME_CALL_MS
    if (!isSameCall && (heldHash === contentHash || signedAtMs !== null)) {
      const held = await this.#call({ path: '/report', hostId, privateKey, body: new Uint8Array(), contentHash })
      if (held.kind !== 'answer' || held.status !== 409 || held.code !== 'need_report') return held
    }
    const timeMs = isSameCall ? signedAtMs : this.#nextTimeMs()
    store.keepUnsent({ ...report, signedAtMs: timeMs })
    return this.#call({ path: '/report', hostId, privateKey, body, encoding: 'zstd' }, timeMs)
  }

  /** Makes a call, again with a corrected clock, and again with the key that a rotation may have brought into use. */
  async #call(call: Omit<SignedCall, 'timeMs'>, timeMs = this.#nextTimeMs()): Promise<ScanReply> {
    const { client, store, now } = this.#parts
    let reply = await client.call({ ...call, timeMs })
    const serverTimeMs = reply.kind === 'answer' && reply.code === 'clock_skew' ? serverTimeOf(reply.data) : null
    if (serverTimeMs !== null) {
      store.update({ offsetMs: serverTimeMs - now(), lastSignedAtMs: 0 })
      reply = await client.call({ ...call, timeMs: this.#nextTimeMs() })
    }
    const host = activeHost(store.host())
    const isUnknown = reply.kind === 'answer' && reply.status === 401 && reply.code === 'unauthorized'
    if (!isUnknown || !host?.nextPrivateKey || call.privateKey !== host.privateKey) return reply
    const privateKey = host.nextPrivateKey
    const second = await client.call({ ...call, privateKey, timeMs: this.#nextTimeMs() })
    const isTaken = second.kind === 'answer' && second.status !== 401
    if (isTaken) store.writeHost({ ...host, privateKey, nextPrivateKey: null })
    return isTaken ? second : reply
  }

  /** The matcher's time as far as it is known, greater than any that was signed before (MAT-034). */
  #nextTimeMs(): number {
    const { store, now } = this.#parts
    const { offsetMs, lastSignedAtMs } = store.state()
    const nowMs = Math.round(now() + offsetMs)
    // A clock that was set back by more than the matcher allows is corrected by its answer.
    const isBehind = nowMs <= lastSignedAtMs && lastSignedAtMs - nowMs < SAME_CALL_MS
    const timeMs = isBehind ? lastSignedAtMs + 1 : nowMs
    store.update({ lastSignedAtMs: timeMs })
    return timeMs
  }

  /** What an answer to a report leaves behind. Answers whether the report was taken. */
  #finish(reply: ScanReply, report: UnsentReport, host: ScanHost): boolean {
    if (reply.kind === 'no_answer') return this.#tryLater(reply, 'unreachable')
    const { status, code } = reply
    if (status === 200) return this.#accepted(reply, report, host)
    if (status === 403 && code === 'host_revoked') return this.#refuseHost('host_revoked', reply, report, host)
    if (status === 409 && code === 'machine_changed') return this.#refuseHost('machine_changed', reply, report, host)
    if (status === 401) return this.#tryLater(reply, code === 'clock_skew' ? null : 'not_enrolled')
    if (status === 409) {
      // Of a time that the matcher has passed: what is read anew has a later one.
      this.#parts.store.keepUnsent(null)
      return this.#tryLater(reply, null)
    }
    if ([400, 413, 415, 422].includes(status)) return this.#refuseReport(reply, report)
    return this.#tryLater(reply, status === 429 ? null : 'unreachable')
  }

  #accepted({ data }: ScanReply & { kind: 'answer' }, report: UnsentReport, host: ScanHost): boolean {
    const { store, now, intervalMs, log } = this.#parts
    const state = store.state()
    const settings = scanSettingsOf(data.settings) ?? state.settings
    const isTaken = settings === null || settings.enabled
    const nowMs = now()
    const { match_status: matchStatus, open_findings: openFindings } = data
    if (host.refused !== store.host()?.refused) store.writeHost(host)
    store.keepUnsent(null)
    store.update({
      settings,
      nextAtMs: nextReportAtMs(nowMs, host.hostId, intervalMs, settings),
      retryAtMs: null,
      failures: 0,
      reason: isTaken ? null : 'inactive',
      lastError: isTaken ? null : `the matcher takes no reports of this host: ${settings.reason || 'disabled'}`,
      // What was not taken is not held.
      heldHash: isTaken ? report.contentHash : '',
      refusedHash: '',
      ...(isTaken && {
        lastReportAtMs: nowMs,
        earlyAtMs: isEarlyReport(state, nowMs) ? nowMs : state.earlyAtMs,
        matchStatus: typeof matchStatus === 'string' ? matchStatus.slice(0, 64) : null,
        openFindings: typeof openFindings === 'number' ? openFindings : null,
      }),
    })
    log.info(
      { match_status: matchStatus, open_findings: openFindings },
      isTaken ? 'reported' : 'reports are not wanted',
    )
    return isTaken
  }

  #refuseHost(reason: 'host_revoked' | 'machine_changed', reply: ScanReply, report: UnsentReport, host: ScanHost) {
    const { store, now, intervalMs, log } = this.#parts
    store.writeHost({ ...host, refused: reason, refusedMachineIdHash: report.machineIdHash })
    store.keepUnsent(null)
    const nextAtMs = now() + intervalMs
    store.update({ reason, lastError: reply.message, heldHash: '', retryAtMs: null, failures: 0, nextAtMs })
    log.error({ reason }, 'the matcher takes nothing more of this host until it is enrolled again')
    return false
  }

  /** The same content would be refused again. */
  #refuseReport(reply: ScanReply, { contentHash }: UnsentReport): boolean {
    const { store, now, intervalMs, log } = this.#parts
    store.keepUnsent(null)
    const nextAtMs = now() + intervalMs
    store.update({ lastError: reply.message, refusedHash: contentHash, retryAtMs: null, failures: 0, nextAtMs })
    log.error({ message: reply.message }, 'the matcher refuses the report')
    return false
  }

  #tryLater(reply: ScanReply, reason: ScanReason | null): false {
    const { store, now, random, log } = this.#parts
    const failures = store.state().failures + 1
    const waitMs = scanRetryMs(failures, random(), reply.kind === 'answer' ? reply.retryAfterMs : null)
    store.update({ reason, lastError: reply.message, failures, retryAtMs: now() + waitMs })
    log.warn({ message: reply.message, failures, wait_ms: waitMs }, 'not reported yet')
    return false
  }

  /** A new key takes over when the old one is as old as a token may get; the matcher's answer decides which is used. */
  async #rotateWhenDue(): Promise<void> {
    const { store, now, renewPeriodMs, log } = this.#parts
    const host = activeHost(store.host())
    if (host === null || now() < renewalDueAtMs(host.keyMadeAtMs, renewPeriodMs, host.hostId)) return
    const nextPrivateKey = host.nextPrivateKey ?? makeScanKey()
    store.writeHost({ ...host, nextPrivateKey })
    const { hostId, privateKey } = host
    const publicKey = publicKeyOf(nextPrivateKey)
    const document = { public_key: publicKey, signature: signText(privateKey, rotationText(hostId, publicKey)) }
    const body = Buffer.from(JSON.stringify(document))
    const reply = await this.#call({ path: '/rotate', hostId, privateKey, body })
    if (reply.kind !== 'answer' || reply.status >= 300) {
      log.warn({ message: reply.message }, 'the key of this scan host is not renewed yet')
      return
    }
    store.writeHost({ ...host, privateKey: nextPrivateKey, nextPrivateKey: null, keyMadeAtMs: now() })
    log.info('the key of this scan host is renewed')
  }
}

function serverTimeOf(data: Readonly<Record<string, unknown>>): number | null {
  const inError = isObject(data.error) ? data.error.server_time_ms : null
  const timeMs = data.server_time_ms ?? inError
  return typeof timeMs === 'number' && Number.isSafeInteger(timeMs) && timeMs > 0 ? timeMs : null
}
