// The tool that makes releases, judged by OpenSSL: what it signs, and what it refuses to sign.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'

const TOOL = join(import.meta.dir, '../../apps/agent/release/main.ts')
const SCRIPT = '#!/bin/sh\necho 1.4.0\n'
setDefaultTimeout(30_000)
let folder = ''
const at = (name: string) => join(folder, name)

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-release-'))
  execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', at('key.pem')])
  execFileSync('openssl', ['pkey', '-in', at('key.pem'), '-pubout', '-out', at('key.pub')])
  writeFileSync(at('agent'), SCRIPT, { mode: 0o755 })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function tool(...args: string[]): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync('bun', [TOOL, ...args, '--key', at('key.pem')], { encoding: 'utf8' })
  return { status, out: stdout, err: stderr }
}

function isVerified(text: string, signature: Buffer): boolean {
  writeFileSync(at('text'), text)
  writeFileSync(at('signature'), signature)
  const args = ['-verify', '-pubin', '-inkey', at('key.pub'), '-rawin', '-in', at('text'), '-sigfile', at('signature')]
  return spawnSync('openssl', ['pkeyutl', ...args]).status === 0
}

test('a packed release holds the executable, and its manifest a signature over the lines of the contract', () => {
  const packed = tool(
    ...['pack', '--executable', at('agent'), '--out', at('out'), '--url', 'https://dl.example.com/agent.zst'],
    ...['--channel', 'beta', '--min-version', '1.2.0', '--revoked', '1.3.9,1.3.10', '--rollout', '25'],
  )
  expect(packed.err).toBe('')
  expect(packed.status).toBe(0)
  const content = readFileSync(at(`out/agent-1.4.0-${process.platform}-${process.arch}.zst`))
  expect(zstdDecompressSync(content).toString()).toBe(SCRIPT)
  const manifest: Record<string, unknown> = JSON.parse(readFileSync(at('out/manifest.json'), 'utf8'))
  const hash = createHash('sha256').update(content).digest('hex')
  expect(manifest).toMatchObject({ version: '1.4.0', sha256: hash, size_bytes: content.length, rollout_percent: 25 })
  const lines = [
    'svc-agent-update-manifest-v1',
    '1.4.0',
    process.platform,
    process.arch,
    'beta',
    hash,
    String(content.length),
    '1.2.0',
    String(manifest.released_at_ms),
    '1.3.10,1.3.9',
    'https://dl.example.com/agent.zst',
  ]
  const signature = Buffer.from(String(manifest.signature_ed25519), 'base64')
  expect(isVerified(lines.join('\n'), signature)).toBe(true)
  expect(isVerified(`${lines.join('\n')}\n`, signature)).toBe(false)
})

test('the signed address of a collector verifies, and holds nothing but address and time', () => {
  const { out } = tool('sign-collector-url', '--url', 'https://new.example.net:8443')
  const found = /^(https:\/\/new\.example\.net:8443)#ed25519=([\w-]{86})&signed_at_ms=(\d{13})\n$/.exec(out)
  expect(found).not.toBeNull()
  const text = ['svc-agent-collector-url-v1', found?.[1], found?.[3]].join('\n')
  expect(isVerified(text, Buffer.from(found?.[2] ?? '', 'base64url'))).toBe(true)
})

test('what agents would refuse is not signed', () => {
  const url = ['--url', 'https://dl.example.com/a']
  const refused = (args: string[], expected: string) => {
    const { status, err } = tool(...args)
    expect(status).toBe(1)
    expect(err).toContain(expected)
  }
  refused(['pack', '--executable', at('agent'), '--url', 'http://dl.example.com/a'], 'must be an https:// address')
  refused(['pack', '--executable', '/bin/true', ...url], 'does not say its version')
  refused(['pack', '--executable', at('agent'), ...url, '--min-version', 'one'], 'one is no version')
  refused(['pack', '--executable', at('agent'), ...url, '--rollout', '101'], 'must be 0 to 100')
  refused(['sign-collector-url', '--url', 'https://new.example.net#x'], 'must not carry')
})
