// The embedded engine as a connection of @clickhouse/client: one Session of chdb, which also takes the engine's own
// configuration. `chdb/connection` is not used, since a compiled executable cannot resolve it and it takes no
// configuration.
import { dlopen } from 'bun:ffi'
import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { type ClickHouseClientConfigOptions, parseError } from '@clickhouse/client'
import type { Session, SessionOptions } from 'chdb'

type Connection = NonNullable<ClickHouseClientConfigOptions['connection']>
type SessionClass = new (path?: string, options?: SessionOptions) => Session
type Statement = Parameters<Connection['query']>[0]

/**
 * The runtime stops a thread in the middle of compiled code by a fault that it handles itself (SIGSEGV). Left alone the
 * engine puts its own handlers in that place, takes such a stop for a crash, and refuses every statement from then on:
 * "The server is shutting down due to a fatal error". To be said before the first connection is opened.
 */
function leaveSignalsToRuntime(require: NodeJS.Require): void {
  const fromChdb = createRequire(require.resolve('chdb'))
  const libc = process.platform === 'linux' ? '-gnu' : ''
  const folder = dirname(fromChdb.resolve(`@chdb/lib-${process.platform}-${process.arch}${libc}`))
  const library = dlopen(join(folder, 'chdb_node.node'), {
    chdb_set_signal_handlers_enabled: { args: ['i32'], returns: 'void' },
  })
  library.symbols.chdb_set_signal_handlers_enabled(0)
}

/** In a compiled executable modules are looked for beside it, since native libraries cannot live inside. */
function requireChdb(): { Session: SessionClass } {
  const isCompiled = import.meta.path.startsWith('/$bunfs/')
  const require = createRequire(isCompiled ? join(dirname(process.execPath), 'x.js') : import.meta.path)
  const found: unknown = require('chdb')
  leaveSignalsToRuntime(require)
  if (typeof found !== 'object' || found === null || !('Session' in found) || typeof found.Session !== 'function')
    throw new Error('cannot open the embedded samples store: the package chdb has no Session')
  return found as { Session: SessionClass }
}

/** The client sets these for its HTTP connection; the engine does not know them. */
const HTTP_ONLY = new Set(['wait_end_of_query', 'http_headers_progress_interval_ms', 'send_progress_in_http_headers'])

function formatOf(statement: Statement): string {
  const named = /\bFORMAT\s+(\w+)\s*;?\s*$/i.exec(statement.query)
  return named?.[1] ?? 'TabSeparated'
}

/** Opens the engine on `directory`; at most one a process. `args` are in the form of clickhouse-local. */
export function openChdb(directory: string, args: readonly string[]): { connection: Connection; close: () => void } {
  const { Session } = requireChdb()
  const session = new Session(directory, { connectionArgs: args })
  const base = () => ({ query_id: randomUUID(), response_headers: {}, http_status_code: 200 })
  const noSummary = {
    read_rows: '0',
    read_bytes: '0',
    written_rows: '0',
    written_bytes: '0',
    result_rows: '0',
    result_bytes: '0',
    total_rows_to_read: '0',
    elapsed_ns: '0',
  }

  const run = async (statement: Statement): Promise<Uint8Array> => {
    for (const name of Object.keys(statement.clickhouse_settings ?? {}))
      if (!HTTP_ONLY.has(name)) throw new Error(`setting ${name} must stand in the statement`)
    const options = { format: formatOf(statement) }
    const params = statement.query_params ?? {}
    try {
      const result =
        Object.keys(params).length > 0
          ? await session.queryBindAsync(statement.query, params, options)
          : await session.queryAsync(statement.query, options)
      return result.bytes()
    } catch (error) {
      throw parseError(error instanceof Error ? error.message : String(error))
    }
  }
  const streamOf = (bytes: Uint8Array) => Readable.from([Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)])

  const connection: Connection = {
    ping: async () => {
      try {
        await run({ query: 'SELECT 1' })
        return { success: true }
      } catch (error) {
        return { success: false, error: error instanceof Error ? error : new Error(String(error)) }
      }
    },
    query: async statement => ({ ...base(), stream: streamOf(await run(statement)) }),
    command: async statement => {
      await run(statement)
      return { ...base(), summary: noSummary }
    },
    exec: async statement => {
      if (statement.values !== undefined) throw new Error('the embedded engine takes blocks from files')
      return { ...base(), summary: noSummary, stream: streamOf(await run(statement)) }
    },
    insert: async () => {
      throw new Error('the embedded engine takes blocks from files')
    },
    close: async () => session.close(),
  }
  return { connection, close: () => session.close() }
}
