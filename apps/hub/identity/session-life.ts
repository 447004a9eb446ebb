// How long a session of the web interface lives (decision G-02): so long without a request, and so long at most. Its
// cookie lives as long; the row goes with the clean-up of the hub.
import { type SQL, sql } from 'drizzle-orm'

const SESSION_IDLE_MINUTES = 120
export const sessionHours = 12

/** A condition on a row of sessions, by the name that its table has in a statement. */
export const isOverIn = (table: SQL): SQL<boolean> => sql`(
  ${table}.last_seen_at < now() - make_interval(mins => ${sql.raw(String(SESSION_IDLE_MINUTES))})
  or ${table}.created_at < now() - make_interval(hours => ${sql.raw(String(sessionHours))}))`

/** The same on a row `s`. */
export const isSessionOver = isOverIn(sql`s`)
