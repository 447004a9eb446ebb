// How long a session of the web interface lives (decision G-02): so long without a request, and so long at most. Its
// cookie lives as long; the row goes with the clean-up of the hub.
import { type SQL, sql } from 'drizzle-orm'

const SESSION_IDLE_MINUTES = 120
export const sessionHours = 12

/** A condition on a row `s` of sessions. */
export const isSessionOver: SQL<boolean> = sql`(s.last_seen_at < now() - make_interval(mins => ${sql.raw(String(SESSION_IDLE_MINUTES))})
  or s.created_at < now() - make_interval(hours => ${sql.raw(String(sessionHours))}))`
