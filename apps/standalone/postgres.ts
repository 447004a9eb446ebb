// The embedded PostgreSQL: real server binaries from the package, as a child process that ends with this one.
// PostgreSQL refuses to run as root, so root starts it as another user. That one could not enter a data directory below
// folders that are root's alone: the server is started inside of its data directory and knows it as /proc/self/cwd, a
// name that leads there without passing what lies above. It needs no capability for that, and has none.
import { type ChildProcess, spawn } from 'node:child_process'
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import pTimeout from 'p-timeout'
import { type FileOwner, writeNewFile } from '../files/replace-file.ts'
import { freePort } from './ports.ts'
import { findPrograms, type PostgresPrograms, programsFor } from './postgres-programs.ts'
import { serverUser } from './postgres-user.ts'

const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 10_000
/** The superuser of the data. The hub works as another role (makeHubRole). */
const USER = 'svc'
const HERE = '/proc/self/cwd'

type RunningPostgres = {
  /** The URL of the superuser: for preparing the database, not for the hub. */
  readonly url: string
  /** Resolves when the server ends that nobody stopped, as one does that runs out of memory. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

const isLinuxRoot = (user: FileOwner | null): boolean => user !== null && process.platform === 'linux'
/** What a server that is started in `directory` calls it. */
const nameFor = (user: FileOwner | null, directory: string): string => (isLinuxRoot(user) ? HERE : directory)

/** What is started: by whom, in which directory, with which standard input. */
type Start = {
  readonly user: FileOwner | null
  readonly directory: string
  readonly stdin: 'pipe' | number
  readonly log: number
}

function start({ user, directory, stdin, log }: Start, command: readonly string[]): ChildProcess {
  const setpriv = user && ['/usr/bin/setpriv', '/bin/setpriv'].find(path => existsSync(path))
  // Programs that would give the user more rights, as sudo does, give none.
  const [program = '', ...args] = setpriv ? [setpriv, '--no-new-privs', ...command] : command
  // A session of its own: Ctrl-C in the terminal reaches this process only, which stops the database last.
  return spawn(program, args, {
    ...user,
    detached: true,
    stdio: [stdin, log, log],
    cwd: user ? directory : '/',
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

/**
 * Creates the data in another place and moves them once they are complete, so that a start that was killed leaves no
 * data that look complete.
 */
async function initialise(
  programs: PostgresPrograms,
  user: FileOwner | null,
  directory: string,
  password: string,
  logPath: string,
): Promise<void> {
  if (existsSync(directory) && readdirSync(directory).length > 0)
    throw new Error(
      `cannot create the PostgreSQL data: ${directory} holds something that is none; restore it, or move it away`,
    )
  const making = `${directory}.new`
  const passwordFile = `${directory}.password`
  for (const path of [making, passwordFile]) rmSync(path, { recursive: true, force: true })
  mkdirSync(making, { recursive: true, mode: 0o700 })
  if (user) chownSync(making, user.uid, user.gid)
  writeNewFile(passwordFile, `${password}\n`, { owner: user })
  const stdin = openSync(passwordFile, 'r')
  const log = openSync(logPath, 'a', 0o600)
  const command = [
    programs.initdb,
    `--pgdata=${nameFor(user, making)}`,
    `--username=${USER}`,
    `--pwfile=${isLinuxRoot(user) ? '/proc/self/fd/0' : passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // Letters have capitals in every script; texts are ordered by code point, on every host alike.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
  ]
  try {
    const code = await exitOf(start({ user, directory: making, stdin, log }, command))
    if (code !== 0) throw new Error(`cannot create the PostgreSQL data in ${directory}:\n${lastLines(logPath)}`)
    renameSync(making, directory)
  } finally {
    for (const descriptor of [stdin, log]) closeSync(descriptor)
    rmSync(passwordFile, { force: true })
  }
}

/**
 * Whether a process is a server on this directory. The pid file may have been restored or have outlived a power
 * failure, and its number may then belong to any process.
 */
function isServerOf(pid: number, directory: string): boolean {
  try {
    // A server works inside of its data directory, whatever name it was given for it.
    return process.platform !== 'linux' || readlinkSync(`/proc/${pid}/cwd`) === realpathSync(directory)
  } catch {
    return false
  }
}

/**
 * A server that outlived its parent (killed with no time to stop it) is asked to end before another starts on its data.
 */
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

/** The server writes its port and its state into its pid file; a file with another port is from an earlier run. */
function isReady(directory: string, port: number): boolean {
  try {
    const lines = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
    return lines[3]?.trim() === String(port) && lines[7]?.trim() === 'ready'
  } catch {
    return false
  }
}

/**
 * Starts the server on data in `directory`, which is made when it is not there. Listens on loopback, with a password.
 */
export async function startPostgres(directory: string, password: string, logPath: string): Promise<RunningPostgres> {
  const user = serverUser(directory)
  const programs = programsFor(user, findPrograms())
  if (!existsSync(join(directory, 'PG_VERSION'))) await initialise(programs, user, directory, password, logPath)
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
    programs.postgres,
    '-D',
    nameFor(user, directory),
    ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
  ]
  // The shell watches the pipe from this process: when it closes, however this process ends, the server is asked to
  // stop.
  const watch =
    'exec 3<&0; "$@" </dev/null 3<&- & server=$!; (read -r _ <&3; kill -INT $server 2>/dev/null) & wait $server'
  const log = openSync(logPath, 'a', 0o600)
  const child = start({ user, directory, stdin: 'pipe', log }, ['/bin/sh', '-c', watch, 'sh', ...server])
  closeSync(log)
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
  let isStopping = false
  const ended = Promise.withResolvers<void>()
  const onExit = (): void => {
    if (!isStopping) ended.resolve()
  }
  exited.then(onExit, onExit)
  return {
    ended: ended.promise,
    url: `postgres://${USER}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
    stop: async () => {
      isStopping = true
      child.stdin?.end()
      await pTimeout(exited, { milliseconds: STOP_TIMEOUT_MS, fallback: () => null })
    },
  }
}
