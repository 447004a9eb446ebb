// Runs while the hub is read or compiled (as a macro), never in a running hub: bundles what browsers load and
// compresses it, so that the bytes become part of the program. From source and in a compiled executable the result is
// the same. It is imported as `#pages`: under the condition `bundled` that is what the last build made of it.
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { WebLanguage } from './words/words.ts'

/** A file as it is served: its bytes in base64, compressed twice. */
type BundledFile = { readonly name: string; readonly brotli: string; readonly gzip: string }
/** `digest` changes with any byte of any file: the folder under which all of them are served. */
type Bundle = { readonly digest: string; readonly files: readonly BundledFile[] }

/**
 * The style of all pages, with that of those that are loaded later: their own sheets are not served, and neither is the
 * same one of another language.
 */
const STYLE = 'main-en.css'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/**
 * The bundler puts a hash into the names of chunks that depends on where the sources lie. Two hubs must name the same
 * files alike: each hash is replaced by one of what the file holds.
 */
function withNamesByContent(files: ReadonlyMap<string, string>): Map<string, string> {
  const tokens = [...files.keys()]
    .map(name => /-([0-9a-z]{8})\.\w+$/.exec(name)?.[1])
    .filter(token => token !== undefined)
  if (tokens.length === 0) return new Map(files)
  const known = new RegExp(`\\b(?:${tokens.join('|')})\\b`, 'g')
  const names = new Map<string, string>()
  for (const [name, text] of files) {
    const token = /-([0-9a-z]{8})\.\w+$/.exec(name)?.[1]
    if (token !== undefined) names.set(token, sha256(name.replace(known, '') + text.replace(known, '')).slice(0, 8))
  }
  const renamed = (text: string): string => text.replace(known, token => names.get(token) ?? token)
  return new Map([...files].map(([name, text]) => [renamed(name), renamed(text)]))
}

/** The files of an entry below this folder, in a language where it has texts. Throws what the bundler complains of. */
function bundleForBrowser(entry: string, language: WebLanguage | '' = ''): Bundle {
  const folder = mkdtempSync(`${tmpdir()}/web-`)
  try {
    const built = Bun.spawnSync([process.execPath, 'bundle-texts.ts', entry, folder, language], {
      cwd: import.meta.dir,
    })
    if (built.exitCode !== 0) throw new Error(`cannot bundle ${entry}: ${built.stderr.toString()}`)
    const served = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.js') || name === STYLE)
      .sort()
    const raw = new Map(served.map(name => [name, readFileSync(`${folder}/${name}`, 'utf8')]))
    const named = [...withNamesByContent(raw)].sort(([one], [other]) => (one < other ? -1 : 1))
    const digest = sha256(named.map(([name, text]) => `${name} ${sha256(text)}\n`).join('')).slice(0, 16)
    const files = named.map(([name, text]) => ({
      name,
      brotli: brotliCompressSync(text).toString('base64'),
      gzip: gzipSync(text, { level: 9 }).toString('base64'),
    }))
    return { digest, files }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Workers are bundles of their own: what they shared with the pages would be further files for a page to load. */
export const bundlePages = (): Readonly<Record<'english' | 'vietnamese' | 'worker' | 'judge', Bundle>> => ({
  english: bundleForBrowser('browser/main.tsx', 'en'),
  vietnamese: bundleForBrowser('browser/main.tsx', 'vi'),
  worker: bundleForBrowser('browser/shared-worker.ts'),
  judge: bundleForBrowser('browser/judge/judge-worker.ts'),
})
