// Manifests as YAML: what the form sends, and what an export gives.
import { stringify } from 'yaml'
import type { Unchecked } from '../../../core/json-object.ts'
import { API_VERSION } from './manifest-schema.ts'

type Written = {
  readonly kind: string
  readonly company: string
  readonly name: string
  readonly ensure?: string | undefined
  readonly spec?: unknown
}

/** The text of a manifest. */
export function manifestYaml({ kind, company, name, ensure, spec }: Written): string {
  const value: Unchecked = {
    apiVersion: API_VERSION,
    kind,
    metadata: { company, name },
    ...(ensure === undefined ? {} : { ensure }),
    ...(spec === undefined ? {} : { spec }),
  }
  return stringify(value, { version: '1.2', schema: 'core', lineWidth: 0, aliasDuplicateObjects: false })
}
