// A handler's result with a status or headers of its own: 304, an ETag, a Location.

export class Reply<T = unknown> {
  constructor(
    /** The body; undefined for a response without one. */
    readonly body: T,
    readonly more: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> },
  ) {}
}
