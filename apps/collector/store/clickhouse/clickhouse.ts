// The samples store: ClickHouse by URL, or the same engine in this process. This file holds every difference between
// the two: how the store is opened, and how a block in Native format is inserted.
import { mkdirSync } from 'node:fs'
import { Readable } from 'node:stream'
import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { openBlockFiles } from './block-files.ts'
import { openChdb } from './chdb-connection.ts'
import { CLUSTER_SETTINGS } from './cluster.ts'
import { isClusterName, isDatabaseName } from './database-name.ts'
import { embeddedEngineConfig } from './samples-engine-config.ts'

const REQUEST_TIMEOUT_MS = 30_000
const EMBEDDED = 'embedded:'
/** Errors are thrown and logged by the collector without SQL, so the client itself logs nothing. */
const SILENT = { level: ClickHouseLogLevel.OFF }

export type QueryParams = Readonly<
  Record<string, string | number | readonly string[] | readonly number[] | readonly bigint[]>
>

export type ClickHouse = {
  readonly database: string
  readonly isEmbedded: boolean
  /** The cluster whose nodes hold the tables; null for one server, or the engine in this process. */
  readonly cluster: string | null
  /** Rows of a statement, each an array in the order of its columns. */
  rows(sql: string, params?: QueryParams): Promise<unknown[][]>
  /** Rows of a statement as blocks in Native format (core/samples/block/native-reader.ts). */
  blocks(sql: string, params?: QueryParams): Promise<Uint8Array>
  /** The same for a statement that may take long: other reads do not wait for it. */
  scan(sql: string, params?: QueryParams): Promise<Uint8Array>
  /** Runs a statement without result. It may take long: neither reads nor inserts wait for it. */
  command(sql: string, params?: QueryParams): Promise<void>
  /** Inserts a block. The same `token` a second time changes nothing (within the table's window of blocks). */
  insertBlock(table: string, block: Uint8Array, token: string): Promise<void>
  close(): Promise<void>
}

type ClickHouseOptions = {
  /** `embedded:DIR` or the URL of a server. */
  readonly url: string
  readonly database: string
  /** Of a server only. */
  readonly cluster?: string | null
}

/** Opens the store. Throws when the embedded engine cannot start; a server is not contacted yet. */
export function openClickHouse(options: ClickHouseOptions): ClickHouse {
  if (!isDatabaseName(options.database)) throw new Error('clickhouse.database must be a plain identifier')
  if (options.cluster != null && !isClusterName(options.cluster))
    throw new Error('clickhouse.cluster must be a plain name')
  return options.url.startsWith(EMBEDDED)
    ? openEmbedded(options.url.slice(EMBEDDED.length), options.database)
    : openServer(options)
}

/** A fault of the store worth another try: anything but a statement that the engine refuses. */
export const causeOf = (error: unknown): string =>
  error instanceof ClickHouseError
    ? `${error.type ?? 'error'} (code ${error.code})`
    : error instanceof Error
      ? error.message
      : String(error)

function isRows(value: unknown): value is { data: unknown[][] } {
  return typeof value === 'object' && value !== null && 'data' in value && Array.isArray(value.data)
}

function statements(client: ClickHouseClient) {
  return {
    rows: async (sql: string, params?: QueryParams): Promise<unknown[][]> => {
      const result = await client.query({ query: sql, format: 'JSONCompact', query_params: { ...params } })
      const json: unknown = await result.json()
      if (!isRows(json)) throw new Error('the samples store answered in an unknown form')
      return json.data
    },
    blocks: async (sql: string, params?: QueryParams): Promise<Uint8Array> => {
      const { stream } = await client.exec({ query: `${sql} FORMAT Native`, query_params: { ...params } })
      const chunks: Uint8Array[] = []
      for await (const chunk of stream) chunks.push(chunk)
      return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
    },
    command: async (sql: string, params?: QueryParams): Promise<void> => {
      await client.command({ query: sql, query_params: { ...params } })
    },
  }
}

const insertSettings = (token: string): string =>
  `SETTINGS insert_deduplication_token = '${token}', optimize_on_insert = 0, max_insert_threads = 1, max_threads = 1`

function openServer({ url, database, cluster = null }: ClickHouseOptions): ClickHouse {
  const client = createClient({
    url,
    log: SILENT,
    request_timeout: REQUEST_TIMEOUT_MS,
    max_open_connections: 8,
    compression: { request: false, response: false },
    // Long lists of parameters are sent in the body, since proxies truncate long addresses.
    use_multipart_params_auto: true,
    clickhouse_settings: {
      output_format_json_quote_64bit_integers: 0,
      wait_end_of_query: 1,
      ...(cluster === null ? {} : CLUSTER_SETTINGS),
    },
  })
  const { rows, blocks, command } = statements(client)
  return {
    database,
    isEmbedded: false,
    cluster,
    rows,
    blocks,
    scan: blocks,
    command,
    insertBlock: async (table, block, token) => {
      const values = Readable.from([Buffer.from(block.buffer, block.byteOffset, block.byteLength)], {
        objectMode: false,
      })
      const query = `INSERT INTO ${database}.${table} ${insertSettings(token)} FORMAT Native`
      const result = await client.exec({ query, values })
      for await (const _ of result.stream);
    },
    close: () => client.close(),
  }
}

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/**
 * Connections to the engine in this process. Each runs one statement at a time, so long statements, inserts and reads
 * have connections of their own.
 */
function openLane(directory: string, count: number) {
  const members = Array.from({ length: count }, () => {
    const { connection } = openChdb(directory, embeddedEngineConfig(directory))
    const client = createClient({ connection, log: SILENT })
    return { client, ...statements(client), waiting: 0 }
  })
  const running = new Set<Promise<unknown>>()
  let isClosed = false
  /** Runs a statement on the connection with the fewest pending statements. */
  function run<T>(act: (member: (typeof members)[number]) => Promise<T>): Promise<T> {
    // A statement on a connection that is closed would crash the process, as would closing one whose statement runs.
    if (isClosed) return Promise.reject(new Error('the samples store is closed'))
    const member = members.reduce((least, each) => (each.waiting < least.waiting ? each : least))
    member.waiting++
    const work = act(member).finally(() => {
      member.waiting--
      running.delete(work)
    })
    running.add(work)
    return work
  }
  return {
    rows: (sql: string, params?: QueryParams) => run(member => member.rows(sql, params)),
    blocks: (sql: string, params?: QueryParams) => run(member => member.blocks(sql, params)),
    command: (sql: string, params?: QueryParams) => run(member => member.command(sql, params)),
    close: async () => {
      isClosed = true
      await Promise.allSettled(running)
      for (const { client } of members) await client.close()
    },
  }
}

const READERS = 2

function openEmbedded(directory: string, database: string): ClickHouse {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const reads = openLane(directory, READERS)
  const inserts = openLane(directory, 1)
  const works = openLane(directory, 1)
  const files = openBlockFiles(directory)
  return {
    database,
    isEmbedded: true,
    cluster: null,
    rows: reads.rows,
    blocks: reads.blocks,
    scan: works.blocks,
    command: works.command,
    insertBlock: async (table, block, token) => {
      const file = files.write(block)
      try {
        await inserts.command(
          `INSERT INTO ${database}.${table} SELECT * FROM file(${quoted(file.path)}, Native) ${insertSettings(token)}`,
        )
      } catch (error) {
        files.remove(file)
        throw error
      }
      files.release(file)
    },
    close: async () => {
      await Promise.all([reads.close(), inserts.close(), works.close()])
      files.close()
    },
  }
}
