// The file update.json of the state directory: the update on trial, and the versions that failed.
import { type FailedVersion, noUpdates, type UpdateRecord, type UpdateTrial } from '../../../core/agent/update-trial.ts'
import type { StateDir } from '../state/state-dir.ts'

const FILE = 'update.json'

type Fields = ReadonlyMap<string, unknown>

const fieldsOf = (value: unknown): Fields =>
  new Map(typeof value === 'object' && value !== null ? Object.entries(value) : [])

function trialOf(fields: Fields): UpdateTrial | null {
  const version = fields.get('version')
  const fromVersion = fields.get('from_version')
  const executable = fields.get('executable')
  const unwatchedStarts = fields.get('unwatched_starts')
  if (typeof version !== 'string' || typeof fromVersion !== 'string' || typeof executable !== 'string') return null
  if (typeof unwatchedStarts !== 'number') return null
  const isConfirmed = fields.get('confirmed') === true
  return { version, fromVersion, executable, isConfirmed, unwatchedStarts }
}

function failedOf(value: unknown): FailedVersion[] {
  const failed: FailedVersion[] = []
  for (const entry of Array.isArray(value) ? value : []) {
    const fields = fieldsOf(entry)
    const version = fields.get('version')
    const untilMs = fields.get('until_ms')
    if (typeof version === 'string' && typeof untilMs === 'number') failed.push({ version, untilMs })
  }
  return failed
}

/** The record on disk; an empty one when there is none, or it cannot be understood. */
export function readUpdateRecord(dir: StateDir): UpdateRecord {
  const text = dir.read(FILE)
  if (text === null) return noUpdates
  try {
    const fields = fieldsOf(JSON.parse(text))
    return { trial: trialOf(fieldsOf(fields.get('trial'))), failed: failedOf(fields.get('failed')) }
  } catch {
    return noUpdates
  }
}

/** Keeps the record, durably. Throws when the disk refuses. */
export function writeUpdateRecord(dir: StateDir, { trial, failed }: UpdateRecord): void {
  const document = {
    trial: trial && {
      version: trial.version,
      from_version: trial.fromVersion,
      executable: trial.executable,
      confirmed: trial.isConfirmed,
      unwatched_starts: trial.unwatchedStarts,
    },
    failed: failed.map(({ version, untilMs }) => ({ version, until_ms: untilMs })),
  }
  dir.write(FILE, `${JSON.stringify(document, null, 2)}\n`, true)
}
