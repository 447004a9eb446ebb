// Which kinds of findings a caller does not see.
import type { FindingKind } from './finding-filter.ts'

/** Secrets and personal data have permissions of their own (document 3, Other security endpoints). */
export function hiddenKinds({
  permissions,
}: {
  readonly permissions: Pick<ReadonlySet<string>, 'has'>
}): readonly FindingKind[] {
  return [
    ...(permissions.has('security.secrets.view') ? [] : (['secret'] as const)),
    ...(permissions.has('security.pii.view') ? [] : (['sensitive_data'] as const)),
  ]
}
