// The rules of the house for the web interface, read off its sources: what may know what, and where texts and styles
// stand.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { metricWords } from '../../apps/hub/web/words/metrics.ts'
import { metrics } from '../../core/series/catalogue.ts'

const web = resolve(import.meta.dir, '../../apps/hub/web')

type Source = { readonly path: string; readonly text: string }

const sources: readonly Source[] = readdirSync(web, { recursive: true, encoding: 'utf8' })
  .filter(path => /(?<!\.d)\.tsx?$/.test(path))
  .map(path => ({ path, text: readFileSync(join(web, path), 'utf8') }))
const browser = sources.filter(({ path }) => path.startsWith('browser/'))

/** What a file imports at run time, below the folder of the web interface where it lies there; types are left out. */
const importsOf = ({ path, text }: Source): string[] =>
  [...text.matchAll(/^(?:import|export) (?!type )(?:[^'";]*? from )?'([^']+)'/gm)].map(([, specifier = '']) =>
    specifier.startsWith('.') ? relative(web, resolve(web, path, '..', specifier)) : specifier,
  )

const offenders = (files: readonly Source[], isOffence: (imported: string, file: Source) => boolean): string[] =>
  files.flatMap(file =>
    importsOf(file)
      .filter(imported => isOffence(imported, file))
      .map(imported => `${file.path} imports ${imported}`),
  )

test('what runs in the browser imports the core through the judge alone, and of the hub what both sides know', () => {
  const isCore = (imported: string) => imported.startsWith('../../../core/')
  expect(offenders(browser, (imported, { path }) => isCore(imported) && !path.startsWith('browser/judge/'))).toEqual([])
  const isOfHub = (imported: string) => /^(\.\.\/(?!\.\.\/\.\.\/core\/)|shell\/)/.test(imported)
  expect(offenders(browser, isOfHub)).toEqual([])
  expect(browser.some(file => importsOf(file).some(isCore))).toBe(true)
})

test('parts know no page, and one file the library that draws charts', () => {
  const parts = browser.filter(({ path }) => path.startsWith('browser/parts/'))
  expect(offenders(parts, imported => imported.startsWith('browser/pages/'))).toEqual([])
  const draws = browser.filter(file => importsOf(file).some(imported => imported.startsWith('uplot')))
  expect(draws.map(({ path }) => path)).toEqual(['browser/parts/chart/plot.ts'])
})

/** Attributes whose text people read or hear. */
const SPOKEN = new Set(['aria-label', 'title', 'placeholder', 'alt', 'label'])
/** Letters of a text that no language changes: a key that is pressed, a unit, a name of the format. */
const UNSPOKEN = /^(?:g? ?\w|Shift \w|Ctrl \w|Enter|Esc|UTC|[A-Z]{1,4})$/

const CODE = /^(?:return|await|throw|case|else|new|void|typeof|extends|yield|in|of) /

/** Texts in markup that stand there and not in words/, and `style` attributes. */
function faultsOfMarkup({ path, text }: Source): string[] {
  return text.split('\n').flatMap((line, at) => {
    const code = line.replace(/\/\/.*$|^\s*\/?\*.*$|\{\/\*.*?\*\/\}/g, '')
    const said = [...code.matchAll(/(?<!=)>([^<>{}()=;]*\p{L}{2}[^<>{}()=;]*)<\//gu)].map(([, found]) => found ?? '')
    // The formatter gives a longer text a line of its own.
    const own = code.trim()
    if (/^[\p{L}'’]+(?:,? [\p{L}'’]+)+[.!?:]?$/u.test(own) && !CODE.test(own)) said.push(own)
    for (const [, name = '', value = ''] of code.matchAll(/\s([\w-]+)="([^"]*)"/g))
      if (SPOKEN.has(name) && /\p{L}/u.test(value) && !UNSPOKEN.test(value)) said.push(`${name}="${value}"`)
    if (/\sstyle=/.test(code)) said.push('a style attribute')
    return said.map(found => `${path}:${at + 1}: ${found}`)
  })
}

test('no text stands outside words/, and no style in markup', () => {
  expect(browser.filter(({ path }) => path.endsWith('.tsx')).flatMap(faultsOfMarkup)).toEqual([])
  const bad = ['const A = () => <p style="x" title="Say it">Hello</p>', '      Said on a line of its own.'].join('\n')
  expect(faultsOfMarkup({ path: 'bad.tsx', text: bad })).toHaveLength(4)
})

test('every metric of the catalogue has a name in both languages, and nothing else has', () => {
  expect(Object.keys(metricWords).sort()).toEqual(metrics.map(({ name }) => name).sort())
})
