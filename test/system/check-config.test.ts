// check-config of the executables: what they would start with, and what an operator should know of it nevertheless.
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CertificateMaker } from '../support/certificates.ts'
import { Executable, type ExecutableName, runCommand } from '../support/executable.ts'
import { until } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-check-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const written = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

test('check-config of every executable warns of a certificate that is about to expire and passes; a start and a reload log it', async () => {
  const { certFile, keyFile } = new CertificateMaker(join(folder, 'ending')).make({ subject: '/CN=ending', days: 3 })
  const dataDir = join(folder, 'data')
  const tls = `tls: { cert_file: ${certFile}, key_file: ${keyFile} }\n`
  const config = written('ending.yaml', `${tls}data_dir: ${dataDir}\nadmin: { token: x }\nlisten: 127.0.0.1:0\n`)
  const siteConfig = written('ending-site.yaml', tls)
  const warned = `tls.cert_file = ${certFile} expires at `
  const checks: [ExecutableName, string[]][] = [
    ['collector-ingest', ['--config', config]],
    ['collector-worker', ['--config', config]],
    ['matcher', ['--config', config]],
    ['hub', ['--config', written('ending-hub.yaml', tls), '--database-url', 'postgres://127.0.0.1:1/x']],
    ['standalone', ['--config', siteConfig, '--data-dir', dataDir, '--hub-listen', '127.0.0.1:0']],
  ]
  for (const [name, words] of checks) {
    const { code, out, err } = await runCommand(name, ['check-config', ...words])
    expect([name, code, out.includes('the configuration is valid')]).toEqual([name, 0, true])
    expect(err).toMatch(/^warning: .*, in less than 7 days\n$/)
    expect(err).toContain(warned)
  }
  const ingest = new Executable('collector-ingest', ['--config', config], join(folder, 'ending.ready'))
  await ingest.start()
  try {
    const told = () => ingest.output.split(warned).length - 1
    await until('the warning of the start', () => told() === 1)
    process.kill(ingest.pid, 'SIGHUP')
    await until('the warning of the reload', () => told() === 2)
  } finally {
    expect(await ingest.stop()).toBe(0)
  }
}, 60_000)

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
