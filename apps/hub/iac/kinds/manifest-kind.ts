// What the engine of manifests asks of a kind: the schema of its spec, how a resource is found and read in the words of
// a spec, and how it is created, changed and deleted. A kind speaks of other resources by name, as manifests do; ids
// are found when it writes.
import type { TObject } from '@sinclair/typebox'
import type { WholeFields } from '../../../../core/iac/spec-diff.ts'
import type { Unchecked } from '../../../../core/json-object.ts'
import type { Hub } from '../../hub-context.ts'
import type { Executor } from '../../platform/db/connect.ts'
import type { Tx } from '../../platform/db/transaction.ts'
import type { Words } from '../../platform/http/api-texts.ts'
import type { RouteContext } from '../../platform/http/route.ts'

/** A resource as it is. */
export type Existing = {
  readonly id: string
  /** Its display name. */
  readonly name: string
  /** Raised by every change; 0 for a kind that counts none. */
  readonly version: number
  /** Every field that a manifest can give. */
  readonly spec: Unchecked
}

export type Reference = {
  readonly kind: string
  readonly name: string
  /** Where it stands in the spec. */
  readonly at: readonly (string | number)[]
  /** What no resource is called stays a text. */
  readonly isOptional?: true
}

/** Finds what a name means in a company; the display name for what is not there yet. */
export type NameFinder = (kind: string, name: string) => { readonly id: string | null; readonly name: string } | null

/** Where resources are read: a company, in a transaction or outside. */
export type Reading = { readonly hub: Hub; readonly db: Executor; readonly companyId: string }

/** A write for a person, in the transaction of an item: what `context` leads to is part of it. */
export type Writing = Reading & {
  readonly context: RouteContext
  readonly tx: Tx
  /** Of what will be undone: how many parts may still be written. What refuses nothing is left out. */
  readonly trial: { partsLeft: number } | null
}

/** A trial has written as many parts as it may; the rest shows when it is applied. */
export class TrialLimit extends Error {}

/** Counts a part that is about to be written. Throws TrialLimit. */
export function countPart({ trial }: Writing): void {
  if (trial === null) return
  if (trial.partsLeft === 0) throw new TrialLimit()
  trial.partsLeft--
}

export type ExportFilter = {
  readonly name?: string | undefined
  /** The resource that the manifest of this name is bound to. */
  readonly boundId?: string | undefined
  readonly tag?: string | undefined
  readonly origin?: string | undefined
}
export type Range = { readonly limit: number; readonly offset: number }

export type Named = { readonly id: string; readonly name: string }
export type Asked = { readonly ids: readonly string[]; readonly names: readonly string[] }

export type ManifestKind = {
  readonly kind: string
  readonly title: string
  /** The place in the order of applying, from 1. */
  readonly order: number
  /** What bindings, the audit log and references call it. */
  readonly resourceKind: string
  readonly permissions: { readonly view: string; readonly manage: string; readonly delete?: string }
  /** Kinds that it may refer to. */
  readonly dependsOn: readonly string[]
  readonly spec: TObject
  /** A spec whose fields may be called as the API calls them, in the names of manifests. */
  readonly inManifestNames?: (spec: Unchecked) => Unchecked
  /** What a field that an earlier manifest gave goes back to. */
  readonly defaults: Unchecked
  /** The same for fields whose default follows from others of the resource. */
  readonly usual?: (spec: Unchecked) => Unchecked
  readonly whole?: WholeFields
  /** Fields that only requests may give. */
  readonly secrets?: readonly string[]
  /** The names that its manifests may have, where these are fixed; any slug otherwise. */
  readonly slugs?: { readonly values: readonly string[]; readonly isOne: (slug: string) => boolean }
  /** False for a kind of which several may have one name. */
  readonly isNameUnique: boolean
  readonly referencesOf: (spec: Unchecked) => readonly Reference[]
  /** Its parts, which other manifests may name. */
  readonly partsOf?: (spec: Unchecked) => readonly { readonly kind: string; readonly name: string }[]
  /** The spec of a manifest in the form that `Existing.spec` has. */
  readonly normal: (spec: Unchecked, find: NameFinder) => Unchecked
  /** What is wrong in how a spec was written, by field, which its normal form no longer shows. */
  readonly writtenFaults?: (spec: Unchecked) => ReadonlyMap<string, Words>
  /** The place in a spec of a field as the API names it, where it has another name there. */
  readonly specField?: (field: string) => string
  /** The place of a fault in a spec as it was written, where a member may be written in several ways. */
  readonly writtenPlace?: (place: readonly string[], spec: Unchecked) => readonly string[]
  /** What needs no write to be refused, by field; `spec` is whole, as it will be. */
  readonly faults: (reading: Reading, spec: Unchecked, existing: Existing | null) => Promise<ReadonlyMap<string, Words>>
  /** Ids and display names of those that have one of the ids or, regardless of case, of the names. */
  readonly names: (reading: Reading, asked: Asked) => Promise<Named[]>
  /** The next ids and display names of those that `list` has without a filter; `after` is the last one before them. */
  readonly namesAfter: (reading: Reading, after: Named | null, limit: number) => Promise<Named[]>
  readonly byIds: (reading: Reading, ids: readonly string[]) => Promise<Existing[]>
  /** What a manifest without binding may mean, the best first. */
  readonly candidates: (reading: Reading, spec: Unchecked, slug: string) => Promise<Existing[]>
  readonly list: (reading: Reading, filter: ExportFilter, range: Range) => Promise<Existing[]>
  readonly count: (reading: Reading, filter: ExportFilter) => Promise<number>
  /** Returns the id. */
  readonly create: (writing: Writing, spec: Unchecked, find: NameFinder, slug: string) => Promise<string>
  /** `changed` is what differs; `spec` is whole. */
  readonly update: (
    writing: Writing,
    existing: Existing,
    changed: ReadonlySet<string>,
    spec: Unchecked,
    find: NameFinder,
  ) => Promise<void>
  readonly remove: (writing: Writing, existing: Existing) => Promise<void>
}
