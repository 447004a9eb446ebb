// Cursors of the internal API (MAT-201): where a page ended, signed for the question that it belongs to, so that
// neither a foreign one nor one of another question is taken.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { badField } from '../../admin-api/admin-error.ts'

const MAC_BYTES = 16
/** A position of names and versions of 256 characters each, were every one of them escaped, and more. */
const CURSOR_CHARS_MAX = 8192

export class Cursors {
  /** `secrets`: what signs; the first one new cursors, any of them those that come back. */
  constructor(private readonly secrets: () => readonly string[]) {}

  /** `question`: all that decides which rows the pages have. */
  seal(question: readonly (string | null)[], position: readonly string[]): string {
    const body = Buffer.from(JSON.stringify(position), 'utf8')
    const [secret = ''] = this.secrets()
    return Buffer.concat([macOf(secret, question, body), body]).toString('base64url')
  }

  /** The position of a cursor, of so many parts; null without one. Throws bad_request for any other text. */
  open(question: readonly (string | null)[], cursor: string | null, parts: number): readonly string[] | null {
    if (cursor === null) return null
    const bytes = cursor.length <= CURSOR_CHARS_MAX && /^[\w-]+$/.test(cursor) ? Buffer.from(cursor, 'base64url') : null
    const body = bytes?.subarray(MAC_BYTES)
    if (!bytes || !body || body.length === 0) throw badCursor()
    const isOurs = this.secrets().some(secret =>
      timingSafeEqual(macOf(secret, question, body), bytes.subarray(0, MAC_BYTES)),
    )
    const position: unknown = isOurs ? JSON.parse(body.toString('utf8')) : null
    if (!Array.isArray(position) || position.length !== parts) throw badCursor()
    return position.map(String)
  }
}

const badCursor = () => badField('cursor', 'is none that this query was given')

const macOf = (secret: string, question: readonly (string | null)[], body: Buffer): Buffer =>
  createHmac('sha256', `svc-matcher-cursor-v1\n${secret}`)
    .update(JSON.stringify(question))
    .update('\n')
    .update(body)
    .digest()
    .subarray(0, MAC_BYTES)
