// An export of findings that somebody asked for: whether its file is there.
import { findExport } from '../../security/exports/exports.ts'
import { SEES_KINDS } from './findings.ts'
import type { View } from './view.ts'

export type FindingsExportView = {
  readonly state: Awaited<ReturnType<typeof findExport>>['status']
  readonly findings: number | null
  readonly expiresAtMs: number
}

export const findingsExportView: View<FindingsExportView> = {
  permissions: ['security.export'],
  optional: SEES_KINDS,
  params: ['export'],
  async make({ hub, companyId, may, param }) {
    const asked = { hub, companyId, params: { export: param('export') }, caller: { permissions: { has: may } } }
    const { status, rowCount, expiresAt } = await findExport(asked)
    return { state: status, findings: rowCount, expiresAtMs: expiresAt.getTime() }
  },
}
