// What a screen reader is told of a page, as text that is kept beside the tests: roles, names and their order. A change
// shows as lines of a diff. `UPDATE_TREES=1` writes the files anew.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { until } from '../support/until.ts'

const FOLDER = join(import.meta.dir, 'trees')
/** The page whose tree has what stands around every page too. */
const FRAMED = 'overview'
const isUpdate = process.env.UPDATE_TREES === '1'

/** What differs from run to run stands for itself: ids, addresses, times and numbers. */
const settled = (tree: string): string =>
  tree
    .replace(/\blic_[\w.]+/g, 'KEY')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
    .replace(
      /\b(\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept|Oct|Nov|Dec)( \d{4})?,? )?\d{1,2}:\d{2}(:\d{2})?( UTC)?/g,
      'TIME',
    )
    .replace(/\b\d+ ?(s|sec|secs|m|min|h|hr|d|day|days) ago\b|\bin \d+ ?(s|sec)\b|\bnow\b/g, 'AGO')
    .replace(/\d+(d|h|m|s)( \d+(d|h|m|s))?\b/g, 'LENGTH')
    .replace(/\d[\d.,]*/g, '#')

/** Empty once the page has the tree that is kept under its name; else what differs. */
export async function treeFault(name: string, page: Page): Promise<string[]> {
  const file = join(FOLDER, `${name.replaceAll(' ', '-')}.txt`)
  const kept = existsSync(file) ? readFileSync(file, 'utf8') : ''
  let tree = ''
  const read = async (): Promise<boolean> => {
    tree = `${settled(await page.locator(name === FRAMED ? 'body' : 'main').ariaSnapshot())}\n`
    return tree === kept
  }
  // Parts of a page come after its first view.
  const isSame = await until('the tree of the page', read, isUpdate ? 3_000 : 20_000).catch(() => false)
  if (isSame) return []
  if (isUpdate) {
    mkdirSync(FOLDER, { recursive: true })
    writeFileSync(file, tree)
    return []
  }
  return [`${name}: its tree is not that of ${file.slice(FOLDER.length + 1)}:\n${changed(kept, tree)}`]
}

/** The lines that only one of two texts has. */
function changed(before: string, after: string): string {
  const [old, fresh] = [before.split('\n'), after.split('\n')]
  return [
    ...old.filter(line => !fresh.includes(line)).map(line => `- ${line}`),
    ...fresh.filter(line => !old.includes(line)).map(line => `+ ${line}`),
  ].join('\n')
}
