// Files of threads as one file each: a rig starts some for every test, and to read their modules one by one, all of
// them TypeScript, is nearly half of what a start takes.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const made = new Map<string, Promise<URL>>()

async function bundle(path: string): Promise<URL> {
  const outdir = mkdtempSync(join(tmpdir(), 'thread-'))
  process.on('exit', () => rmSync(outdir, { recursive: true, force: true }))
  await Bun.build({ entrypoints: [path], outdir, target: 'bun', format: 'esm' })
  return pathToFileURL(join(outdir, `${basename(path, '.ts')}.js`))
}

/** The file of a thread with all that it imports, made once a process and gone with it. */
export function bundledThread(file: URL): Promise<URL> {
  const path = fileURLToPath(file)
  const bundled = made.get(path) ?? bundle(path)
  made.set(path, bundled)
  return bundled
}
