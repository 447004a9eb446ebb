import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { directoryAdvice, makeDataDirectory } from '../../apps/files/data-directory.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-data-directory-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a directory is made for its user alone; one that is there is taken', () => {
  const path = join(folder, 'a', 'b')
  makeDataDirectory(path)
  expect(statSync(path).mode & 0o777).toBe(0o700)
  makeDataDirectory(path)
})

test('a path that is no directory is refused with its key and what to do', () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const told = (path: string): string => `data_dir = ${path} cannot be used: it is a file, or lies below one`
  for (const path of [file, join(file, 'below')]) expect(() => makeDataDirectory(path)).toThrow(told(path))
  for (const code of ['EACCES', 'EPERM', 'EROFS', 'ENOSPC']) expect(directoryAdvice(code)).toBeString()
  expect(directoryAdvice('EIO')).toBeNull()
})
