// The fields of a kind of resource as its list, its page and its form show them, from the registry of kinds.

import type { TSchema } from '@sinclair/typebox'
import { kinds } from '../../kinds.ts'
import { notFound, permissionDenied } from '../../platform/http/api-error.ts'
import type { Field } from '../../resources/field.ts'
import type { Kind } from '../../resources/kind.ts'
import type { FieldForm, ResourceField } from './resource-pages.ts'
import type { ViewContext } from './view.ts'

/** Longer texts have a field of several lines. */
const LINE_CHARS_MAX = 300

/** Texts that are typed one a line. */
const isTexts = (value: TSchema): boolean => value.type === 'array' && value.items?.type === 'string'

function formOf({ value, to, isSecret }: Field): FieldForm {
  if (isSecret) return 'secret'
  if (to !== undefined) return value.type === 'array' ? 'references' : 'reference'
  if (isTexts(value)) return 'texts'
  if (Array.isArray(value.enum)) return 'choice'
  if (value.type === 'boolean') return 'boolean'
  if (value.type === 'integer' || value.type === 'number') return 'number'
  if (value.format === 'date-time') return 'time'
  if (value.type !== 'string') return 'json'
  return Number(value.maxLength ?? 0) > LINE_CHARS_MAX ? 'long_text' : 'text'
}

const shapeOf = (name: string, field: Field): ResourceField => ({
  name,
  form: formOf(field),
  isRequired: field.required === true,
  isImmutable: field.immutable === true,
  to: field.to ?? null,
  choices: Array.isArray(field.value.enum) ? field.value.enum.map(String) : [],
  charsMax: typeof field.value.maxLength === 'number' ? field.value.maxLength : null,
  fallback: field.isSecret ? null : field.fallback,
})

/** The fields that answers have. */
export const fieldsOf = ({ fields }: Pick<Kind, 'fields'>): readonly ResourceField[] =>
  Object.entries(fields).flatMap(([name, field]) =>
    Object.keys(field.response(name)).length === 0 ? [] : [shapeOf(name, field)],
  )

/** The fields that a request may give. */
export const formFieldsOf = ({ fields }: Pick<Kind, 'fields'>): readonly ResourceField[] =>
  Object.entries(fields).flatMap(([name, field]) => (field.readOnly ? [] : [shapeOf(name, field)]))

/** The kind that an address names. Throws 404 for none, 403 for one that the viewer may not see. */
export function shownKind({ param, may }: Pick<ViewContext, 'param' | 'may'>): Kind {
  const kind = kinds.find(({ info }) => info.kind === param('kind'))
  if (!kind) throw notFound()
  const { view } = kind.info.permissions
  if (!may(view)) throw permissionDenied(view)
  return kind
}

/** The kinds that one resource is a whole of. */
export const partsOf = ({ info }: Kind): readonly Kind[] =>
  kinds.filter(({ info: part }) => part.parent?.kind === info.kind)
