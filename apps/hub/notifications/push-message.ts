// What a push says: how long it may be, and what is left out of it for who wants no details on the screen.
import type { Hub } from '../hub-context.ts'
import { badgeOf } from './app-badge.ts'
import { DEFAULT_LEVELS } from './default-levels.ts'
import type { WaitingPush } from './push-still-wanted.ts'

const PAYLOAD_BYTES_MAX = 3000
const TITLE_MAX = 200
const BODY_MAX = 800

const GENERAL = {
  en: (severity: string) => ({ title: `Alert: ${severity}`, body: 'Open the app for details.' }),
  vi: (severity: string) => ({ title: `Cảnh báo: ${severity}`, body: 'Mở ứng dụng để xem chi tiết.' }),
} as const

/** What the device is sent: at most 3,000 bytes. */
export async function messageOf(hub: Hub, row: WaitingPush): Promise<Buffer> {
  const { title, body, link, id } = row.payload
  const shown =
    row.show_details === false && row.type !== 'test' ? GENERAL[row.language](row.severity) : { title, body }
  const badge = await badgeOf(hub.database.db, row.user_id, row.level ?? DEFAULT_LEVELS.push)
  const bytesOf = (bodyMax: number): Buffer =>
    Buffer.from(
      JSON.stringify({
        type: row.type,
        id,
        title: shown.title.slice(0, TITLE_MAX).toWellFormed(),
        body: shown.body.slice(0, bodyMax).toWellFormed(),
        severity: row.severity,
        link,
        badge,
        sent_at: new Date(hub.now()).toISOString(),
      }),
    )
  const whole = bytesOf(BODY_MAX)
  return whole.byteLength <= PAYLOAD_BYTES_MAX ? whole : bytesOf(0)
}
