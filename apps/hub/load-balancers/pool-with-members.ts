// A pool as it is answered and made: with all of its members.
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Executor } from '../platform/db/connect.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { listOf } from '../platform/http/request-schema.ts'
import { listed } from '../platform/http/response-schema.ts'
import type { Editor } from '../resources/editor.ts'
import type { Values } from '../resources/field.ts'
import { bodyOf, type Kind } from '../resources/kind.ts'
import { parseForm } from '../resources/resource-form.ts'
import { listResponse } from '../resources/resource-response.ts'
import { rowsOfIds } from '../resources/resource-rows.ts'
import { presentList } from '../resources/resource-show.ts'
import { insertResource } from '../resources/write-resource.ts'
import { lbMemberKind } from './lb-member.ts'
import { type LbPool, lbPoolKind } from './lb-pool.ts'

const MEMBERS_MAX = 200

/** What a request may give for the members of a pool that it makes. */
export const membersSchema = () => listOf(Type.Object(bodyOf(lbMemberKind, true).properties), MEMBERS_MAX)

async function membersOf(db: Executor, asker: Pick<Editor, 'hub' | 'companyId'>, pool: LbPool): Promise<Values[]> {
  const found = await db.execute<{ id: string }>(sql`
    select id from lb_members where pool_id = ${pool.id} and deleted_at is null order by lower(name), id`)
  const ids = found.map(row => row.id)
  const rows = new Map((await rowsOfIds(lbMemberKind as Kind, db, asker.companyId, ids)).map(row => [row.id, row]))
  return presentList(
    lbMemberKind as Kind,
    asker,
    ids.flatMap(id => rows.get(id) ?? []),
  )
}

export const poolKind: Kind<LbPool> = {
  ...lbPoolKind,
  derived: {
    ...lbPoolKind.derived,
    show: { ...lbPoolKind.derived.show, members: listed(listResponse(lbMemberKind)) },
  },
  hooks: {
    ...lbPoolKind.hooks,
    async derive(db, asker, rows, isShow, made) {
      const derived = (await lbPoolKind.hooks.derive?.(db, asker, rows, isShow, made)) ?? new Map<string, Values>()
      const [pool] = rows
      if (!isShow || pool === undefined) return derived
      return new Map([[pool.id, { ...derived.get(pool.id), members: await membersOf(db, asker, pool) }]])
    },
  },
}

/** Runs `act`, whose faults are named as those of a part: `members.2.port`. */
async function within<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!(error instanceof ApiError) || !error.more.errors) throw error
    const errors = Object.fromEntries(
      Object.entries(error.more.errors).map(([field, texts]) => [
        field === 'limit' ? field : `${path}.${field}`,
        texts,
      ]),
    )
    throw new ApiError(error.status, error.code, error.text, { ...error.more, errors })
  }
}

/** Makes a pool and its members, all or nothing. Throws 422. */
export async function createPool(
  tx: Tx,
  editor: Editor,
  deviceId: string,
  body: Unchecked & { readonly members?: readonly unknown[] },
) {
  const { members = [], ...given } = body
  const values = await parseForm(lbPoolKind, 'create', given)
  const pool = await insertResource(tx, lbPoolKind, editor, values, { parentId: deviceId })
  for (const [index, member] of members.entries())
    await within(`members.${index}`, async () => {
      const form = await parseForm(lbMemberKind, 'create', member)
      await insertResource(tx, lbMemberKind, editor, form, { parentId: pool.id })
    })
  return pool.id
}
