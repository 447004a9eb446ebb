// Where the files of worker threads are. A compiled executable holds them below its own root by their path in the
// sources, and only the entry file knows that root: it hands in its `import.meta.url`.

const COMPILED = '/$bunfs/root/'

/** The thread files of the collector, for the entry file of an executable. */
export type ThreadFiles = {
  readonly shards: URL
  readonly samples: URL
  readonly listeners: URL
  readonly bus: URL
}

export function threadFiles(entryUrl: string): ThreadFiles {
  const isCompiled = entryUrl.includes(COMPILED)
  const root = isCompiled ? new URL('./', entryUrl) : entryUrl.slice(0, entryUrl.lastIndexOf('/apps/') + 1)
  return {
    shards: new URL('apps/collector/worker/evaluation/shard-thread.ts', root),
    samples: new URL('apps/collector/worker/samples/samples-thread.ts', root),
    listeners: new URL('apps/collector/ingest/listener/listener-thread.ts', root),
    bus: new URL('apps/collector/bus/bus-thread.ts', root),
  }
}
