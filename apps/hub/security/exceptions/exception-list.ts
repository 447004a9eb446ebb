// Exceptions as people see them: who asked for which findings to be accepted or called false, and what was decided
// (decisions G-154, G-174).
import { desc, eq, getTableColumns, sql } from 'drizzle-orm'
import { alias } from 'drizzle-orm/pg-core'
import { users } from '../../platform/db/schema-identity.ts'
import { securityExceptions } from '../../platform/db/schema-security.ts'
import { collection, equals, ofCompany } from '../../platform/http/collection.ts'
import { oneOf } from '../../platform/http/request-schema.ts'
import {
  amount,
  id,
  listed,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../../platform/http/response-schema.ts'

export const exceptionTypes = ['accepted', 'false_positive'] as const
/** What is being done to its findings: they get its status, or lose it. */
const changes = ['begin', 'end'] as const
const exceptionStatuses = ['pending', 'approved', 'rejected', 'expired', 'withdrawn'] as const
/** An exception can have a great many findings; whoever decides sees the first ones and how many there are. */
const IDS_SHOWN = 100

const exceptionResponse = named('SecurityException', {
  id: id(),
  company_id: id(),
  type: wordOf(exceptionTypes),
  status: wordOf(exceptionStatuses),
  reason: string(),
  expires_at: nullable(time()),
  finding_count: amount(),
  /** The first of them. */
  finding_ids: listed(id()),
  /** What is still being done to the findings; null once all of them have changed. */
  changing: nullable(wordOf(changes)),
  /** How many of them were come to by that. */
  changed_count: amount(),
  requested_by: nullable(reference),
  requested_at: time(),
  decided_by: nullable(reference),
  decided_at: nullable(time()),
  ended_at: nullable(time()),
})

const requester = alias(users, 'requester')
const decider = alias(users, 'decider')

const FINDING_IDS = sql<string[]>`array(select x.finding_id from security_exception_findings x
  where x.exception_id = ${securityExceptions.id} order by x.finding_id limit ${IDS_SHOWN})`

export const exceptionCollection = collection({
  table: securityExceptions,
  scope: ofCompany(securityExceptions.companyId),
  filters: {
    status: equals(securityExceptions.status, oneOf(exceptionStatuses)),
    type: equals(securityExceptions.type, oneOf(exceptionTypes)),
  },
  select: db =>
    db
      .select({
        exception: getTableColumns(securityExceptions),
        findingIds: FINDING_IDS,
        requester: { id: requester.id, name: requester.name },
        decider: { id: decider.id, name: decider.name },
      })
      .from(securityExceptions)
      .leftJoin(requester, eq(requester.id, securityExceptions.requestedBy))
      .leftJoin(decider, eq(decider.id, securityExceptions.decidedBy)),
  order: [desc(securityExceptions.requestedAt), desc(securityExceptions.id)],
  pageBy: 'ids',
  response: exceptionResponse,
  present: ({ exception, findingIds, requester, decider }) => ({
    id: exception.id,
    company_id: exception.companyId,
    type: exception.type,
    status: exception.status,
    reason: exception.reason,
    expires_at: exception.expiresAt,
    finding_count: exception.findingCount,
    finding_ids: findingIds,
    changing: exception.changing,
    changed_count: exception.changedCount,
    requested_by: requester,
    requested_at: exception.requestedAt,
    decided_by: decider,
    decided_at: exception.decidedAt,
    ended_at: exception.endedAt,
  }),
})

export type ExceptionRow = Awaited<ReturnType<typeof exceptionCollection.find>>
