// Work of the clock on rows of many companies.
import type { Hub } from '../hub-context.ts'

type Due = { readonly id: string; readonly company_id: string }

/**
 * Acts on one row after the other. One that fails is logged as `failure`, is due again, and holds up nobody else's.
 */
export async function eachAlone<T extends Due>(
  hub: Pick<Hub, 'log'>,
  failure: string,
  due: readonly T[],
  act: (row: T) => Promise<unknown>,
): Promise<void> {
  for (const row of due)
    try {
      await act(row)
    } catch (error) {
      hub.log.error({ err: error, id: row.id, companyId: row.company_id }, failure)
    }
}
