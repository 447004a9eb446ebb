// What is known of every kind of resource without its code: how to find what names another, who may view it, what its
// conditions are called. The hub hands it to every part (hub-context.ts), so it knows no other file of the hub.

/** A text in both languages; `{name}` stands for a value. */
export type BothLanguages = { readonly en: string; readonly vi: string }

export type ConditionSeverity = 'info' | 'warning' | 'critical'
export type ConditionText = { readonly severity: ConditionSeverity; readonly text: BothLanguages }

/** A field whose value names a resource of another kind. */
export type Reference = {
  readonly field: string
  /** The kind that is named; null when another column has the kind. */
  readonly to: string | null
  /** The column with the id, or with a list of ids. */
  readonly column: string
  readonly isList?: true
  /** The column with the kind of what is named. */
  readonly kindColumn?: string
  /** The column is text, so that it may hold anything else too. */
  readonly isText?: true
  /** The column has the text of an address, which may be nobody's: a row is a referrer, and names nothing unknown. */
  readonly isAddress?: true
  /** Only rows in which a column has one of these values name anything. */
  readonly among?: { readonly column: string; readonly values: readonly string[] }
}

export type KindInfo = {
  /** The singular name in audit, search, IaC and references. */
  readonly kind: string
  readonly title: { readonly one: BothLanguages; readonly many: BothLanguages }
  /** The path of the collection below /api/v1. */
  readonly path: string
  readonly table: string
  /** The column whose value stands in the path, where one alone cannot be shown. */
  readonly pathColumn?: string
  /** No trigger keeps a document of each row for search. */
  readonly withoutDocuments?: true
  /** The column that shows which one it is. */
  readonly nameColumn: string
  readonly permissions: { readonly view: string; readonly manage: string }
  readonly references: readonly Reference[]
  /** The columns with the host or URL under which it is reached, the first that has one counts. */
  readonly addressColumns: readonly string[]
  readonly conditions: Readonly<Record<string, ConditionText>>
  /** The kind of what it is a part of, and the column with its id. */
  readonly parent: { readonly kind: string; readonly column: string } | null
  /** Whether rows have the common columns (version, health, conditions, trash). */
  readonly isResource: boolean
}

/** The kinds that a hub knows, by name. */
export type Kinds = ReadonlyMap<string, KindInfo>

export const kindsOf = (infos: readonly KindInfo[]): Kinds => new Map(infos.map(info => [info.kind, info]))
