// A report as it was sent, as a Report, or what is wrong with it (MAT-021, MAT-039).
import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { Unchecked } from '../../../core/json-object.ts'
import { reportContentHash } from '../../../core/matching/report-content.ts'
import { type PackageColumns, type Report, reportSchema } from '../../../core/matching/report-schema.ts'
import { ApiError, badRequest } from '../../http/api-error.ts'
import { parseObject, shownPath } from './read-body.ts'

/** The newest schema that is read here; a scanner of a later one is told to wait for a newer matcher. */
const SCHEMA_MAX = 1

const compiled = TypeCompiler.Compile(reportSchema)

const COLUMNS: readonly (keyof PackageColumns)[] = [
  'name',
  'version',
  'arch',
  'source',
  'source_version',
  'module',
  'vendor',
]

/** The first column that is longer or shorter than the first; null when all have one length. */
const unevenColumn = (packages: PackageColumns): string | null =>
  COLUMNS.find(column => packages[column].length !== packages.name.length) ?? null

/** What is known of a report, and no more: members of later schemas are left out of it, and count for its hash. */
function knownMembers(report: Report): Report {
  const { packages, ...rest } = report
  const members = Object.keys(reportSchema.properties)
  const known = Object.fromEntries(Object.entries(rest).filter(([name]) => members.includes(name))) as Omit<
    Report,
    'packages'
  >
  if (!packages) return known
  return {
    ...known,
    packages: Object.fromEntries(COLUMNS.map(column => [column, packages[column]])) as PackageColumns,
  }
}

function versionFault({ schema }: Unchecked): ApiError | null {
  if (!Number.isInteger(schema) || Number(schema) <= SCHEMA_MAX) return null
  return new ApiError(
    426,
    'upgrade_required',
    `reports of schema ${Number(schema)} are not read here, only ${SCHEMA_MAX}`,
  )
}

/** The report of an inflated body, with its content hash. */
export function parseReport(bytes: Uint8Array): { report: Report; contentHash: string } | ApiError {
  const value = parseObject(bytes)
  if (value instanceof ApiError) return value
  const fault = versionFault(value)
  if (fault) return fault
  if (!compiled.Check(value)) {
    const first = compiled.Errors(value).First()
    return badRequest(`${shownPath(first?.path ?? '')} is not valid: ${first?.message ?? 'it is no report'}`)
  }
  const uneven = value.packages ? unevenColumn(value.packages) : null
  if (uneven !== null) return badRequest(`/packages/${uneven} has not the length of /packages/name`)
  return { report: knownMembers(value), contentHash: reportContentHash(value) }
}
