// What the matcher does with its vulnerability database, for the overview (GET /internal/v1/status of the matcher). Who
// asks waits a moment at most: an answer is kept for a few seconds, and a matcher that hangs is waited for by nobody.
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import pTimeout from 'p-timeout'
import { nullable } from '../../platform/http/response-schema.ts'
import type { MatcherClient } from './matcher-client.ts'

const KEPT_MS = 3_000
const WAIT_MS = 500
const COUNT_MAX = Number.MAX_SAFE_INTEGER

export const databaseStates = ['idle', 'fetching', 'importing'] as const

const count = () => Type.Integer({ minimum: 0, maximum: COUNT_MAX })

const statusBody = Type.Object({
  data: Type.Object({
    db_version: count(),
    db_age_seconds: nullable(count()),
    update: Type.Object({
      state: Type.Union(databaseStates.map(state => Type.Literal(state))),
      source: nullable(Type.String({ maxLength: 64 })),
      records: count(),
      fault: nullable(Type.String({ maxLength: 1024 })),
    }),
  }),
})

type DatabaseState = {
  readonly state: (typeof databaseStates)[number]
  /** What is being fetched or imported. */
  readonly source: string | null
  readonly records: number
  /** Why sources were not taken when they were last fetched. */
  readonly fault: string | null
  readonly dbVersion: number
  readonly ageSeconds: number | null
}

/** One for a hub: all companies see the same matcher. */
export class MatcherStatus {
  private held: DatabaseState | null = null
  private readAtMs = Number.NEGATIVE_INFINITY
  private reading: Promise<void> | null = null
  /** Somebody has waited for this reading in vain: nobody else does. */
  private isLate = false

  constructor(private readonly matcher: MatcherClient) {}

  /** What the matcher said within the last seconds; null when it says nothing, or is not there. */
  async current(): Promise<DatabaseState | null> {
    if (!this.matcher.isConfigured) return null
    if (performance.now() - this.readAtMs < KEPT_MS) return this.held
    this.reading ??= this.read()
    if (this.isLate) return null
    return await pTimeout(
      this.reading.then(() => this.held),
      {
        milliseconds: WAIT_MS,
        fallback: () => {
          this.isLate = true
          return null
        },
      },
    )
  }

  private async read(): Promise<void> {
    const answered = await this.matcher.ask('GET', 'status', '/status')
    this.held = answered?.status === 200 ? stateOf(answered.body) : null
    this.readAtMs = performance.now()
    this.isLate = false
    this.reading = null
  }
}

function stateOf(body: unknown): DatabaseState | null {
  if (!Value.Check(statusBody, body)) return null
  const { db_version: dbVersion, db_age_seconds: ageSeconds, update } = body.data
  const { state, source, records, fault } = update
  return { state, source, records, fault, dbVersion, ageSeconds }
}
