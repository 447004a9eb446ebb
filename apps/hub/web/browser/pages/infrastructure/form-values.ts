// What a form of a resource holds, as texts that are typed, and what of it is sent.
import type { ResourceField } from '../../../views/resource-pages.ts'
import { infrastructureWords } from '../../../words/infrastructure.ts'
import type { ApiFault } from '../../api.ts'
import { fieldText, instantOfField } from '../../format.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(infrastructureWords)

/** By the name of the field: its text; ids one a line for what names others. */
export type Draft = Readonly<Record<string, string>>

const textOf = ({ form }: ResourceField, value: unknown): string => {
  if (value === null || value === undefined || form === 'secret') return ''
  if (form === 'time') return fieldText(Date.parse(String(value)))
  if (form === 'texts' || form === 'references') return Array.isArray(value) ? value.join('\n') : ''
  return form === 'json' ? JSON.stringify(value, null, 2) : String(value)
}

export const draftOf = (fields: readonly ResourceField[], values: Readonly<Record<string, unknown>>): Draft =>
  Object.fromEntries(fields.map(field => [field.name, textOf(field, values[field.name] ?? null)]))

/** The values that a new resource has for what nobody fills in. */
export const fallbacksOf = (fields: readonly ResourceField[]): Readonly<Record<string, unknown>> =>
  Object.fromEntries(fields.map(({ name, fallback }) => [name, fallback]))

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')

/** Throws SyntaxError for JSON that is none. */
function typedValue({ form }: ResourceField, text: string): unknown {
  if (form === 'texts' || form === 'references') return linesOf(text)
  if (text.trim() === '') return null
  if (form === 'boolean') return text === 'true'
  if (form === 'number') return Number(text)
  if (form === 'time') return new Date(instantOfField(text)).toISOString()
  return form === 'json' ? JSON.parse(text) : text
}

/** What differs from `before`, ready to be sent; or what is wrong with it already. */
export function changedValues(
  fields: readonly ResourceField[],
  before: Draft,
  draft: Draft,
): { readonly body: Readonly<Record<string, unknown>> } | { readonly fault: ApiFault } {
  const body: Record<string, unknown> = {}
  for (const field of fields) {
    const text = draft[field.name] ?? ''
    if (text === (before[field.name] ?? '')) continue
    try {
      body[field.name] = typedValue(field, text)
    } catch (error) {
      const message = t('not_json', { fault: error instanceof Error ? error.message : '' })
      return { fault: { status: 422, message: t('not_valid'), errors: { [field.name]: [message] }, requestId: null } }
    }
  }
  return { body }
}
