// A database file to match with, of what an operator named: the file itself, or a bundle (MAT-232).
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkForm } from './check-file.ts'
import { type OpenAdvisories, openAdvisories, openUnchecked } from './reader.ts'

export const BUNDLE_BYTES_MAX = 4 * 1024 ** 3

/** Whether a file is a database, not a bundle. Throws when it cannot be read. */
export async function isDatabaseFile(file: string): Promise<boolean> {
  const head = Bun.file(file).slice(0, 16)
  try {
    return (await head.text()) === 'SQLite format 3\0'
  } catch {
    throw new Error(`${file} cannot be read`)
  }
}

/**
 * Opens a file to match with: a bundle is unpacked and checked first, of a database file each row is as it is read.
 * `dispose` closes it and removes what was unpacked.
 */
export async function openDatabaseFile(file: string): Promise<{ readonly reader: OpenAdvisories; dispose(): void }> {
  if (await isDatabaseFile(file)) {
    checkForm(file)
    const reader = openUnchecked(file)
    return { reader, dispose: () => reader.close() }
  }
  const scratch = mkdtempSync(join(tmpdir(), 'svc-vulndb-'))
  const remove = (): void => rmSync(scratch, { recursive: true, force: true })
  try {
    const out = join(scratch, 'new.sqlite')
    // Loaded for a bundle only: what imports takes longer to load than a file to match with.
    const [{ unpackTo }, { importCommand }] = await Promise.all([
      import('./update.ts'),
      import('./import/run-import.ts'),
    ])
    const check = { bundleFile: file, publicKeyPem: null, bytesMax: BUNDLE_BYTES_MAX, command: importCommand() }
    await unpackTo(out, check)
    const reader = openAdvisories(out)
    const dispose = (): void => {
      reader.close()
      remove()
    }
    return { reader, dispose }
  } catch (error) {
    remove()
    throw error
  }
}
