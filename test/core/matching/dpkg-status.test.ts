import { expect, test } from 'bun:test'
import { DpkgStatusReader } from '../../../core/matching/dpkg-status.ts'
import { PackageList } from '../../../core/matching/package-list.ts'

/** Packages as `name version source source_version`, read in pieces of so many characters. */
function read(text: string, pieceLength = text.length, isStatusNeeded = true) {
  const list = new PackageList()
  const reader = new DpkgStatusReader(list, isStatusNeeded)
  for (let at = 0; at < text.length; at += pieceLength) reader.push(text.slice(at, at + pieceLength))
  const isWhole = reader.end()
  const lines = list.packages.map(each => [each.name, each.version, each.source, each.sourceVersion].join(' '))
  return { isWhole, isIncomplete: list.isIncomplete, lines }
}

const good = (lines: string[]) => ({ isWhole: true, isIncomplete: false, lines })
const INSTALLED = 'Status: install ok installed\n'

test('[MAT-004] field names are read in any case, continuations are passed over, and the last value counts', () => {
  const text = `pACKAGE: one\nVERSION : 1\n${INSTALLED}Description: a\n Version: 9\n\tPackage: no\n.\nVersion: 2\n\n`
  expect(read(text.replace('\n.\n', '\n'))).toEqual(good(['one 2 one 2']))
})

test('[MAT-004] a paragraph ends at an empty line, however many, and at the end of the file', () => {
  const text = `\n\nPackage: a\n${INSTALLED}Version: 1\n\n\n\nPackage: b\n${INSTALLED}Version: 2\n`
  expect(read(text)).toEqual(good(['a 1 a 1', 'b 2 b 2']))
})

test('[MAT-006] source and its version stand in Source, or are the package itself', () => {
  const sourceOf = (source: string) => read(`Package: p\n${INSTALLED}Version: 1-1\n${source}\n\n`).lines[0]
  expect(sourceOf('Section: x')).toBe('p 1-1 p 1-1')
  expect(sourceOf('Source: s')).toBe('p 1-1 s 1-1')
  expect(sourceOf('Source: s (2:0.9-3)')).toBe('p 1-1 s 2:0.9-3')
  expect(sourceOf('Source:   s   (0.9)  ')).toBe('p 1-1 s 0.9')
  expect(sourceOf('Source: s ()')).toBe('p 1-1 s 1-1')
  expect(sourceOf('Source:')).toBe('p 1-1 p 1-1')
})

test('pieces may end anywhere', () => {
  const text = `Package: a\n${INSTALLED}Version: 1\n\nPackage: b\n${INSTALLED}Source: s (3)\nVersion: 2\n\n`
  const whole = read(text)
  for (let length = 1; length < text.length; length++) expect(read(text, length)).toEqual(whole)
})

test('[MAT-008] a paragraph without name or version is told, unless its files are gone', () => {
  expect(read(`${INSTALLED}Version: 1\n\n`)).toEqual({ isWhole: true, isIncomplete: true, lines: [] })
  expect(read(`Package: a\n${INSTALLED}\n`)).toEqual({ isWhole: true, isIncomplete: true, lines: [] })
  expect(read(`Package: a\n${INSTALLED}Version:\n\n`)).toEqual({ isWhole: true, isIncomplete: true, lines: [] })
  expect(read('Package: a\nVersion: 1\n\n')).toEqual({ isWhole: true, isIncomplete: true, lines: [] })
  expect(read('Package: a\nStatus: purge ok not-installed\n\n')).toEqual(good([]))
  expect(read('Package: a\nStatus: install reinstreq half-installed\nVersion: 1\n\n')).toEqual(good([]))
  expect(read('Package: a\nVersion: 1', 4, false)).toEqual(good(['a 1 a 1']))
})

test('[MAT-015] what dpkg refuses to read is not read', () => {
  for (const text of ['Package: a\nVersion: 1', 'no colon\n', ': no name\n', ' blank\n', 'Pack age: x\n', 'a\0b: c\n'])
    expect(read(text).isWhole).toBe(false)
})
