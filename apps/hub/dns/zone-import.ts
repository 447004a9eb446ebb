// A zone file read into a zone (R-055, RES-203 to RES-207): what is known stays, what is new is made, and what the file
// lacks goes where the file is to replace the zone.
import { type FileRecord, readZoneFile, type ZoneFile } from '../../../core/dns/zone-file.ts'
import { faultInZone, type ZoneFault } from '../../../core/dns/zone-rules.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { invalid } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import type { Editor } from '../resources/editor.ts'
import { isNsOfZone, isPublishedZone, lastNs, zoneFaultWords } from './dns-record.ts'
import type { DnsZone } from './dns-zone.ts'
import {
  checkRecordLimit,
  deleteRecords,
  insertRecords,
  lockRecords,
  type StoredRecord,
  setTtls,
  ZoneContent,
} from './zone-content.ts'
import { TTL_MAX_SECONDS, TTL_MIN_SECONDS } from './zone-limits.ts'
import { touchZone } from './zone-serial.ts'

const SKIPPED_TEXT_MAX = 200

type ImportMode = 'merge' | 'replace'
type ImportOrder = {
  readonly content: string
  readonly mode: ImportMode
  readonly isDryRun: boolean
  /** What the rules of a zone refuse is named among what is skipped. */
  readonly skipsRefused?: boolean
}
type Refused = { readonly record: FileRecord; readonly fault: ZoneFault }
type SkippedRecord = { readonly line: number; readonly text: string; readonly reason: string }

type ImportResult = {
  readonly created: number
  readonly updated: number
  readonly deleted: number
  readonly unchanged: number
  readonly skipped: readonly SkippedRecord[]
}

/** Throws 422 on `content.<line>`. */
function readFile(content: string, zoneName: string): ZoneFile {
  const file = readZoneFile(content, zoneName)
  if ('fault' in file) throw invalid({ [`content.${file.line}`]: words(`zone_file_${file.fault}`) })
  return file
}

const identity = ({ name, type, value }: Pick<FileRecord, 'name' | 'type' | 'value'>): string =>
  `${name} ${type} ${value}`

/** Name servers take shorter and longer times to live than a record may have. */
const nearestTtl = (seconds: number): number => Math.min(Math.max(seconds, TTL_MIN_SECONDS), TTL_MAX_SECONDS)

/** Each record once, and one time to live for a name and type: that of its first line. */
function wantedOf({ records, defaultTtl }: ZoneFile, zone: Pick<DnsZone, 'default_ttl'>) {
  const ttls = new Map<string, number | null>()
  const wanted = new Map<string, FileRecord>()
  for (const record of records) {
    const key = `${record.name} ${record.type}`
    const ttl = nearestTtl(record.ttl ?? defaultTtl ?? zone.default_ttl)
    if (!ttls.has(key)) ttls.set(key, ttl === zone.default_ttl ? null : ttl)
    if (!wanted.has(identity(record))) wanted.set(identity(record), record)
  }
  return { wanted, ttls }
}

/** What may stand in the zone, and what the rules of a zone refuse, with why. */
function judge(kept: readonly StoredRecord[], added: readonly FileRecord[], zoneName: string) {
  const content = new ZoneContent(kept)
  const fit: FileRecord[] = []
  const refused: Refused[] = []
  for (const record of added) {
    const fault = faultInZone(record, zoneName, content.at)
    if (fault) {
      refused.push({ record, fault })
      continue
    }
    content.add(record)
    fit.push(record)
  }
  return { fit, refused }
}

const skippedOf = ({ record: { name, type, value }, fault }: Refused): SkippedRecord => ({
  line: 0,
  text: skippedText(name, type, value),
  reason: fault.reason,
})

/** What is said of a record that is not of a file. */
export const skippedText = (name: string, type: string, value: string): string =>
  `${name} ${type} ${value}`.slice(0, SKIPPED_TEXT_MAX)

/**
 * Reads a zone file into a zone. Throws 422, also on the first line that the rules of a zone refuse, unless such are to
 * be skipped.
 */
export async function importZoneFile(
  tx: Tx,
  editor: Editor,
  zone: DnsZone,
  { content, mode, isDryRun, skipsRefused = false }: ImportOrder,
): Promise<ImportResult> {
  const file = readFile(content, zone.name)
  const stored = await lockRecords(tx, zone.id)
  const { wanted, ttls } = wantedOf(file, zone)
  const known = new Set(stored.map(identity))
  const isGone = (record: StoredRecord): boolean =>
    mode === 'replace' && record.managed_by === null && !wanted.has(identity(record))
  const gone = stored.filter(isGone)
  const kept = stored.filter(record => !isGone(record))
  const unknown = [...wanted.values()].filter(record => !known.has(identity(record)))
  const { fit: added, refused } = judge(kept, unknown, zone.name)
  const [first] = refused
  if (first && !skipsRefused) throw invalid({ [`content.${first.record.line}`]: zoneFaultWords(first.fault) })
  checkRecordLimit(kept.length + added.length)
  const hasNs = kept.some(isNsOfZone) || added.some(record => isNsOfZone({ ...record, enabled: true }))
  if (!hasNs && gone.some(isNsOfZone) && (await isPublishedZone(tx.db, zone.id))) throw lastNs()
  const differing = kept.filter(({ name, type, ttl, managed_by }) => {
    const ofFile = ttls.get(`${name} ${type}`)
    return managed_by === null && ofFile !== undefined && ofFile !== ttl
  }).length
  const result = {
    created: added.length,
    updated: differing,
    deleted: gone.length,
    unchanged: kept.filter(record => wanted.has(identity(record))).length - differing,
    skipped: [...file.skipped, ...refused.map(skippedOf)],
  }
  if (isDryRun) return result
  await deleteRecords(tx, editor, gone)
  const rows = added.map(record => ({
    ...record,
    ttl: ttls.get(`${record.name} ${record.type}`) ?? null,
    enabled: true,
    ptr: false,
    comment: null,
  }))
  await insertRecords(tx, editor, zone, rows, 'import')
  await setTtls(tx, editor, kept, ttls)
  const isChanged = result.created + result.updated + result.deleted > 0
  if (isChanged) await touchZone(tx, zone.id, true, new Date(editor.hub.now()))
  return { ...result, unchanged: Math.max(0, result.unchanged) }
}
