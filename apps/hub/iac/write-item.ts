// What applying does to the resource of one item, and to its binding (resources.md ). A plan tries the same
// writes out, so that it finds what they would refuse.
import { and, eq } from 'drizzle-orm'
import { iacBindings, type iacItems } from '../platform/db/schema-iac.ts'
import { addedReferences, changedReferences } from './kept-references.ts'
import type { ManifestKind, Writing } from './kinds/manifest-kind.ts'
import { findNames } from './resolve-names.ts'
import { compareAgain } from './stale-item.ts'

export type WrittenItem = Pick<
  typeof iacItems.$inferSelect,
  'companyId' | 'kind' | 'name' | 'action' | 'spec' | 'resourceId' | 'baseVersion' | 'diffHash'
> & {
  /** Null while it is tried out. */
  readonly runId: string | null
}

/** The item cannot be applied, for a reason that people are told. */
export class ItemFailure extends Error {}
/** The resource changed since it was planned. */
export class StaleItem extends ItemFailure {
  constructor(
    message: string,
    /** What is there now. */
    readonly resourceId: string | null,
  ) {
    super(message)
  }
}

/** Ties the name of a manifest to its resource. */
export async function bind(writing: Writing, kind: ManifestKind, item: WrittenItem, resourceId: string): Promise<void> {
  const row = {
    resourceKind: kind.resourceKind,
    resourceId,
    appliedSpec: item.spec ?? {},
    runId: item.runId,
    // What it drifted before is looked at again.
    isStale: true,
    updatedAt: new Date(writing.hub.now()),
  }
  await writing.tx.db
    .insert(iacBindings)
    .values({ companyId: item.companyId, kind: item.kind, slug: item.name, ...row })
    .onConflictDoUpdate({ target: [iacBindings.companyId, iacBindings.kind, iacBindings.slug], set: row })
}

async function write(writing: Writing, kind: ManifestKind, item: WrittenItem): Promise<string | null> {
  const references = item.spec === null ? [] : kind.referencesOf(item.spec)
  const find = await findNames(writing, references, new Map())
  const missing = references.filter(({ kind, name, isOptional }) => !isOptional && !find(kind, name))
  const { existing, now, staleText } = await compareAgain(writing, kind, item, find)
  const [needed] = [...addedReferences(kind, missing, existing), ...changedReferences(missing, now.diff)]
  if (needed) throw new ItemFailure(`there is no ${needed.kind} ${needed.name}`)
  if (staleText !== null) throw new StaleItem(staleText, existing?.id ?? null)
  switch (now.action) {
    case 'create':
      return kind.create(writing, now.whole, find, item.name)
    case 'update': {
      const changed = new Set(now.diff.map(({ field }) => field.split('.')[0] ?? field))
      if (existing) await kind.update(writing, existing, changed, now.whole, find)
      return existing?.id ?? null
    }
    case 'delete':
      if (existing) await kind.remove(writing, existing)
      return existing?.id ?? null
    case 'none':
      return existing?.id ?? null
  }
}

/**
 * Does what an item says, in the transaction of `writing`. Returns the id of its resource. Throws ItemFailure, and what
 * the API would answer.
 */
export async function writeItem(writing: Writing, kind: ManifestKind, item: WrittenItem): Promise<string | null> {
  const resourceId = await write(writing, kind, item)
  if (item.action === 'delete')
    await writing.tx.db
      .delete(iacBindings)
      .where(
        and(
          eq(iacBindings.companyId, item.companyId),
          eq(iacBindings.kind, item.kind),
          eq(iacBindings.slug, item.name),
        ),
      )
  else if (resourceId !== null) await bind(writing, kind, item, resourceId)
  return resourceId
}
