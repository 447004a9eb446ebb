// The configuration that an agent is given, with the ETag that changes exactly when the content does (document 3 "Agent
// config semantics"; decisions G-52, G-54). Which checks are in it: checks-of-server.ts.
import { limits } from '../limits.ts'
import { sha256Hex } from '../series/hash.ts'
import type { AgentCheck } from './checks-of-server.ts'

/**
 * The configuration that the collector manages of an agent. collectors and log_level stay unset, so the agent keeps its
 * own.
 */
export type ManagedConfig = {
  readonly intervalSeconds: number
  readonly checks: readonly AgentCheck[]
  readonly limits: { readonly maxSeries: number; readonly maxBatchBytes: number; readonly bufferBytes: number }
  readonly minAgentVersion: string
  readonly collectorUrl: string
  /** Absent for an agent that has a scan host, or is to have none. */
  readonly scan?: ScanInvitation | undefined
}

/** Where an agent reports its packages to, and the code by which it becomes a scan host (decision G-194). */
export type ScanInvitation = { readonly matcherUrl: string; readonly enrolCode: string }

/** The managed interval in seconds if it is in 10..300, else 0 (unset). */
export const managedInterval = (seconds: number): number =>
  Number.isInteger(seconds) && seconds >= limits.intervalSecondsMin && seconds <= limits.intervalSecondsMax
    ? seconds
    : 0

/** 16 hex characters that depend on the content and on nothing else. */
export function configEtag(config: ManagedConfig): string {
  const checks = config.checks.map(c => [
    c.id,
    c.type,
    c.name,
    c.target,
    c.port,
    c.proto,
    c.url,
    c.expectStatus,
    c.timeoutSeconds,
  ])
  const { maxSeries, maxBatchBytes, bufferBytes } = config.limits
  return sha256Hex(
    JSON.stringify([
      config.intervalSeconds,
      checks,
      [maxSeries, maxBatchBytes, bufferBytes],
      config.minAgentVersion,
      config.collectorUrl,
      // Without it the content, and so the ETag, is the one of before scans.
      ...(config.scan ? [[config.scan.matcherUrl, config.scan.enrolCode]] : []),
    ]),
  ).slice(0, 16)
}

/** True when an If-None-Match header names the ETag: a list of quoted, weak or bare tags, or `*`. */
export function matchesEtag(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false
  return ifNoneMatch.split(',').some(part => {
    const tag = part
      .trim()
      .replace(/^W\//, '')
      .replace(/^"(.*)"$/, '$1')
    return tag === '*' || tag === etag
  })
}
