// check-config of the executables: what they would start with, and what an operator should know of it nevertheless.
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../support/executable.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-check-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const written = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

test('files that the all-in-one cannot start with fail its check', async () => {
  const missing = join(folder, 'not-there')
  const files = `tls: { cert_file: ${missing}, key_file: ${missing} }\nupdate: { manifest_file: ${missing}, public_key_file: ${missing} }\n`
  const config = written('no-files.yaml', `${files}db: { public_key_file: ${missing} }\n`)
  const words = ['--config', config, '--data-dir', join(folder, 'no-data'), '--hub-listen', '127.0.0.1:0']
  for (const command of [['check-config'], []]) {
    const { code, err } = await runCommand('standalone', [...command, ...words])
    expect(code).toBe(1)
    for (const key of ['tls.cert_file', 'update.manifest_file', 'update.public_key_file', 'db.public_key_file'])
      expect(err).toContain(`  ${key} = ${missing} cannot be read (ENOENT)\n`)
  }
}, 60_000)
