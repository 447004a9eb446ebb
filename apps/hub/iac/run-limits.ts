// How large a run may be: its manifests, their texts, its description and all items in them.
import { invalidField } from '../platform/http/api-error.ts'
import type { SentFile } from './manifest.ts'

export const CONTENTS_BYTES_MAX = 256 * 1024
export const MANIFESTS_MAX = 25
export const DESCRIPTION_MAX = 20_000
export const LEAVES_MAX = 10_000

/** The limit counts bytes, the schema characters. */
export function checkSizes(files: readonly SentFile[]): readonly SentFile[] {
  const large = files.findIndex(file => Buffer.byteLength(file.contents) > CONTENTS_BYTES_MAX)
  if (large >= 0) throw invalidField(`manifests.${large}.contents`, 'length_max', { max: CONTENTS_BYTES_MAX })
  return files
}

/** Items of lists of objects, at any depth. */
export function leafItems(value: unknown): number {
  if (Array.isArray(value))
    return value.reduce<number>((sum, item) => sum + (typeof item === 'object' ? 1 : 0) + leafItems(item), 0)
  return typeof value === 'object' && value !== null
    ? Object.values(value).reduce<number>((sum, member) => sum + leafItems(member), 0)
    : 0
}
