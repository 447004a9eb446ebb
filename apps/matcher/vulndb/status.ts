// What `db status` and the matcher's own status say of the database (MAT-060, 064, 087).
import type { DatabaseVersions } from './database-versions.ts'
import type { SourceRow } from './import/write-file.ts'
import { openAdvisories } from './reader.ts'

type SourceStatus = {
  readonly name: string
  readonly url: string
  readonly fetched_at_ms: number
  readonly age_seconds: number
  readonly records: number
  readonly rejected: number
  readonly licence: string
  /** Why the last update did not take it; null when nothing is wrong. */
  readonly fault: string | null
}

export type DatabaseStatus = {
  /** yyyymmddNN; 0 when there is none. */
  readonly db_version: number
  readonly built_at_ms: number | null
  readonly age_seconds: number | null
  readonly checked_at_ms: number | null
  readonly sources: readonly SourceStatus[]
}

/** Parts of one source as one: the oldest of their ages, the sum of their records. */
function joined(name: string, parts: readonly SourceRow[], nowMs: number, fault: string | null): SourceStatus {
  const fetchedAtMs = parts.length === 0 ? 0 : Math.min(...parts.map(part => part.fetched_at_ms))
  return {
    name,
    url: parts.length === 1 ? parts[0]!.url : '',
    fetched_at_ms: fetchedAtMs,
    age_seconds: parts.length === 0 ? 0 : Math.max(0, Math.round((nowMs - fetchedAtMs) / 1000)),
    records: parts.reduce((sum, { records }) => sum + records, 0),
    rejected: parts.reduce((sum, { rejected }) => sum + rejected, 0),
    licence: parts[0]?.licence ?? '',
    fault,
  }
}

export function databaseStatus(folder: DatabaseVersions, nowMs: number): DatabaseStatus {
  const current = folder.current()
  const { checkedAtMs, faults } = folder.notes()
  const reader = current === null ? null : openAdvisories(current.file)
  try {
    const rows = reader?.sources ?? []
    const names = [...new Set([...rows.map(({ name }) => name), ...Object.keys(faults)])].toSorted()
    return {
      db_version: reader?.version ?? 0,
      built_at_ms: reader?.builtAtMs ?? null,
      age_seconds: reader === null ? null : Math.max(0, Math.round((nowMs - reader.builtAtMs) / 1000)),
      checked_at_ms: checkedAtMs === 0 ? null : checkedAtMs,
      sources: names.map(name =>
        joined(
          name,
          rows.filter(row => row.name === name),
          nowMs,
          faults[name] ?? null,
        ),
      ),
    }
  } finally {
    reader?.close()
  }
}

const hours = (seconds: number): string =>
  seconds < 3600
    ? `${Math.round(seconds / 60)} min`
    : seconds < 172_800
      ? `${Math.round(seconds / 3600)} h`
      : `${Math.round(seconds / 86_400)} days`

/** The status as lines for a terminal. */
export function statusLines(status: DatabaseStatus): string[] {
  if (status.db_version === 0 && status.sources.length === 0)
    return ['no vulnerability database: matcher db update --source NAME, or matcher db import FILE']
  const head =
    status.db_version === 0
      ? 'no vulnerability database'
      : `version ${status.db_version}, built ${hours(status.age_seconds ?? 0)} ago`
  return [
    head,
    ...status.sources.flatMap(source => [
      source.fetched_at_ms === 0
        ? `${source.name}: nothing of it is here yet`
        : `${source.name}: ${source.records} records, ${source.rejected} rejected, ${hours(source.age_seconds)} old${source.licence === '' ? '' : `, licence: ${source.licence}`}`,
      ...(source.fault === null ? [] : [`${source.name}: the last update did not take it: ${source.fault}`]),
    ]),
  ]
}
