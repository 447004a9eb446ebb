// Manifests as YAML: what the form sends, and what an export gives.
import { Document, Scalar, visit } from 'yaml'
import type { Unchecked } from '../../../core/json-object.ts'
import { API_VERSION } from './manifest-schema.ts'

type Written = {
  readonly kind: string
  readonly company: string
  readonly name: string
  readonly ensure?: string | undefined
  readonly spec?: unknown
}

/** What is no UTF-8 is read as this character: a manifest may hold it as its escape alone. */
const REPLACEMENT = '\ufffd'

/** The text of a manifest. */
export function manifestYaml({ kind, company, name, ensure, spec }: Written): string {
  const value: Unchecked = {
    apiVersion: API_VERSION,
    kind,
    metadata: { company, name },
    ...(ensure === undefined ? {} : { ensure }),
    ...(spec === undefined ? {} : { spec }),
  }
  const document = new Document(value, { version: '1.2', schema: 'core', aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_key, node) {
      if (String(node.value).includes(REPLACEMENT)) node.type = Scalar.QUOTE_DOUBLE
    },
  })
  return document.toString({ lineWidth: 0 }).replaceAll(REPLACEMENT, '\\ufffd')
}
