// One scan of a root, with its packages as rows: what most tests of the scanner look at.
import { collectReport, type ScanOptions } from '../../../apps/agent/scan/collect-report.ts'
import type { Report } from '../../../core/matching/report-schema.ts'

export type Row = {
  readonly name: string
  readonly version: string
  readonly arch: string
  readonly source: string
  readonly sourceVersion: string
  readonly module: string
  readonly vendor: string
}

export const scanOf = (root: string, options: Partial<ScanOptions> = {}): Promise<Report> =>
  collectReport({
    root,
    stateDir: null,
    scannerVersion: '1.2.3',
    nowMs: 1_790_000_000_000,
    madeMachineId: () => '',
    ...options,
  })

export function rowsOf({ packages }: Report): Row[] {
  if (packages === undefined) throw new Error('the report has no packages')
  return packages.name.map((name, index) => ({
    name,
    version: packages.version[index]!,
    arch: packages.arch[index]!,
    source: packages.source[index]!,
    sourceVersion: packages.source_version[index]!,
    module: packages.module[index]!,
    vendor: packages.vendor[index]!,
  }))
}

/** `name version arch source source_version` of each package. */
export const linesOf = (report: Report): string[] =>
  rowsOf(report).map(row => [row.name, row.version, row.arch, row.source, row.sourceVersion].join(' '))
