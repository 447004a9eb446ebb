// What the process of an import is told, and what it answers (MAT-073): JSON through its pipes.

/** The hidden command that runs one job. */
export const WORKER_COMMAND = 'db-import-worker'

/** One file of a source: fetched or given. */
export type InputPart = {
  readonly part: string
  readonly url: string
  readonly path: string
  /** What the file was called where it came from: some formats are told by it. */
  readonly fileName: string
  readonly etag: string
  readonly lastModified: string
  readonly sha256: string
}

export type SourceInput = {
  readonly source: string
  readonly parts: readonly InputPart[]
  /**
   * `part`: each part replaces the rows of that part; `all`: the source is this and nothing else; `changes`: only the
   * vulnerabilities that occur in it, and `deleted`, are replaced.
   */
  readonly replaces: 'part' | 'all' | 'changes'
  readonly deleted?: readonly string[]
}

export type BuildJob = {
  readonly kind: 'build'
  readonly inputs: readonly SourceInput[]
  readonly outFile: string
  readonly stagingFile: string
  readonly previousFile: string | null
  readonly version: number
  readonly nowMs: number
  readonly acceptShrink: boolean
}

/** Unpacks a bundle, or takes a database file, and looks at every row of it. */
export type UnpackJob = {
  readonly kind: 'unpack'
  readonly bundleFile: string
  readonly outFile: string
  readonly publicKeyPem: string | null
  readonly bytesMax: number
}

export type ImportJob = BuildJob | UnpackJob

export type SourceOutcome = {
  readonly source: string
  readonly records: number
  readonly rejected: number
  readonly seconds: number
  /** Why the source is refused and keeps its rows of before; null when it was taken. */
  readonly fault: string | null
}

export type BuildOutcome = { readonly kind: 'build'; readonly sources: readonly SourceOutcome[] }
export type UnpackOutcome = { readonly kind: 'unpack'; readonly version: number; readonly keyId: string }

export type WorkerMessage =
  | { readonly progress: { readonly source: string; readonly records: number } }
  | { readonly outcome: BuildOutcome | UnpackOutcome }
  /** Why nothing came of it, for the operator. */
  | { readonly failure: string }
