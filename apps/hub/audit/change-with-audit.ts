// Creating, changing and deleting a resource, each in one transaction with its entry in the audit log: `team.create`,
// `team.update`, `team.delete`. What is written stands in the resource's own file.
import { randomUUID } from 'node:crypto'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import type { Asker } from '../platform/http/collection.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { auditRequest } from './audit.ts'
import { changesBetween } from './masked-changes.ts'

type Recorded<Row> = {
  /** What the audit log calls it. */
  readonly type: string
  readonly of: {
    readonly find: (db: Tx['db'], ownerId: string, id: string) => Promise<Row>
    readonly lock: (tx: Tx, ownerId: string, id: string) => Promise<Row>
    readonly ownerOf: (asker: Asker) => string
    readonly present: (row: Row, asker: Asker) => Readonly<Record<string, unknown>>
  }
  readonly named: (row: Row) => { readonly id: string; readonly name: string }
}

/** What an update answers when there was nothing to change: the log gets no entry then. */
export const UNCHANGED = Symbol('unchanged')

export function recorded<Row>({ type, of, named }: Recorded<Row>) {
  const subjectOf = (row: Row) => ({ type, ...named(row) })
  return {
    /** `insert` writes the row under the id that it is given. */
    create: (context: RouteContext, insert: (tx: Tx, id: string) => Promise<unknown>): Promise<Row> =>
      inTransaction(context.hub.database.db, async tx => {
        const id = randomUUID()
        await insert(tx, id)
        const made = await of.find(tx.db, of.ownerOf(context), id)
        await auditRequest(tx, context, `${type}.create`, subjectOf(made))
        return made
      }),

    /** `update` sees the row as it is under its lock; the log has what differs afterwards. */
    change: (
      context: RouteContext,
      id: string,
      update: (tx: Tx, before: Row) => Promise<unknown>,
      action = 'update',
    ): Promise<Row> =>
      inTransaction(context.hub.database.db, async tx => {
        const ownerId = of.ownerOf(context)
        const before = await of.lock(tx, ownerId, id)
        if ((await update(tx, before)) === UNCHANGED) return before
        const after = await of.find(tx.db, ownerId, id)
        const changes = changesBetween(of.present(before, context), of.present(after, context))
        await auditRequest(tx, context, `${type}.${action}`, subjectOf(after), changes)
        return after
      }),

    delete: (context: RouteContext, id: string, remove: (tx: Tx, row: Row) => Promise<unknown>): Promise<void> =>
      inTransaction(context.hub.database.db, async tx => {
        const row = await of.lock(tx, of.ownerOf(context), id)
        await remove(tx, row)
        await auditRequest(tx, context, `${type}.delete`, subjectOf(row))
      }),
  }
}
