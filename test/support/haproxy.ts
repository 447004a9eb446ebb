// A real HAProxy on free ports of 127.0.0.1, and before it a front that speaks its Data Plane API, which Debian does
// not have: the configuration as it was written, all else asked of the runtime socket of the process.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './until.ts'

type ServerOfTest = {
  readonly name: string
  readonly port: number
  readonly backup?: boolean
  readonly weight?: number
}
type Setup = {
  readonly pools: Readonly<Record<string, readonly ServerOfTest[]>>
  readonly frontends: readonly { readonly name: string; readonly port: number; readonly pool: string }[]
}
type HaproxyOfTest = {
  /** The address of the Data Plane API, of its version 3 or 2. */
  readonly url: string
  /** How often the API was asked to change something. */
  readonly writes: () => number
  /** While true the API answers 500. */
  fails(isFailing: boolean): void
  /** One command of the runtime socket. */
  ask(command: string): Promise<string>
  stop(): Promise<void>
}

function configOf(socket: string, { pools, frontends }: Setup): string {
  const lines = ['global', `  stats socket ${socket} mode 600 level admin`, 'defaults', '  mode http']
  lines.push('  timeout connect 1s', '  timeout client 5s', '  timeout server 5s', '  default-server check inter 100ms')
  for (const { name, port, pool } of frontends)
    lines.push(`frontend ${name}`, `  bind 127.0.0.1:${port}`, `  default_backend ${pool}`)
  for (const [name, servers] of Object.entries(pools)) {
    lines.push(`backend ${name}`, '  balance leastconn')
    for (const server of servers)
      lines.push(
        `  server ${server.name} 127.0.0.1:${server.port} weight ${server.weight ?? 1}${server.backup ? ' backup' : ''}`,
      )
  }
  return `${lines.join('\n')}\n`
}

function askSocket(socket: string, command: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const chunks: string[] = []
  Bun.connect({
    unix: socket,
    socket: {
      open: connection => void connection.write(`${command}\n`),
      data: (_, chunk) => void chunks.push(chunk.toString()),
      close: () => resolve(chunks.join('')),
      error: (_, error) => reject(error),
    },
  }).catch(reject)
  return promise
}

const rowsOf = (table: string, separator: string): Record<string, string>[] => {
  const [head = '', ...lines] = table.split('\n').filter(line => line.includes(separator))
  const names = head.replace(/^# /, '').split(separator)
  return lines.map(line => Object.fromEntries(line.split(separator).map((value, index) => [names[index] ?? '', value])))
}

/** What the API calls a section of defaults without a name. */
const DEFAULTS = 'unnamed_defaults_1'

const MAINTENANCE_BITS = 0x07
const DRAIN_BITS = 0x18
const adminState = (bits: number): string => (bits & MAINTENANCE_BITS ? 'maint' : bits & DRAIN_BITS ? 'drain' : 'ready')

/** What the API answers below `/services/haproxy/`; null for what it does not have. */
async function answerOf(path: string, setup: Setup, ask: HaproxyOfTest['ask'], body: unknown): Promise<unknown> {
  const [area, section, name, part, server] = path.split('/')
  if (area === 'stats')
    return {
      stats: rowsOf(await ask('show stat'), ',')
        .filter(row => row.type === '2')
        .map(row => ({
          name: row.svname,
          backend_name: row.pxname,
          type: 'server',
          stats: { status: row.status, scur: Number(row.scur) },
        })),
    }
  if (area === 'runtime' && part === 'servers') {
    const state = (body as { admin_state?: string } | null)?.admin_state
    if (state) await ask(`set server ${name}/${server} state ${state}`)
    const servers = rowsOf((await ask(`show servers state ${name}`)).replace(/^1\n/, ''), ' ').map(row => ({
      name: row.srv_name,
      admin_state: adminState(Number(row.srv_admin_state)),
    }))
    return server ? servers.find(each => each.name === server) : servers
  }
  if (section === 'defaults') return [{ name: DEFAULTS, mode: 'http' }]
  if (section === 'frontends' && part === 'binds')
    return setup.frontends.filter(each => each.name === name).map(({ port }) => ({ address: '127.0.0.1', port }))
  if (section === 'frontends')
    return setup.frontends.map(each => ({ name: each.name, from: DEFAULTS, default_backend: each.pool }))
  if (part === 'servers')
    return (setup.pools[name ?? ''] ?? []).map(each => ({
      name: each.name,
      address: '127.0.0.1',
      port: each.port,
      weight: each.weight ?? 1,
      ...(each.backup ? { backup: 'enabled' } : {}),
    }))
  return section === 'backends'
    ? Object.keys(setup.pools).map(each => ({ name: each, from: DEFAULTS, balance: { algorithm: 'leastconn' } }))
    : null
}

/** The path of version 3 for one of version 2: the section was a parameter there. */
function pathOf(url: URL, version: number): string {
  const path = url.pathname.replace(`/v${version}/services/haproxy/`, '')
  if (version === 3) return path
  const [area = '', list = '', ...one] = path.split('/')
  if (list === 'named_defaults') return `${area}/defaults`
  for (const section of ['backend', 'frontend']) {
    const parent = url.searchParams.get(section)
    if (parent !== null) return [area, `${section}s`, parent, list, ...one].join('/')
  }
  return path
}

export async function startHaproxy(
  folder: string,
  setup: Setup,
  { version = 3, password = 'pass' }: { readonly version?: 2 | 3; readonly password?: string } = {},
): Promise<HaproxyOfTest> {
  mkdirSync(folder, { recursive: true })
  const [socket, file] = [join(folder, 'haproxy.sock'), join(folder, 'haproxy.cfg')]
  writeFileSync(file, configOf(socket, setup))
  const child = Bun.spawn(['haproxy', '-db', '-f', file], {
    stdout: 'ignore',
    stderr: 'ignore',
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
  })
  const ask = (command: string): Promise<string> => askSocket(socket, command)
  await until('HAProxy answers', () =>
    ask('show info').then(
      text => text.includes('Version'),
      () => false,
    ),
  )
  let writes = 0
  let isFailing = false
  const allowed = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`
  const front = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const url = new URL(request.url)
      if (request.headers.get('authorization') !== allowed) return new Response('no', { status: 401 })
      if (isFailing) return new Response('no', { status: 500 })
      if (url.pathname === `/v${version}/info`) return Response.json({ api: {} })
      if (!url.pathname.startsWith(`/v${version}/services/haproxy/`)) return new Response('no', { status: 404 })
      if (request.method !== 'GET') writes++
      const body = request.method === 'GET' ? null : await request.json()
      const answer = await answerOf(pathOf(url, version), setup, ask, body)
      if (answer === null || answer === undefined) return new Response('no', { status: 404 })
      return Response.json(version === 3 ? answer : Array.isArray(answer) ? { _version: 1, data: answer } : [answer])
    },
  })
  return {
    url: `http://127.0.0.1:${front.port}`,
    writes: () => writes,
    fails: next => {
      isFailing = next
    },
    ask,
    async stop() {
      await front.stop(true)
      child.kill('SIGTERM')
      await child.exited
    },
  }
}
