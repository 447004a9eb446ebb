// Manifests as YAML: what the form sends, and what an export gives.
import { Document, isMap, isScalar, isSeq, Scalar, visit, type YAMLMap } from 'yaml'
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

/** Characters of an item that is one line. */
const LINE_MAX = 120

/** A text of several lines is a block of its own. */
const isShort = (value: unknown): boolean => isScalar(value) && !String(value.value).includes('\n')
const isFlat = (value: unknown): boolean => isShort(value) || (isSeq(value) && value.items.every(isShort))

/** An item of a list that is a line by itself: in blocks the records of a zone would be a third larger. */
const isOneLine = (item: unknown): item is YAMLMap =>
  isMap(item) && item.items.every(({ value }) => isFlat(value)) && JSON.stringify(item).length <= LINE_MAX

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
    Seq(_key, { items }) {
      for (const item of items) if (isOneLine(item)) item.flow = true
    },
    Scalar(_key, node) {
      if (String(node.value).includes(REPLACEMENT)) node.type = Scalar.QUOTE_DOUBLE
    },
  })
  return document.toString({ lineWidth: 0, flowCollectionPadding: false }).replaceAll(REPLACEMENT, '\\ufffd')
}
