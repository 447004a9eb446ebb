// How many resources a company, or a parent, may have (R-015). To count half a million rows takes longer than to write
// one, so that while the limit is far away a count holds for some seconds.
import { and, count, eq, isNull, sql } from 'drizzle-orm'
import { LRUCache } from 'lru-cache'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Hub } from '../hub-context.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import type { Editor } from './editor.ts'
import { columnNamed, type Kind } from './kind.ts'

/** More than all processes of a hub can write while a count holds. */
const FAR = 50_000
const HOLDS_MS = 5_000
const OWNERS_MAX = 10_000

type Room = { left: number; readonly untilMs: number }
const roomsOf = new WeakMap<Hub, LRUCache<string, Room>>()

/** 422 for what is beyond the limit. */
export const beyondLimit = ({ limit }: Pick<Kind, 'limit'>): ApiError =>
  new ApiError(422, 'limit_exceeded', words('invalid'), {
    errors: { limit: [words('list_max', { max: limit })] },
    reason: 'company_quota',
  })

type Owner = { readonly company: string; readonly parent: string | null }

async function countOf({ table, parent }: Kind, tx: Tx, owner: Owner): Promise<number> {
  const within = parent ? eq(columnNamed(table, parent.column), owner.parent) : undefined
  const [found] = await tx.db
    .select({ total: count() })
    .from(table)
    .where(and(eq(table.company_id, owner.company), within, isNull(table.deleted_at)))
  return found?.total ?? 0
}

type Added = { readonly editor: Pick<Editor, 'hub'>; readonly next: Unchecked }

/** Writers near a limit count one after the other, each with what those before it wrote. */
const holdLimit = (tx: Tx, key: string) =>
  tx.db.execute(sql`select pg_advisory_xact_lock(hashtextextended(${`limit ${key}`}, 0))`)

/** How many of the resources that were written, all of one owner, are beyond its limit. Call it after the insert. */
export async function beyond(kind: Kind, tx: Tx, added: readonly Added[]): Promise<number> {
  const [first] = added
  if (!first) return 0
  const { hub } = first.editor
  const { info, parent, limit } = kind
  const rooms = roomsOf.get(hub) ?? new LRUCache<string, Room>({ max: OWNERS_MAX })
  roomsOf.set(hub, rooms)
  const owner = { company: String(first.next.company_id), parent: parent && String(first.next[parent.column]) }
  const key = `${info.kind} ${owner.parent ?? owner.company}`
  const known = rooms.get(key)
  if (known && hub.now() < known.untilMs && known.left - added.length > FAR) {
    known.left -= added.length
    return 0
  }
  const left = limit > FAR ? limit - (await countOf(kind, tx, owner)) : 0
  if (left > FAR) {
    rooms.set(key, { left, untilMs: hub.now() + HOLDS_MS })
    return 0
  }
  rooms.delete(key)
  await holdLimit(tx, key)
  return Math.max(0, (await countOf(kind, tx, owner)) - limit)
}
