// Downloads against a scripted server: what is asked, what is refused, what is tried again (MAT-061, 063).
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DatabaseVersions } from '../../../apps/matcher/vulndb/database-versions.ts'
import { FETCH_DEFAULTS, type Fetched, fetchFile } from '../../../apps/matcher/vulndb/fetch-file.ts'
import { openAdvisories } from '../../../apps/matcher/vulndb/reader.ts'
import { sourceNamed } from '../../../apps/matcher/vulndb/sources/catalogue.ts'
import { type UpdateResult, update } from '../../../apps/matcher/vulndb/update.ts'
import { KNOWN_RELEASES } from '../../../core/matching/end-of-life.ts'
import { DeafListener } from '../../support/deaf-listener.ts'
import { importCommandOfTests, scratchFolder, tar } from './support.ts'

type Answer = (request: Request) => Response | Promise<Response>

async function withServer<T>(answer: Answer, work: (url: string, paths: string[]) => Promise<T>): Promise<T> {
  const paths: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 60,
    fetch: request => {
      paths.push(new URL(request.url).pathname)
      return answer(request)
    },
  })
  try {
    return await work(`http://127.0.0.1:${server.port}`, paths)
  } finally {
    await server.stop(true)
  }
}

const OPTIONS = { bytesMax: 1000, stallMs: 30_000, connectMs: 10_000, tries: 3, retryMs: 1 }
const NEW = { etag: '', lastModified: '' }

const fetchTo = async (url: string, more: Partial<typeof OPTIONS> = {}, known = NEW): Promise<[Fetched, string]> => {
  using scratch = scratchFolder()
  const path = join(scratch.path, 'file')
  const signal = new AbortController().signal
  const fetched = await fetchFile(url, path, known, { ...OPTIONS, ...more, signal })
  return [fetched, existsSync(path) ? readFileSync(path, 'utf8') : '']
}

const refuses = async (url: string, reason: string, more: Partial<typeof OPTIONS> = {}): Promise<void> => {
  await expect(fetchTo(url, more)).rejects.toThrow(reason)
}

describe('a download', () => {
  test('[MAT-061] is asked with what the version before was answered, and 304 is nothing new', async () => {
    const seen: (string | null)[][] = []
    const answer = (request: Request): Response => {
      seen.push([request.headers.get('if-none-match'), request.headers.get('if-modified-since')])
      return seen.length > 1
        ? new Response(null, { status: 304 })
        : new Response('x', { headers: { etag: '"a"', 'last-modified': 'Sun, 22 Nov 2026 00:00:00 GMT' } })
    }
    await withServer(answer, async url => {
      const [fetched, text] = await fetchTo(url)
      expect(text).toBe('x')
      if (fetched.kind !== 'fetched') throw new Error(fetched.kind)
      const [again] = await fetchTo(url, {}, fetched)
      expect(again).toEqual({ kind: 'unchanged' })
    })
    expect(seen).toEqual([
      [null, null],
      ['"a"', 'Sun, 22 Nov 2026 00:00:00 GMT'],
    ])
  })

  test('[MAT-063] of plain http is refused but from loopback, and so is a redirect to it', async () => {
    await expect(fetchTo('http://example.test/x')).rejects.toThrow('its address is not https')
    await expect(fetchTo('ftp://127.0.0.1/x')).rejects.toThrow('its address is not https')
    const to = (location: string) => () => new Response(null, { status: 302, headers: { location } })
    const hop = 'it redirects to an address that is not https'
    await withServer(to('http://example.test/x'), url => refuses(url, hop))
    await withServer(to('ftp://127.0.0.1/x'), url => refuses(url, hop))
    await withServer(to('file:///etc/hostname'), url => refuses(url, hop))
    await withServer(to('/again'), async (url, paths) => {
      await refuses(url, 'it redirects more than 5 times')
      expect(paths).toHaveLength(6)
    })
    const once: Answer = request =>
      new URL(request.url).pathname === '/new'
        ? new Response('new')
        : new Response(null, { status: 301, headers: { location: '/new' } })
    await withServer(once, async url => expect((await fetchTo(url))[1]).toBe('new'))
  })

  test('[MAT-063] of a file of this host is read where it lies, and is nothing new while it is the same', async () => {
    using scratch = scratchFolder()
    const path = join(scratch.path, 'file.json')
    await Bun.write(path, 'x')
    const url = pathToFileURL(path).href
    const [fetched] = await fetchTo(url)
    expect(fetched).toMatchObject({ kind: 'fetched', path })
    if (fetched.kind !== 'fetched') throw new Error(fetched.kind)
    expect((await fetchTo(url, {}, fetched))[0]).toEqual({ kind: 'unchanged' })
    expect((await fetchTo(`${url}.absent`))[0]).toEqual({ kind: 'absent' })
    await refuses(url, 'larger than', { bytesMax: 0 })
  })

  test('[MAT-063] is bounded, announced or not', async () => {
    const tooLarge = 'it is larger than db.source_max_bytes (1000)'
    await withServer(
      () => new Response('x'.repeat(1001)),
      url => refuses(url, tooLarge),
    )
    const endless = () => new ReadableStream({ pull: controller => controller.enqueue(new Uint8Array(400)) })
    await withServer(
      () => new Response(endless()),
      url => refuses(url, tooLarge),
    )
  })

  test('[MAT-063] that stalls is given up and tried again, three times in all', async () => {
    const stalled = () => new ReadableStream({ start: controller => controller.enqueue(new Uint8Array(10)) })
    await withServer(
      () => new Response(stalled()),
      async (url, paths) => {
        await refuses(url, 'it stalled', { stallMs: 100, connectMs: 100 })
        expect(paths).toHaveLength(3)
      },
    )
  })

  test('[MAT-063] that finds nobody to take its connection is given up long before a stall', async () => {
    await using deaf = await DeafListener.start()
    const startedMs = performance.now()
    await refuses(deaf.url, 'it takes no connection', { connectMs: 50, stallMs: 60_000 })
    expect(performance.now() - startedMs).toBeLessThan(10_000)
  })

  test('[MAT-063] an answer that is slow has the time of a stall, not that of a connection', async () => {
    await withServer(
      () => new Promise<Response>(() => {}),
      url => refuses(url, 'it stalled', { connectMs: 500, stallMs: 1500, tries: 1 }),
    )
    const { connectMs, stallMs, tries } = FETCH_DEFAULTS
    expect({ connectMs, stallMs, tries }).toEqual({ connectMs: 10_000, stallMs: 60_000, tries: 3 })
  })

  test('[MAT-063] that fails by chance is tried again, and what will not change is not', async () => {
    let count = 0
    await withServer(
      () => (++count < 3 ? new Response('', { status: 503 }) : new Response('x')),
      async url => {
        expect((await fetchTo(url))[1]).toBe('x')
      },
    )
    expect(count).toBe(3)
    await withServer(
      () => new Response('', { status: 403 }),
      async (url, paths) => {
        await refuses(url, 'it answers 403')
        expect(paths).toHaveLength(1)
      },
    )
  })
})

describe('a source that turns bad', () => {
  const tracker = (count: number): string =>
    JSON.stringify(
      Object.fromEntries(
        Array.from({ length: count }, (_, at) => [
          `package-${at}`,
          { 'CVE-2024-0001': { releases: { bookworm: { status: 'resolved', fixed_version: '1-1', urgency: 'low' } } } },
        ]),
      ),
    )
  const stalled = () => new Response(new ReadableStream({ start: out => out.enqueue(Buffer.from('{"package-0":')) }))
  const bad: readonly (readonly [what: string, answer: Answer, fault: string])[] = [
    ['cut short', () => new Response(tracker(10).slice(0, -9)), 'is empty or truncated'],
    ['of another kind', () => new Response('<html>welcome</html>'), ''],
    ['of another shape', () => Response.json([1, 2]), 'it is not the JSON of a Debian'],
    ['empty', () => Response.json({}), 'it has no records'],
    ['without a byte', () => new Response(''), ''],
    ['shrunk', () => new Response(tracker(7)), 'it shrank from 10 to 7 records'],
    ['faulty in each record', () => new Response(tracker(10).replaceAll('"resolved"', '7')), 'records cannot be read'],
    ['endless', () => new Response(`${tracker(9)}${' '.repeat(5000)}`), 'larger than db.source_max_bytes'],
    ['stalled', stalled, 'it stalled'],
    [
      'redirected to plain http',
      () => new Response(null, { status: 302, headers: { location: 'http://example.test/' } }),
      'it redirects to an address that is not https',
    ],
    ['gone', () => new Response('', { status: 404 }), ''],
    ['broken', () => new Response('', { status: 500 }), 'it answers 500'],
  ]

  test('[MAT-063] [MAT-064] [MAT-065] [MAT-066] whatever it answers: the version in use and its rows stay, and the fault is told', async () => {
    using scratch = scratchFolder()
    const folder = new DatabaseVersions(join(scratch.path, 'vulndb'))
    let answer: Answer = () => new Response(tracker(10))
    await withServer(
      request => answer(request),
      async url => {
        const again = () =>
          update({
            folder,
            wanted: [{ source: 'debian', from: { url } }],
            acceptShrink: false,
            mirror: null,
            fetch: { ...OPTIONS, bytesMax: 3000, stallMs: 100, connectMs: 100, signal: new AbortController().signal },
            command: importCommandOfTests,
            now: Date.now,
          })
        const { switched, faults } = await again()
        expect([switched?.version, faults]).toEqual([folder.current()?.version, {}])
        const before = readFileSync(folder.current()!.file)
        for (const [what, next, fault] of bad) {
          answer = next
          const outcome = await again()
          expect([what, outcome.switched, outcome.faults.debian]).toEqual([what, null, expect.stringContaining(fault)])
          expect([what, readFileSync(folder.current()!.file).equals(before)]).toEqual([what, true])
        }
        answer = () => new Response(tracker(9))
        const mended = await again()
        expect([mended.switched?.version, mended.faults]).toEqual([folder.current()?.version, {}])
      },
    )
  })
})

test('[MAT-062] branches of Alpine that were published after this program are fetched too', () => {
  const parts = sourceNamed('alpine')!.parts({ releases: KNOWN_RELEASES, nowMs: Date.now() })
  const named = parts.map(({ part }) => part)
  for (const part of ['v3.12/main', 'v3.24/community', 'v3.25/main', 'v3.25/community', 'v3.30/main', 'edge/main'])
    expect(named).toContain(part)
  expect(new Set(named).size).toBe(named.length)
  expect(parts.filter(({ isOptional }) => isOptional !== true)).toEqual([])
})

test('[MAT-064] a source of which no part is where it should be is at fault, not unchanged', async () => {
  using scratch = scratchFolder()
  const secdb = { distroversion: 'v3.20', reponame: 'main', packages: [{ pkg: { name: 'a', secfixes: {} } }] }
  const from = (isThere: boolean): Promise<UpdateResult> => {
    const answer = (request: Request): Response =>
      isThere && request.url.endsWith('/v3.20/main.json') ? Response.json(secdb) : new Response('', { status: 404 })
    return withServer(answer, url =>
      update({
        folder: new DatabaseVersions(scratch.path),
        wanted: [{ source: 'alpine', from: null }],
        acceptShrink: false,
        mirror: url,
        fetch: { ...FETCH_DEFAULTS, bytesMax: 2 ** 20, signal: new AbortController().signal },
        command: importCommandOfTests,
        now: Date.now,
      }),
    )
  }
  expect((await from(false)).faults).toEqual({ alpine: 'it answers 404: it is not at this address' })
  const taken = await from(true)
  expect([taken.faults, taken.sources.map(({ records }) => records)]).toEqual([{}, [1]])
})

describe("Red Hat's files", () => {
  const vex = (cve: string, status: object): string =>
    JSON.stringify({
      document: { tracking: {} },
      product_tree: {
        branches: [
          {
            product: {
              product_id: 'rhel9',
              product_identification_helper: { cpe: 'cpe:/o:redhat:enterprise_linux:9' },
            },
          },
          { product: { product_id: 'bash', product_identification_helper: { purl: 'pkg:rpm/redhat/bash?arch=src' } } },
        ],
        relationships: [
          {
            full_product_name: { product_id: 'rhel9:bash' },
            product_reference: 'bash',
            relates_to_product_reference: 'rhel9',
          },
        ],
      },
      vulnerabilities: [{ cve, product_status: status }],
    })
  const affected = { known_affected: ['rhel9:bash'] }

  const updateFrom = async (folder: DatabaseVersions, url: string): Promise<UpdateResult> =>
    await update({
      folder,
      wanted: [{ source: 'redhat', from: { url } }],
      acceptShrink: false,
      mirror: null,
      fetch: { ...OPTIONS, bytesMax: 2 ** 30, signal: new AbortController().signal },
      command: importCommandOfTests,
      now: Date.now,
    })

  test('[MAT-084] [MAT-060] [MAT-064] [MAT-066] the archive comes first, then only what changed and was deleted since', async () => {
    using scratch = scratchFolder()
    const folder = new DatabaseVersions(join(scratch.path, 'vulndb'))
    let changes = '"2024/cve-2024-0001.json","2026-11-01T10:00:00+00:00"\n'
    let deletions = ''
    const files: Record<string, () => string | Uint8Array> = {
      '/vex/archive_latest.txt': () => 'csaf_vex_2026-11-02.tar.zst\n',
      '/vex/csaf_vex_2026-11-02.tar.zst': () =>
        Bun.zstdCompressSync(
          tar(
            Object.fromEntries(
              Array.from({ length: 9 }, (_, at) => at + 1)
                .filter(id => id !== 4)
                .map(id => [`2024/cve-2024-000${id}.json`, vex(`CVE-2024-000${id}`, affected)]),
            ),
          ),
        ),
      '/vex/changes.csv': () => changes,
      '/vex/deletions.csv': () => deletions,
      '/vex/2024/cve-2024-0002.json': () => vex('CVE-2024-0002', { known_not_affected: ['rhel9:bash'] }),
      '/vex/2024/cve-2024-0004.json': () => vex('CVE-2024-0004', affected),
    }
    const answer: Answer = request => {
      const file = files[new URL(request.url).pathname]
      return file === undefined ? new Response('', { status: 404 }) : new Response(file())
    }
    const vulns = (): string[] => {
      const reader = openAdvisories(folder.current()!.file)
      try {
        return (reader.affected('rhel:9', 'bash', 'source')?.rules ?? []).map(({ vuln }) => vuln)
      } finally {
        reader.close()
      }
    }
    await withServer(answer, async (url, paths) => {
      const base = `${url}/vex/`
      expect((await updateFrom(folder, base)).faults).toEqual({})
      expect(vulns()).toHaveLength(8)
      expect((await updateFrom(folder, base)).switched).toBeNull()
      changes = `"2024/cve-2024-0004.json","2026-11-20T10:00:00+00:00"\n"2024/cve-2024-0002.json","2026-11-19T10:00:00+00:00"\n${changes}`
      deletions = ['2024/cve-2024-0003', '2023/cve-2023-9999']
        .map(file => `"${file}.json","2026-11-20T11:00:00+00:00"\n`)
        .join('')
      paths.length = 0
      // One is new, one is gone, and one that is said to be deleted was never there.
      expect(await updateFrom(folder, base)).toMatchObject({ faults: {}, sources: [{ records: 8 }] })
      expect(vulns()).toEqual([1, 4, 5, 6, 7, 8, 9].map(id => `CVE-2024-000${id}`))
      expect(paths.some(path => path.endsWith('.tar.zst'))).toBeFalse()
      // What was deleted since is deleted once.
      expect((await updateFrom(folder, base)).switched).toBeNull()

      // One that changed and is deleted by now is not there: the others are taken all the same.
      changes = `"2024/cve-2024-0005.json","2026-11-21T10:00:00+00:00"\n"2024/cve-2024-0004.json","2026-11-21T09:00:00+00:00"\n${changes}`
      deletions += '"2024/cve-2024-0005.json","2026-11-21T11:00:00+00:00"\n'
      files['/vex/2024/cve-2024-0004.json'] = () => vex('CVE-2024-0004', { known_not_affected: ['rhel9:bash'] })
      expect(await updateFrom(folder, base)).toMatchObject({ faults: {}, sources: [{ records: 7 }] })
      expect(vulns()).toEqual([1, 6, 7, 8, 9].map(id => `CVE-2024-000${id}`))

      // A list that is none is told, and nothing is lost of what was known.
      const known = changes
      for (const [list, fault] of [
        ['', 'changes.csv names no file'],
        ['<html><body>down for maintenance</body></html>\n', 'changes.csv: 1 of 1 lines are no path'],
      ] as const) {
        changes = list
        expect((await updateFrom(folder, base)).faults.redhat).toStartWith(fault)
      }
      changes = known
      deletions = 'not found'
      expect((await updateFrom(folder, base)).faults.redhat).toStartWith('deletions.csv: 1 of 1 lines')
      expect(vulns()).toHaveLength(5)
    })
  })
})
