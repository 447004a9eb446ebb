// A handler's result with a status or headers of its own: 304, an ETag, a Location.

export class Reply<T = unknown> {
  constructor(
    /** The body; undefined for a response without one. */
    readonly body: T,
    readonly more: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> },
  ) {}
}

/** The ETag of what has a version. */
export const versionTag = ({ version }: { readonly version: number | string | bigint }): string => `"${version}"`

/** True when the If-None-Match of a request names the tag, strong or weak: who asks has it. */
export const isKnown = (request: { header(name: string): string | null }, known: string): boolean =>
  (request.header('if-none-match') ?? '')
    .split(',')
    .some(tag => tag.trim().replace(/^W\//, '') === known || tag.trim() === '*')

/** Answers 304, for who has what the tag stands for. */
export const notModified = (tag: string): Reply<undefined> =>
  new Reply(undefined, { status: 304, headers: { ETag: tag } })
