// How long a member is drained, and what it is after that.
import { type SQL, sql } from 'drizzle-orm'
import type { AdminState } from '../../../core/load-balancing/state-names.ts'
import type { Editor } from '../resources/editor.ts'
import type { Values } from '../resources/field.ts'

/** Unless somebody says otherwise. */
const DRAIN_SECONDS = 300
export const DRAIN_SECONDS_MAX = 86_400
export const thenStates = ['draining', 'disabled'] as const

type Drained = {
  admin_state: string
  drain_until: Date | null
  drain_then: AdminState | null
  drain_started_at: Date | null
}

type Settling = {
  readonly editor: Editor
  readonly before: Pick<Drained, 'admin_state'> | null
  readonly next: Drained
  readonly input: Values
}

/** Draining has an end; every other state has none. */
export function settleDraining({ editor, before, next, input }: Settling): void {
  const isChange = before?.admin_state !== next.admin_state
  if (next.admin_state !== 'draining') {
    next.drain_until = null
    next.drain_then = null
    next.drain_started_at = null
  } else if (isChange || input.drain_seconds !== undefined || input.then !== undefined) {
    const now = editor.hub.now()
    const seconds = Number(input.drain_seconds ?? DRAIN_SECONDS)
    next.drain_started_at = isChange ? new Date(now) : next.drain_started_at
    next.drain_until = new Date(now + seconds * 1000)
    next.drain_then = input.then === 'draining' ? 'draining' : 'disabled'
  }
}

/** Whether a drained member is to be disabled: its time is over, or no connection is left of it. */
export const isDrainOver = (nowMs: number): SQL => sql`admin_state = 'draining' and drain_then = 'disabled'
  and deleted_at is null and (drain_until <= ${new Date(nowMs).toISOString()}::timestamptz
    or (active_connections = 0 and observed_at > drain_started_at))`
