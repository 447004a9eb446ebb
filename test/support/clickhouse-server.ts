// The HTTP interface of a ClickHouse server over the engine of this process, as far as @clickhouse/client uses it here:
// so that the server form of the store is tried with real statements, real blocks and a real network that can go away.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseError } from '@clickhouse/client'
import { openChdb } from '../../apps/collector/store/clickhouse/chdb-connection.ts'
import { CLUSTER_SETTINGS } from '../../apps/collector/store/clickhouse/cluster.ts'
import { embeddedEngineConfig } from '../../apps/collector/store/clickhouse/samples-engine-config.ts'
import { engineDirectory } from './clickhouse.ts'

const INSERT = /^(INSERT INTO \S+) (SETTINGS .*) FORMAT Native\s*$/s

/** A cluster that the engine has when it is asked for: one shard, which is the engine itself. */
export const TEST_CLUSTER = 'own'
const CLUSTER_XML = `<tcp_port>9000</tcp_port><remote_servers><${TEST_CLUSTER}><shard>
  <internal_replication>true</internal_replication><replica><host>127.0.0.1</host><port>9000</port></replica>
</shard></${TEST_CLUSTER}></remote_servers>`

/** The engine of this process has no coordinator (Keeper): statements of all nodes and replication are left out. */
const withoutCoordinator = (sql: string): string =>
  sql
    .replaceAll(` ON CLUSTER '${TEST_CLUSTER}'`, '')
    .replaceAll(
      /Replicated(\w*MergeTree)\('[^']*', '\{replica\}'(?:, (\w+))?\)/g,
      (_, engine, version = '') => `${engine}(${version})`,
    )

function engineConfig(hasCluster: boolean): string[] {
  const args = embeddedEngineConfig(engineDirectory)
  if (!hasCluster) return args
  const file = join(engineDirectory, 'engine.xml')
  writeFileSync(file, readFileSync(file, 'utf8').replace('</clickhouse>', `${CLUSTER_XML}</clickhouse>`))
  // The engine of this process takes settings at its start alone; that requests bring them is checked below.
  // It has no port: its own shard is asked without one.
  const settings = { ...CLUSTER_SETTINGS, prefer_localhost_replica: 1 }
  return [...args, ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`)]
}

/** Starts it on a port (0 for a free one). `refuse` makes every answer a 500, as a server in trouble does. */
export function startClickHouseServer(port: number, { hasCluster = false } = {}) {
  const { connection, close } = openChdb(engineDirectory, engineConfig(hasCluster))
  let blockCount = 0

  async function run(asked: string, params: Record<string, string>, body: Uint8Array): Promise<Uint8Array> {
    const sql = hasCluster ? withoutCoordinator(asked) : asked
    const insert = INSERT.exec(sql)
    if (!insert) {
      const { stream } = await connection.query({ query: sql, query_params: params })
      const chunks: Uint8Array[] = []
      for await (const chunk of stream) if (chunk instanceof Uint8Array) chunks.push(chunk)
      return Buffer.concat(chunks)
    }
    const file = join(engineDirectory, `body-${++blockCount}.native`)
    writeFileSync(file, body)
    try {
      await connection.command({ query: `${insert[1]} SELECT * FROM file('${file}', Native) ${insert[2]}` })
      return new Uint8Array(0)
    } finally {
      rmSync(file, { force: true })
    }
  }

  const server = Bun.serve({
    port,
    hostname: '127.0.0.1',
    fetch: async request => {
      const url = new URL(request.url)
      if (url.pathname === '/ping') return new Response('Ok.\n')
      const params: Record<string, string> = {}
      const isForm = request.headers.get('content-type')?.startsWith('multipart/form-data') ?? false
      const form = isForm ? [...(await request.formData())] : []
      const body = isForm ? new Uint8Array(0) : new Uint8Array(await request.arrayBuffer())
      for (const [name, value] of [...url.searchParams, ...form])
        if (name.startsWith('param_')) params[name.slice(6)] = String(value)
      const lacking = Object.entries(CLUSTER_SETTINGS).find(
        ([name, value]) => url.searchParams.get(name) !== `${value}`,
      )
      if (hasCluster && lacking) return new Response(`no setting ${lacking[0]}`, { status: 500 })
      const query = url.searchParams.get('query') ?? form.find(([name]) => name === 'query')?.[1].toString()
      try {
        const result = await run(query ?? new TextDecoder().decode(body), params, body)
        return new Response(Buffer.from(result), { headers: { 'x-clickhouse-summary': '{}' } })
      } catch (error) {
        const fault = parseError(error instanceof Error ? error : String(error))
        const code = 'code' in fault ? String(fault.code) : '1001'
        const text = `Code: ${code}. DB::Exception: ${fault.message}. (${'type' in fault ? String(fault.type) : 'UNKNOWN'})`
        return new Response(text, { status: 500, headers: { 'x-clickhouse-exception-code': code } })
      }
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    stop: async () => {
      await server.stop(true)
      close()
    },
  }
}
