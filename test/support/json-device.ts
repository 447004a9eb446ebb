// A device that answers what a test lays down, path by path, and keeps what it is told to change.
type Answers = Record<string, unknown>
/** What the API of NGINX Plus is told of a server. */
type Change = { readonly down?: boolean; readonly drain?: boolean }
export type JsonDevice = {
  readonly url: string
  /** By path, with the query. Text is answered as it is, all else as JSON; 404 where there is nothing. */
  answers: Answers
  /** `PATCH /path {"body":1}` of each call that is no GET. */
  readonly written: string[]
  stop(): Promise<void>
}

export function startJsonDevice(
  answers: Answers,
  onWrite: (path: string, body: Change) => void = () => {},
): JsonDevice {
  const written: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      if (request.method !== 'GET') {
        const body = (await request.json()) as Change
        written.push(`${request.method} ${pathname} ${JSON.stringify(body)}`)
        onWrite(pathname, body)
        return Response.json({})
      }
      const answer = device.answers[`${pathname}${search}`]
      if (answer === undefined) return new Response('no', { status: 404 })
      return typeof answer === 'string' ? new Response(answer) : Response.json(answer)
    },
  })
  const device: JsonDevice = {
    url: `http://127.0.0.1:${server.port}`,
    answers,
    written,
    stop: () => server.stop(true),
  }
  return device
}

type Section = Readonly<Record<string, unknown>> & { readonly name: string }
type Configured = {
  readonly defaults?: readonly Section[]
  readonly backends: readonly (Section & { readonly servers: readonly Section[] })[]
  readonly frontends?: readonly (Section & { readonly binds: readonly object[] })[]
}

/** What the Data Plane API of HAProxy answers, version 3, of servers that are all ready. */
export function dataPlaneResponses({ defaults = [], backends, frontends = [] }: Configured): Answers {
  const root = '/v3/services/haproxy'
  const answers: Answers = {
    '/v3/info': { api: { version: 'v3.0.1' } },
    [`${root}/stats/native?type=server`]: { stats: [] },
    [`${root}/configuration/defaults`]: defaults,
    [`${root}/configuration/backends`]: backends.map(({ servers, ...backend }) => backend),
    [`${root}/configuration/frontends`]: frontends.map(({ binds, ...frontend }) => frontend),
  }
  for (const { name, servers } of backends) {
    answers[`${root}/configuration/backends/${name}/servers`] = servers
    answers[`${root}/runtime/backends/${name}/servers`] = servers.map(server => ({
      name: server.name,
      admin_state: 'ready',
    }))
  }
  for (const { name, binds } of frontends) answers[`${root}/configuration/frontends/${name}/binds`] = binds
  return answers
}

type Peer = { readonly id: number; readonly server: string; readonly name?: string; readonly state?: string }
type Upstreams = Readonly<Record<string, readonly Peer[]>>

/** What the API of NGINX Plus answers, version 9. */
export function nginxPlusResponses(http: Upstreams, stream: Upstreams = {}): Answers {
  const upstreamsOf = (given: Upstreams) =>
    Object.fromEntries(
      Object.entries(given).map(([name, peers]) => [
        name,
        {
          peers: peers.map(peer => ({ name: peer.server, backup: false, weight: 1, state: 'up', active: 0, ...peer })),
        },
      ]),
    )
  return {
    '/api/9/nginx': { version: '1.29.0' },
    '/api/9/http/upstreams': upstreamsOf(http),
    '/api/9/stream/upstreams': upstreamsOf(stream),
  }
}
