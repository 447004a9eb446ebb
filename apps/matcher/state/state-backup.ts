// A consistent copy of the state while a matcher works on it (MAT-190). It is made in a thread of its own, which reads
// the state as of one moment; the restored copy asks its feeds from the start.

import { Database } from 'bun:sqlite'
import { realpathSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { threadFault } from '../../../core/error-info.ts'
import { syncPath, writeNewFile } from '../../files/replace-file.ts'
import { STATE_FILE } from './state-database.ts'

/** The whole thread: it needs no file of the program, in an executable neither. */
const THREAD = `
  import { Database } from 'bun:sqlite'
  onmessage = ({ data }) => {
    try {
      const database = new Database(data.from, { readonly: true })
      database.query('VACUUM INTO ?').run(data.to)
      database.close()
      postMessage('')
    } catch (error) {
      postMessage(String(error))
    }
  }`

/** Writes the copy to a file that does not exist yet, readable by its owner only. */
export async function backupState(dir: string, file: string): Promise<void> {
  const target = resolve(file)
  try {
    // SQLite takes an empty file, and would make one that others can read.
    writeNewFile(target, '')
  } catch (cause) {
    throw new Error(`cannot write ${target}: name a file that does not exist, in a folder that does`, { cause })
  }
  try {
    await copyInThread(join(realpathSync(dir), STATE_FILE), target)
    markRestored(target)
    syncPath(target)
    syncPath(dirname(target))
  } catch (error) {
    rmSync(target, { force: true })
    throw error
  }
}

function copyInThread(from: string, to: string): Promise<void> {
  const url = URL.createObjectURL(new Blob([THREAD], { type: 'application/typescript' }))
  const worker = new Worker(url)
  const { promise, resolve: done, reject } = Promise.withResolvers<void>()
  worker.onmessage = (event: MessageEvent<string>) =>
    event.data === '' ? done() : reject(new Error(`cannot copy the state: ${event.data}`))
  worker.onerror = event => reject(new Error(`cannot copy the state: ${threadFault(event.message)}`))
  worker.postMessage({ from, to })
  return promise.finally(() => {
    worker.terminate()
    URL.revokeObjectURL(url)
  })
}

/** What was synced since is not in the copy, so whoever opens it asks the feeds from the start. */
function markRestored(target: string): void {
  const copy = new Database(target, { readwrite: true, create: false })
  try {
    copy.run("DELETE FROM meta WHERE key IN ('feed_since', 'feed_synced_ms')")
    copy.run("INSERT OR REPLACE INTO meta (key, value) VALUES ('restored', '1')")
  } finally {
    copy.close()
  }
}
