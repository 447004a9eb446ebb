// The executable itself: commands, exit codes, a kill at any instant, no listening port, memory.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOf } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { makeCertificate } from './certificate.ts'
import { Peer, protocolError } from './peer.ts'

const DEADLINE_MS = 40_000
let peer: Peer
let folder = ''
let running: { kill: (signal: NodeJS.Signals) => void; exited: Promise<number> }[] = []

beforeEach(() => {
  peer = new Peer()
  folder = mkdtempSync(join(tmpdir(), 'agent-executable-'))
})
afterEach(async () => {
  for (const child of running) {
    child.kill('SIGKILL')
    await child.exited
  }
  running = []
  await peer.stop()
  rmSync(folder, { recursive: true, force: true })
})

const stateDir = () => join(folder, 'state')

function configFile(more = ''): string {
  const path = join(folder, 'agent.yaml')
  writeFileSync(path, `collector_url: ${peer.url}\nstate_dir: ${stateDir()}\nlicense: lic_x\ninterval: 10s\n${more}`)
  return path
}

async function command(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const child = Bun.spawn([...commandOf('agent'), ...args], { stdout: 'pipe', stderr: 'pipe', stdin: 'ignore' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, out, err }
}

function runWith(env: Record<string, string>, config: string, ...args: string[]) {
  const child = Bun.spawn([...commandOf('agent'), 'run', '--config', config, ...args], {
    env: { ...process.env, ...env },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  running.push(child)
  return child
}

const run = (config: string, ...args: string[]) => runWith({}, config, ...args)

/** Empty until the agent has written its status for the first time. */
const status = (): Record<string, unknown> => {
  const path = join(stateDir(), 'status.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {}
}
const buffered = (): string[] => readdirSync(join(stateDir(), 'buffer')).filter(name => name.endsWith('.batch'))

test(
  '--version, --help and check-config',
  async () => {
    expect((await command('--version')).out.trim()).toMatch(/^\d+\.\d+\.\d+/)
    expect((await command('--help')).out).toContain('enroll')
    expect(await command('check-config', '--config', configFile())).toMatchObject({
      code: 0,
      out: 'the configuration is valid\n',
    })
    const bad = await command('check-config', '--config', configFile('intervall: 5s\nbuffer:\n  max_bytes: 1\n'))
    expect(bad.code).toBe(1)
    expect(bad.err).toContain('intervall')
    expect(bad.err).toContain('buffer.max_bytes')
    expect(bad.err).not.toContain('lic_x')
  },
  DEADLINE_MS,
)

test(
  'an agent that knows no collector and no matcher does not start, and check-config says why',
  async () => {
    const path = join(folder, 'nowhere.yaml')
    writeFileSync(path, `state_dir: ${join(folder, 'nowhere')}\n`)
    for (const word of ['check-config', 'run']) {
      const { code, err } = await command(word, '--config', path)
      expect([code, err]).toEqual([
        1,
        'collector_url: is not set: in the file of --config, as SVC_COLLECTOR_URL, or by --collector-url\n',
      ])
    }
    expect(existsSync(join(folder, 'nowhere'))).toBe(false)
    writeFileSync(path, `state_dir: ${join(folder, 'nowhere')}\nscan: { matcher_url: "https://matcher.example.net" }\n`)
    expect((await command('check-config', '--config', path)).code).toBe(0)
  },
  DEADLINE_MS,
)

test(
  'agent enroll keeps the token with mode 0600, and the agent then runs without a licence',
  async () => {
    const args = ['--license', 'lic_x', '--collector-url', peer.url, '--state-dir', stateDir()]
    const enrolled = await command('enroll', ...args)
    expect(enrolled.code).toBe(0)
    expect(enrolled.out).toContain(peer.agentId)
    expect(enrolled.out).not.toContain('agt_first')
    expect(statSync(join(stateDir(), 'token')).mode & 0o777).toBe(0o600)
    // The licence is gone from the host, though the configuration still names its file.
    const path = join(folder, 'bare.yaml')
    writeFileSync(path, `state_dir: ${stateDir()}\nlicense_file: ${join(folder, 'gone')}\n`)
    expect((await command('check-config', '--config', path, '--state-dir', join(folder, 'fresh'))).err).toContain(
      'license_file',
    )
    const ready = join(folder, 'ready.json')
    run(path, '--ready-file', ready)
    await until('an inventory', () => peer.inventories.length > 0, DEADLINE_MS)
    expect(JSON.parse(readFileSync(ready, 'utf8')).agent_id).toBe(peer.agentId)
    expect(peer.enrollments.length).toBe(1)
  },
  DEADLINE_MS,
)

test(
  '[AGT-044 AGT-047] agent enroll says what was refused and ends with 1, asking once',
  async () => {
    const args = ['--license', 'lic_x', '--collector-url', peer.url, '--state-dir', stateDir()]
    peer.next('POST /enroll', protocolError(409, 'already_enrolled'), protocolError(422, 'quota_exceeded'))
    for (const code of ['already_enrolled', 'quota_exceeded']) {
      const refused = await command('enroll', ...args)
      expect(refused.code).toBe(1)
      expect(refused.err).toContain(code)
    }
    expect(peer.of('POST /enroll').length).toBe(2)
  },
  DEADLINE_MS,
)

/** What a shell runs the agent in when no file may grow by a byte: names can still be made, as on a full disk. */
const WITHOUT_ROOM = ['sh', '-c', 'trap \'\' XFSZ; ulimit -f 0; exec "$@"', 'sh']

test(
  'on a full disk agent enroll and agent run leave the licence unspent',
  async () => {
    const args = ['--license', 'lic_x', '--collector-url', peer.url, '--state-dir', stateDir()]
    const refused = Bun.spawn([...WITHOUT_ROOM, ...commandOf('agent'), 'enroll', ...args], {
      stdout: 'ignore',
      stderr: 'pipe',
    })
    running.push(refused)
    expect(await new Response(refused.stderr).text()).toContain('cannot keep a token in the state directory')
    expect(await refused.exited).toBe(1)
    const waiting = Bun.spawn([...WITHOUT_ROOM, ...commandOf('agent'), 'run', '--config', configFile()], {
      stdout: 'pipe',
      stderr: 'ignore',
    })
    running.push(waiting)
    let said = ''
    for await (const part of waiting.stdout) {
      said += new TextDecoder().decode(part)
      if (said.includes('not enrolled yet')) break
    }
    expect(said).toContain('cannot keep a token in the state directory')
    expect(peer.seen).toEqual([])
    expect(readdirSync(stateDir())).not.toContain('probe')
  },
  DEADLINE_MS,
)

test(
  'a token that the disk refuses once the licence is spent is tried again by agent enroll, and said',
  async () => {
    const blocked = join(stateDir(), 'token.tmp')
    peer.always('POST /enroll', () => {
      mkdirSync(blocked)
      return null
    })
    const args = ['--license', 'lic_x', '--collector-url', peer.url, '--state-dir', stateDir()]
    const child = Bun.spawn([...commandOf('agent'), 'enroll', ...args], { stdout: 'pipe', stderr: 'pipe' })
    running.push(child)
    let said = ''
    for await (const part of child.stderr) {
      said += new TextDecoder().decode(part)
      if (said.includes('make room')) rmSync(blocked, { recursive: true })
    }
    expect(said).toContain('the token cannot be kept')
    expect(await child.exited).toBe(0)
    expect(readFileSync(join(stateDir(), 'token'), 'utf8')).toContain(peer.agentId)
    expect(peer.enrollments.length).toBe(1)
  },
  DEADLINE_MS,
)

test(
  'agent enroll refuses plain http to another host',
  async () => {
    const args = ['--license', 'lic_x', '--collector-url', 'http://collector.example.com', '--state-dir', stateDir()]
    const refused = await command('enroll', ...args)
    expect(refused.code).toBe(1)
    expect(refused.err).toContain('https')
  },
  DEADLINE_MS,
)

test(
  '[AGT-042] agent status tells the state that the agent wrote',
  async () => {
    const config = configFile()
    expect((await command('status', '--config', config)).code).toBe(1)
    const child = run(config)
    for (const route of ['POST /metrics', 'POST /inventory'])
      peer.always(route, () => protocolError(401, 'unauthorized'))
    await until(
      'unauthorized',
      () => peer.of('POST /inventory').length > 0 && status().state === 'unauthorized',
      DEADLINE_MS,
    )
    const told = await command('status', '--config', config, '--json')
    expect(JSON.parse(told.out).state).toBe('unauthorized')
    expect((await command('status', '--config', config)).out).toMatch(/^state\s+unauthorized/)
    child.kill('SIGTERM')
    await child.exited
    expect((await command('status', '--config', config)).out).toMatch(
      /^the agent is not running.*\nstate\s+unauthorized/,
    )
  },
  DEADLINE_MS,
)

test(
  'agent status says in one line that an empty or cut status cannot be read',
  async () => {
    mkdirSync(stateDir())
    for (const text of ['', '{"state": "onl', 'null']) {
      writeFileSync(join(stateDir(), 'status.json'), text)
      const { code, out, err } = await command('status', '--config', configFile())
      expect([code, out]).toEqual([1, ''])
      expect(err).toMatch(/^cannot read the status: .*\n$/)
    }
  },
  DEADLINE_MS,
)

test(
  'what was buffered survives kill -9, and arrives after the next start',
  async () => {
    peer.always('POST /metrics', () => protocolError(503, 'unavailable'))
    const config = configFile()
    const first = run(config)
    await until('a buffered cycle', () => peer.of('POST /metrics').length > 0 && buffered().length > 0, DEADLINE_MS)
    first.kill('SIGKILL')
    await first.exited
    const waiting = buffered().length
    expect(waiting).toBeGreaterThan(0)
    peer.always('POST /metrics', null)
    const restartedAtMs = Date.now()
    run(config)
    await until('a batch', () => peer.batches.length > 0, DEADLINE_MS)
    expect(peer.points('uptime_seconds').filter(({ tsMs }) => tsMs < restartedAtMs).length).toBe(waiting)
    expect(peer.enrollments.length).toBe(1)
  },
  DEADLINE_MS,
)

test(
  'a second agent on one state directory is refused, in words; after a kill the directory is free',
  async () => {
    const config = configFile()
    const ready = join(folder, 'ready.json')
    const first = run(config, '--ready-file', ready)
    await until('the first agent', () => existsSync(ready), DEADLINE_MS)
    const second = await command('run', '--config', config)
    expect(second.code).toBe(1)
    expect(second.err).toContain('another agent uses this state directory')
    first.kill('SIGKILL')
    await first.exited
    rmSync(ready)
    run(config, '--ready-file', ready)
    await until('the next agent', () => existsSync(ready), DEADLINE_MS)
  },
  DEADLINE_MS,
)

test(
  'a state directory that cannot be made ends the start, in words',
  async () => {
    const path = join(folder, 'file')
    writeFileSync(path, '')
    const refused = await command('run', '--config', configFile(), '--state-dir', join(path, 'state'))
    expect(refused.code).toBe(1)
    expect(refused.err).toMatch(/cannot start: .*(ENOTDIR|not a directory)/)
    expect(refused.err).not.toContain('at ')
  },
  DEADLINE_MS,
)

test(
  '[AGT-001] the agent opens no listening port, stays under 100 MB, and ends on SIGTERM',
  async () => {
    const ready = join(folder, 'ready.json')
    const child = run(configFile(), '--ready-file', ready)
    await until('a batch', () => peer.batches.length > 0, DEADLINE_MS)
    const inodes = new Set<string>()
    for (const descriptor of readdirSync(`/proc/${child.pid}/fd`)) {
      try {
        const found = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${child.pid}/fd/${descriptor}`))
        if (found) inodes.add(found[1]!)
      } catch {
        // The descriptor was closed meanwhile.
      }
    }
    expect(inodes.size).toBeGreaterThan(0)
    const sockets = ['tcp', 'tcp6', 'udp', 'udp6'].flatMap(name =>
      readFileSync(`/proc/${child.pid}/net/${name}`, 'utf8')
        .trim()
        .split('\n')
        .slice(1)
        .map(line => line.trim().split(/\s+/)),
    )
    const own = sockets.filter(fields => inodes.has(fields[9]!))
    expect(own.length).toBeGreaterThan(0)
    expect(own.filter(fields => fields[3] === '0A' || fields[3] === '07')).toEqual([])
    expect(Number(peer.batches[0]?.stats?.rssBytes)).toBeLessThan(100_000_000)
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
    expect(() => statSync(ready)).toThrow()
  },
  DEADLINE_MS,
)

test(
  'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored, and said: the licence goes to nobody whose certificate does not verify',
  async () => {
    const secure = new Peer(makeCertificate(folder))
    try {
      const config = configFile()
      runWith({ NODE_TLS_REJECT_UNAUTHORIZED: '0' }, config, '--collector-url', secure.url)
      await until('a refusal', () => Boolean(status().last_error), DEADLINE_MS)
      expect(String(status().last_error)).toContain('certificate')
      expect(String(status().warnings)).toContain('NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored')
      expect(secure.seen).toEqual([])
    } finally {
      await secure.stop()
    }
  },
  DEADLINE_MS,
)

test(
  'no proxy of the environment sees what goes to the own host; one that is used is told',
  async () => {
    const asked: string[] = []
    const proxy = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: request => {
        asked.push(request.url)
        return new Response(null, { status: 502 })
      },
    })
    const address = `http://127.0.0.1:${proxy.port}`
    const env = { HTTP_PROXY: address, http_proxy: address, HTTPS_PROXY: address, NO_PROXY: '', no_proxy: '' }
    try {
      const first = runWith(env, configFile())
      await until('a batch', () => peer.batches.length > 0, DEADLINE_MS)
      await until('the state online', () => status().state === 'online', DEADLINE_MS)
      expect(status().warnings).toEqual([])
      expect(asked).toEqual([])
      first.kill('SIGTERM')
      await first.exited
      const elsewhere = ['--collector-url', 'https://collector.invalid', '--state-dir', stateDir()]
      rmSync(stateDir(), { recursive: true })
      runWith(env, configFile(), ...elsewhere)
      await until('a refusal', () => Boolean(status().last_error), DEADLINE_MS)
      expect(status().warnings).toEqual([
        'HTTPS_PROXY is set: requests to collector.invalid go through a proxy, unless NO_PROXY names it',
      ])
    } finally {
      await proxy.stop(true)
    }
  },
  DEADLINE_MS,
)

test(
  'SIGHUP does not end the agent',
  async () => {
    const child = run(configFile())
    await until('an inventory', () => peer.inventories.length > 0, DEADLINE_MS)
    child.kill('SIGHUP')
    const batches = peer.batches.length
    await until('a batch after the signal', () => peer.batches.length > batches, DEADLINE_MS)
    // The status is written after the response to the batch has been read.
    await until('the state online', () => status().state === 'online', DEADLINE_MS)
    process.kill(Number(status().pid), 0)
  },
  DEADLINE_MS,
)

test(
  'the status says in words why the collector does not answer',
  async () => {
    const self = new Peer(makeCertificate(folder))
    const saysOf = async (url: string): Promise<string> => {
      const child = runWith(
        {},
        configFile(),
        '--collector-url',
        url,
        '--state-dir',
        join(folder, url.replaceAll('/', '_')),
      )
      const file = join(folder, url.replaceAll('/', '_'), 'status.json')
      const lastError = () => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).last_error : null)
      await until('a refusal', () => lastError() !== null, DEADLINE_MS)
      child.kill('SIGTERM')
      return lastError()
    }
    try {
      expect(await saysOf('http://127.0.0.1:1')).toBe(
        'enrollment: 127.0.0.1:1: connection refused: nothing listens there',
      )
      expect(await saysOf(self.url)).toEndWith(': its certificate is self-signed: name it with tls.ca_file')
      expect(await saysOf(peer.url.replace('http:', 'https:'))).toContain('the TLS handshake failed')
    } finally {
      await self.stop()
    }
  },
  DEADLINE_MS,
)
