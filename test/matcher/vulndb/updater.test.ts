// The updater of a running matcher, against a scripted server and the real process of an import.
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { DatabaseVersions } from '../../../apps/matcher/vulndb/database-versions.ts'
import { FETCH_DEFAULTS } from '../../../apps/matcher/vulndb/fetch-file.ts'
import { update } from '../../../apps/matcher/vulndb/update.ts'
import { Updater } from '../../../apps/matcher/vulndb/updater.ts'
import { REFERENCE_SOURCES } from '../../../apps/matcher/vulndb/wanted-sources.ts'
import { until } from '../../support/until.ts'
import { importCommandOfTests, runDb, scratchFolder, writeTree } from './support.ts'

const tracker = (version: string): string =>
  JSON.stringify({
    bash: {
      'CVE-2024-0001': { releases: { bookworm: { status: 'resolved', fixed_version: version, urgency: 'low' } } },
    },
  })

type Server = { readonly url: string; readonly paths: string[]; stop(): void }

function serve(answer: (request: Request) => Response | Promise<Response>): Server {
  const paths: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => {
      paths.push(new URL(request.url).pathname)
      return answer(request)
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, paths, stop: () => void server.stop(true) }
}

type Line = { readonly level: string; readonly message: string; readonly fields: object }

function updaterOf(
  folder: string,
  mirror: string,
  more: {
    readonly distros?: () => readonly string[]
    readonly sources?: readonly string[]
    readonly now?: () => number
    readonly random?: () => number
    readonly onSwitch?: () => void
  } = {},
) {
  const lines: Line[] = []
  const switches: [number, number | null][] = []
  const line = (level: string) => (fields: object, message: string) => void lines.push({ level, message, fields })
  const updater = new Updater({
    folder,
    sources: more.sources ?? 'auto',
    distros: more.distros ?? (() => ['debian']),
    referenceSources: [],
    intervalMs: 6 * 60 * 60_000,
    mirror,
    sourceBytesMax: 2 ** 31,
    command: importCommandOfTests,
    now: more.now ?? Date.now,
    random: more.random ?? (() => 0.5),
    log: { info: line('info'), warn: line('warn'), error: line('error') },
    onSwitch: (version, previous) => {
      more.onSwitch?.()
      switches.push([version.version, previous?.version ?? null])
    },
  })
  return { updater, lines, switches }
}

describe('the updater', () => {
  test('[MAT-061] [MAT-062] auto fetches a distribution once a host of it reported, and 304 makes no new version', async () => {
    using scratch = scratchFolder()
    let isSeen = false
    const server = serve(request =>
      request.headers.get('if-none-match') === '"one"'
        ? new Response(null, { status: 304 })
        : new Response(tracker('1-1'), { headers: { etag: '"one"' } }),
    )
    const { updater, switches } = updaterOf(scratch.path, server.url, { distros: () => (isSeen ? ['debian'] : []) })
    updater.current()
    updater.start()
    await updater.updateNow()
    expect(server.paths).toHaveLength(0)
    isSeen = true
    await until('the first database', () => switches.length > 0)
    expect(server.paths).toEqual(['/tracker/data/json'])
    await updater.updateNow()
    expect(server.paths).toHaveLength(2)
    expect(switches).toHaveLength(1)
    expect(updater.status()).toMatchObject({ db_version: switches[0]![0], update: { state: 'idle' } })
    await updater.stop()
    server.stop()
  })

  test('while a database is fetched and imported, the status and the log say what, and how far', async () => {
    using scratch = scratchFolder()
    const { promise: isLetGo, resolve: letGo } = Promise.withResolvers<void>()
    const server = serve(async () => {
      await isLetGo
      return new Response(tracker('1-1'))
    })
    const { updater, lines, switches } = updaterOf(scratch.path, server.url)
    updater.current()
    updater.start()
    const fetching = await until('the fetch', () => {
      const { update } = updater.status()
      return update.state === 'fetching' && update
    })
    expect(fetching).toMatchObject({ source: 'debian', records: 0, fault: null })
    letGo()
    await until('the import', () => switches.length === 1)
    await updater.updateNow()
    expect(updater.status().update).toMatchObject({ state: 'idle', source: null, records: 0, fault: null })
    const told = lines.filter(({ message }) => message === 'the vulnerability database is on its way')
    expect(told.map(({ fields }) => fields)).toContainEqual({ state: 'fetching', source: 'debian', records: 0 })
    await updater.stop()
    server.stop()
  })

  test('[MAT-235] the time of an import is that of the whole, and not of its reading alone', async () => {
    using scratch = scratchFolder()
    writeTree(scratch.path, { 'one.json': tracker('1-1') })
    const startedMs = performance.now()
    const { sources } = await update({
      folder: new DatabaseVersions(join(scratch.path, 'vulndb')),
      wanted: [{ source: 'debian', from: { file: join(scratch.path, 'one.json') } }],
      acceptShrink: false,
      mirror: null,
      fetch: { ...FETCH_DEFAULTS, bytesMax: 2 ** 20, signal: new AbortController().signal },
      command: importCommandOfTests,
      now: Date.now,
    })
    const seconds = (performance.now() - startedMs) / 1000
    expect(sources).toMatchObject([{ source: 'debian', records: 1, fault: null }])
    expect(sources[0]!.seconds).toBeGreaterThan(seconds / 2)
    expect(sources[0]!.seconds).toBeLessThanOrEqual(seconds)
  })

  test('[MAT-061] the next update is an interval away, more or less, so that matchers do not come at one time', async () => {
    using scratch = scratchFolder()
    const now = Date.UTC(2026, 10, 22)
    const server = serve(() => new Response(tracker('1-1')))
    let share = 0
    const { updater } = updaterOf(scratch.path, server.url, { now: () => now, random: () => share })
    updater.current()
    const waits: number[] = []
    updater.start()
    for (share of [0, 0.5, 1]) {
      await updater.updateNow()
      waits.push((updater.status().update.next_at_ms! - now) / 3_600_000)
    }
    expect(waits).toEqual([5.4, 6, 6.6])
    await updater.stop()
    server.stop()
  })

  test('[MAT-255] a failing source is told once, and tried again after 5 minutes, then ever later up to 6 hours', async () => {
    using scratch = scratchFolder()
    let now = Date.UTC(2026, 10, 22)
    const server = serve(() => new Response('gone', { status: 403 }))
    const { updater, lines, switches } = updaterOf(scratch.path, server.url, { now: () => now })
    updater.current()
    const waits: number[] = []
    updater.start()
    for (let round = 0; round < 9; round++) {
      await updater.updateNow()
      waits.push((updater.status().update.next_at_ms! - now) / 60_000)
      now += 1000
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 320, 360, 360])
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
    expect(switches).toEqual([])
    expect(updater.status()).toMatchObject({
      db_version: 0,
      sources: [{ name: 'debian', fault: 'it answers 403' }],
      update: { fault: 'debian: it answers 403' },
    })
    await updater.stop()
    server.stop()
  })

  test('[MAT-255] a distribution that fails beside reference data that do not is told once, not at every round', async () => {
    using scratch = scratchFolder()
    const kev = { title: 'k', vulnerabilities: [{ cveID: 'CVE-2024-0001', dueDate: '2026-11-30' }] }
    const server = serve(request =>
      request.url.includes('known_exploited') ? Response.json(kev) : new Response('gone', { status: 403 }),
    )
    const { updater, lines } = updaterOf(scratch.path, server.url, { sources: ['debian', 'kev'] })
    updater.current()
    updater.start()
    for (let round = 0; round < 3; round++) await updater.updateNow()
    expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
    expect(lines.some(({ message }) => message.startsWith('all sources'))).toBe(false)
    expect(updater.status().update.fault).toBe('debian: it answers 403')
    await updater.stop()
    server.stop()
  })

  test('a fault that several sources share is said once', async () => {
    using scratch = scratchFolder()
    const server = serve(() => new Response('gone', { status: 403 }))
    const { updater } = updaterOf(scratch.path, server.url, { sources: ['debian', 'kev'] })
    updater.current()
    updater.start()
    await updater.updateNow()
    expect(updater.status().update.fault).toBe('debian, kev: it answers 403')
    await updater.stop()
    server.stop()
  })

  test('[MAT-071] a running matcher notices the version that a command has made, and a rollback', async () => {
    using scratch = scratchFolder()
    const folder = join(scratch.path, 'vulndb')
    const { updater, switches } = updaterOf(folder, 'http://127.0.0.1:9', { sources: [] })
    expect(updater.current()).toBeNull()
    updater.start()
    writeTree(scratch.path, { 'one.json': tracker('1-1') })
    const update = () =>
      runDb(['update', '--source', `debian=${join(scratch.path, 'one.json')}`, '--data-dir', scratch.path])
    await update()
    await until('switch 1', () => switches.length === 1)
    await update()
    await until('switch 2', () => switches.length === 2)
    const [first, second] = [switches[0]![0], switches[1]![0]]
    expect(switches[1]).toEqual([second, first])
    await runDb(['rollback', '--data-dir', scratch.path])
    await until('switch 3', () => switches.length === 3)
    expect(switches[2]).toEqual([first, second])
    await updater.stop()
  })

  test('a switch that fails is told once and tried again until it succeeds', async () => {
    using scratch = scratchFolder()
    writeTree(scratch.path, { 'one.json': tracker('1-1') })
    let tried = 0
    const { updater, lines, switches } = updaterOf(join(scratch.path, 'vulndb'), 'http://127.0.0.1:9', {
      sources: [],
      onSwitch: () => {
        if (++tried < 3) throw new Error('the disk is full')
      },
    })
    updater.current()
    updater.start()
    await runDb(['update', '--source', `debian=${join(scratch.path, 'one.json')}`, '--data-dir', scratch.path])
    await until('the third try', () => switches.length === 1)
    expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1)
    await updater.stop()
  })

  test('one import at a time: a command that meets another says so', async () => {
    using scratch = scratchFolder()
    const folder = new DatabaseVersions(join(scratch.path, 'vulndb'))
    writeTree(scratch.path, { 'one.json': tracker('1-1') })
    await folder.exclusively(async () => {
      const ran = await runDb([
        'update',
        '--source',
        `debian=${join(scratch.path, 'one.json')}`,
        '--data-dir',
        scratch.path,
      ])
      expect(ran).toMatchObject({ code: 1 })
      expect(ran.err).toContain('another import is running on this directory')
    })
  })

  test('reference data is no distribution', () => {
    expect(REFERENCE_SOURCES).toEqual(['eol', 'kev', 'epss', 'scores'])
  })
})
