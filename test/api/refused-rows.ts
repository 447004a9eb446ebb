// Tables of requests that are refused: the status, and the field that the error names.
import { expect } from 'bun:test'
import type { Json, Tenant } from './hub-harness.ts'

/** A field of null: the error names none. */
export type RefusedRow = readonly [method: string, path: string, body: unknown, status: number, field: string | null]

/** Makes every request; what was answered otherwise stands in one list. */
export async function expectRefused(tenant: Tenant, rows: readonly RefusedRow[]): Promise<void> {
  const others: Json[] = []
  for (const [method, path, body, status, field] of rows) {
    const answer = await tenant.call(method, path, body)
    const fields = Object.keys(answer.body?.errors ?? {})
    const isTold = field === null || fields.includes(field)
    if (answer.status !== status || !isTold) others.push({ method, path, body, status: answer.status, fields })
  }
  expect(others).toEqual([])
}
