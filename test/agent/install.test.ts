// `agent install` into a folder, as for an image: files, modes, and a unit that systemd understands.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { install, unitText } from '../../apps/agent/install.ts'
import { makeCertificate } from './certificate.ts'

setDefaultTimeout(30_000)

function withFolder(run: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'agent-install-'))
  try {
    run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** An authority and a key of releases, with their private halves beside them. */
function publicFiles(folder: string) {
  const path = (name: string) => join(folder, name)
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  writeFileSync(path('release.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(path('release-key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const { certFile } = makeCertificate(folder)
  return {
    ca: certFile,
    caKey: path('key.pem'),
    releaseKey: path('release.pem'),
    releasePrivateKey: path('release-key.pem'),
  }
}

function installInto(folder: string, changed: Partial<Parameters<typeof install>[0]> = {}): string[] {
  const executable = join(folder, 'agent')
  writeFileSync(executable, '#!/bin/sh\n', { mode: 0o644 })
  const said: string[] = []
  install({
    executable,
    collectorUrl: 'https://collector.example.net:8443',
    license: 'lic_secret',
    caFile: null,
    releaseKeyFile: null,
    root: join(folder, 'root'),
    say: line => void said.push(line),
    ...changed,
  })
  return said
}

test('an installation has executable, configuration, licence and unit, each readable by those who need it', () =>
  withFolder(folder => {
    const { ca, releaseKey } = publicFiles(folder)
    const said = installInto(folder, { caFile: ca, releaseKeyFile: releaseKey })
    const at = (path: string) => join(folder, 'root', path)
    expect(statSync(at('opt/svc-agent/agent')).mode & 0o777).toBe(0o755)
    expect(statSync(at('etc/svc-agent/license')).mode & 0o777).toBe(0o600)
    expect(readFileSync(at('etc/svc-agent/license'), 'utf8')).toBe('lic_secret\n')
    const config = Bun.YAML.parse(readFileSync(at('etc/svc-agent/agent.yaml'), 'utf8'))
    expect(config).toEqual({
      collector_url: 'https://collector.example.net:8443',
      license_file: '/etc/svc-agent/license',
      tls: { ca_file: '/etc/svc-agent/ca.pem' },
      update: { public_key_file: '/etc/svc-agent/release.pem' },
    })
    expect(readFileSync(at('etc/svc-agent/agent.yaml'), 'utf8')).not.toContain('lic_secret')
    expect(said.join()).not.toContain('lic_secret')
  }))

test('an installation may be repeated, and leaves the configuration of the operator alone', () =>
  withFolder(folder => {
    installInto(folder)
    const config = join(folder, 'root/etc/svc-agent/agent.yaml')
    const own = '# of ours\ncollector_url: https://other.example.net\nlicense_file: /etc/svc-agent/license\n'
    writeFileSync(config, own)
    const said = installInto(folder, { license: null }).join()
    expect(said).toContain('stays as it is')
    expect(said).toContain('collector_url is https://other.example.net there and stays so')
    expect(readFileSync(config, 'utf8')).toBe(own)
  }))

test('an installation that is repeated adds what the configuration lacks of what is ordered, and needs no address', () =>
  withFolder(folder => {
    expect(() => installInto(folder, { collectorUrl: null })).toThrow('--collector-url: is needed')
    installInto(folder)
    const config = join(folder, 'root/etc/svc-agent/agent.yaml')
    writeFileSync(config, '# of ours\ncollector_url: https://other.example.net\nupdate: { hosts: [a.example.net] }\n')
    const { ca, releaseKey } = publicFiles(folder)
    installInto(folder, { collectorUrl: null, license: null, caFile: ca, releaseKeyFile: releaseKey })
    const text = readFileSync(config, 'utf8')
    expect(text).toStartWith('# of ours\n')
    expect(Bun.YAML.parse(text)).toEqual({
      collector_url: 'https://other.example.net',
      update: { hosts: ['a.example.net'], public_key_file: '/etc/svc-agent/release.pem' },
      tls: { ca_file: '/etc/svc-agent/ca.pem' },
    })
    writeFileSync(config, 'collector_url: https://other.example.net\ntls.ca_file: /own.pem\n')
    expect(installInto(folder, { collectorUrl: null, license: null, caFile: ca }).join()).toContain(
      'tls.ca_file is /own.pem',
    )
  }))

for (const [kind, plant] of [
  ['a link', (path: string, victim: string) => symlinkSync(victim, path)],
  ['a hard link', (path: string, victim: string) => linkSync(victim, path)],
  ['a pipe', (path: string) => void Bun.spawnSync(['mkfifo', path])],
] as const)
  for (const name of ['agent.tmp', 'agent', 'agent.new'])
    test(`an installation that is repeated writes nothing through ${kind} that the agent's user planted as ${name}`, () =>
      withFolder(folder => {
        installInto(folder)
        const victim = join(folder, 'victim')
        writeFileSync(victim, 'of root', { mode: 0o640 })
        const planted = join(folder, 'root/opt/svc-agent', name)
        rmSync(planted, { force: true })
        plant(planted, victim)
        installInto(folder)
        expect(readFileSync(victim, 'utf8')).toBe('of root')
        expect(statSync(victim).mode & 0o777).toBe(0o640)
        const installed = join(folder, 'root/opt/svc-agent/agent')
        expect(lstatSync(installed).isFile()).toBe(true)
        expect(readFileSync(installed, 'utf8')).toBe('#!/bin/sh\n')
        expect(statSync(installed).mode & 0o777).toBe(0o755)
        // The folder that it was staged in is gone.
        expect(readdirSync(join(folder, 'root/opt'))).toEqual(['svc-agent'])
      }))

test('an installation does not take a link for the folder of the executable', () =>
  withFolder(folder => {
    const victim = join(folder, 'victim')
    mkdirSync(victim, { mode: 0o700 })
    mkdirSync(join(folder, 'root/opt'), { recursive: true })
    symlinkSync(victim, join(folder, 'root/opt/svc-agent'))
    expect(() => installInto(folder)).toThrow()
    expect(statSync(victim).mode & 0o777).toBe(0o700)
    expect(readdirSync(victim)).toEqual([])
  }))

test('an address that cannot be used is refused before anything is written', () =>
  withFolder(folder => {
    expect(() => installInto(folder, { collectorUrl: 'http://collector.example.net' })).toThrow('must be https')
    expect(existsSync(join(folder, 'root'))).toBe(false)
  }))

test('a private key, or anything else that is no authority and no key of releases, is refused before anything is written', () =>
  withFolder(folder => {
    const { ca, caKey, releaseKey, releasePrivateKey } = publicFiles(folder)
    const both = join(folder, 'both.pem')
    writeFileSync(both, readFileSync(ca, 'utf8') + readFileSync(caKey, 'utf8'))
    const f = (order: Parameters<typeof installInto>[1], message: string) => {
      expect(() => installInto(folder, order)).toThrow(message)
      expect(existsSync(join(folder, 'root'))).toBe(false)
    }
    f({ caFile: caKey }, '--ca-file')
    f({ caFile: both }, 'holds a private key')
    f({ caFile: releaseKey }, '--ca-file')
    f({ caFile: join(folder, 'none.pem') }, 'cannot be read (ENOENT)')
    f({ releaseKeyFile: releasePrivateKey }, 'must hold an Ed25519 public key in PEM form')
    f({ releaseKeyFile: ca }, 'must hold an Ed25519 public key in PEM form')
    f({ releaseKeyFile: join(folder, 'none.pem') }, 'ENOENT')
  }))

test('the unit runs the agent as its own user, restarts it, and lets it write its state and its executable only', () =>
  withFolder(folder => {
    const lines = unitText.split('\n')
    for (const line of ['User=svc-agent', 'StateDirectory=svc-agent', 'Restart=always', 'ProtectSystem=strict'])
      expect(lines).toContain(line)
    expect(lines).toContain('ReadWritePaths=/opt/svc-agent')
    expect(unitText).not.toMatch(/ProtectHome|PrivateTmp/)
    // Where systemd is installed it has the last word.
    if (Bun.which('systemd-analyze') === null) return
    const unit = join(folder, 'svc-agent.service')
    writeFileSync(unit, unitText.replace('/opt/svc-agent/agent run', '/bin/true run'))
    const { exitCode, stderr } = Bun.spawnSync(['systemd-analyze', 'verify', unit])
    expect(stderr.toString()).not.toContain('svc-agent.service:')
    expect(exitCode).toBe(0)
  }))
