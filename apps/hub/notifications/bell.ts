// The realtime bell: wakes the open streams of a user when this or another hub has written a notification for that
// user. PostgreSQL transports the signal (NOTIFY, with the commit of the notification); a hub reads only notifications
// of users with an open stream.
import { sql } from 'drizzle-orm'
import type { Logger } from 'pino'
import type { Database } from '../platform/db/connect.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { notifications } from '../platform/db/schema-identity.ts'
import { isAnyOf, type Tx } from '../platform/db/transaction.ts'

type Row = Omit<typeof notifications.$inferSelect, 'companyId' | 'position'>
type Listener = (message: Readonly<Record<string, unknown>>) => void

const CHANNEL = 'hub_bell'
/** Pairs of ids in one word: its text must stay below 8,000 bytes. */
const PAIRS_MAX = 90

/** The columns that a notification's owner is shown, and the owner. */
export const notificationColumns = {
  id: notifications.id,
  userId: notifications.userId,
  type: notifications.type,
  title: notifications.title,
  body: notifications.body,
  link: notifications.link,
  readAt: notifications.readAt,
  createdAt: notifications.createdAt,
}

/** A notification as its owner sees it. */
export const presentNotification = (row: Row) => ({
  id: row.id,
  type: row.type,
  title: row.title,
  body: row.body,
  link: row.link,
  read_at: row.readAt,
  created_at: row.createdAt,
})

const NOTIFY = fixedStatement<'words'>(
  value => sql`
    select pg_notify(${CHANNEL}, word) from jsonb_array_elements_text(${value('words')}::jsonb) as word`,
)

/** With the commit, signals every hub that these notifications exist. */
export async function ringLater(
  tx: Tx,
  rung: readonly { readonly id: string; readonly userId: string }[],
): Promise<void> {
  const words: string[] = []
  for (let at = 0; at < rung.length; at += PAIRS_MAX) {
    const pairs = rung.slice(at, at + PAIRS_MAX).map(({ userId, id }) => `${userId} ${id}`)
    words.push(pairs.join(','))
  }
  if (words.length > 0) await tx.db.execute(NOTIFY({ words: JSON.stringify(words) }))
}

export class Bell {
  private readonly listeners = new Map<string, Set<Listener>>()
  private readonly closers = new Set<() => void>()

  /** Hears of notifications from now on, until the database is closed. */
  async start(database: Database, log: Logger): Promise<void> {
    await database.jobs.listen(CHANNEL, text => {
      this.hear(database, text).catch(error => log.error({ err: error }, 'cannot ring the bell'))
    })
  }

  private async hear(database: Database, text: string): Promise<void> {
    const ids = text
      .split(',')
      .map(pair => pair.split(' '))
      .filter(([userId = '']) => this.listeners.has(userId))
      .flatMap(([, id = '']) => id)
    if (ids.length === 0) return
    const rows = await database.db.select(notificationColumns).from(notifications).where(isAnyOf(notifications.id, ids))
    const byId = new Map(rows.map(row => [row.id, row]))
    for (const id of ids) {
      const row = byId.get(id)
      if (row) for (const listener of this.listeners.get(row.userId) ?? []) listener(presentNotification(row))
    }
  }

  /** Returns the function that ends the listening. */
  listen(userId: string, listener: Listener): () => void {
    const known = this.listeners.get(userId) ?? new Set<Listener>()
    known.add(listener)
    this.listeners.set(userId, known)
    return () => {
      known.delete(listener)
      if (known.size === 0) this.listeners.delete(userId)
    }
  }

  /** Calls `listener` when the hub stops. Returns the function that forgets it. */
  onClose(listener: () => void): () => void {
    this.closers.add(listener)
    return () => this.closers.delete(listener)
  }

  /** Ends every stream. */
  close(): void {
    for (const closer of [...this.closers]) closer()
    this.closers.clear()
    this.listeners.clear()
  }
}
