// What may be a person's picture: its forms, and how large it is at most.
import { invalidField } from '../platform/http/api-error.ts'

export const AVATAR_BYTES_MAX = 128 * 1024

/** How the bytes of a snapshot begin; RIFF is what WebP is wrapped in. */
const SIGNATURES = { png: '89504e470d0a1a0a', jpeg: 'ffd8ff', webp: '52494646' } as const

/** A data URL of a small snapshot whose bytes are what it says. Throws 422. */
export function checkedImage(image: string): string {
  const [, type, base64 = ''] = /^data:image\/(png|jpeg|webp);base64,([A-Za-z0-9+/]+={0,2})$/.exec(image) ?? []
  if (type !== 'png' && type !== 'jpeg' && type !== 'webp') throw invalidField('image', 'image')
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.length > AVATAR_BYTES_MAX) throw invalidField('image', 'image_size', { max: AVATAR_BYTES_MAX })
  if (!bytes.toString('hex', 0, 8).startsWith(SIGNATURES[type])) throw invalidField('image', 'image')
  return image
}
