// `agent install`: this executable becomes a service of systemd, with a user, a configuration and a licence of its own.
// What exists already (configuration, user) stays as it is, so that the command may be repeated and serves an upgrade
// by hand too; what the configuration lacks of what is ordered is added to it.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseDocument } from 'yaml'
import { ensureFolder, type FileOwner, replaceFile, writeNewFile } from '../files/replace-file.ts'
import { authorityFaults } from '../process/certificate-files.ts'
import { describeFault } from '../process/config-file.ts'
import { collectorUrlFault } from './transport/collector-address.ts'
import { hasPrivateKey, isReleaseKey, RELEASE_KEY_WANTED } from './update/signature.ts'

const USER = 'svc-agent'
const SERVICE = 'svc-agent.service'
const PATHS = {
  executable: '/opt/svc-agent/agent',
  config: '/etc/svc-agent/agent.yaml',
  license: '/etc/svc-agent/license',
  ca: '/etc/svc-agent/ca.pem',
  releaseKey: '/etc/svc-agent/release.pem',
  state: '/var/lib/svc-agent',
  unit: `/etc/systemd/system/${SERVICE}`,
}

/**
 * The unit. The folder of the executable belongs to the agent's user, because updates replace it; everything else is
 * read-only. No ProtectHome and no PrivateTmp: they would hide file systems whose sizes are asked for.
 */
export const unitText = `[Unit]
Description=monitoring agent
Documentation=file:${PATHS.config}
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=${PATHS.executable} run --config ${PATHS.config}
User=${USER}
Group=${USER}
StateDirectory=${USER}
StateDirectoryMode=0700
ReadWritePaths=${dirname(PATHS.executable)}
Restart=always
RestartSec=5
TimeoutStopSec=30
MemoryMax=256M
UMask=0077
NoNewPrivileges=yes
ProtectSystem=strict
ProtectControlGroups=yes
ProtectKernelModules=yes
RestrictSUIDSGID=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
`

type InstallOrder = {
  /** The compiled executable that is installed. */
  readonly executable: string
  /** Null: that of the configuration which is there. */
  readonly collectorUrl: string | null
  readonly license: string | null
  readonly caFile: string | null
  readonly releaseKeyFile: string | null
  /** Files go below this folder, and nothing is started: for images and packages. */
  readonly root: string | null
  readonly say: (line: string) => void
}

const succeeds = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] }).status === 0

/** Numbers of the user and the group; null before they are made. */
function userIds(): FileOwner | null {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find(entry => entry.startsWith(`${USER}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid !== undefined && gid !== undefined ? { uid: Number(uid), gid: Number(gid) } : null
}

function makeUser(): FileOwner {
  const known = userIds()
  if (known !== null) return known
  const options = [
    '--system',
    '--user-group',
    '--no-create-home',
    '--home-dir',
    PATHS.state,
    '--shell',
    '/usr/sbin/nologin',
  ]
  if (!succeeds('useradd', ...options, USER)) throw new Error(`cannot make the user ${USER}`)
  const made = userIds()
  if (made === null) throw new Error(`the user ${USER} is not in /etc/passwd`)
  return made
}

/**
 * Puts the executable in place. Its folder belongs to the agent's user, who may plant links there: root writes the file
 * in a folder of its own beside that one and moves it over, which is safe whatever stands under the name, and a running
 * executable is not written to.
 */
function placeExecutable(source: string, target: string, owner: FileOwner | null): void {
  const content = readFileSync(source)
  const staging = mkdtempSync(join(dirname(dirname(target)), `.${USER}-`))
  try {
    const staged = join(staging, 'agent')
    writeNewFile(staged, content, { mode: 0o755, owner, isDurable: true })
    renameSync(staged, target)
  } catch (error) {
    const isOtherDisk = error instanceof Error && 'code' in error && error.code === 'EXDEV'
    if (!isOtherDisk) throw error
    // The folder is a file system of its own.
    replaceFile(target, content, { mode: 0o755, owner, isDurable: true })
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }
}

type Wanted = readonly (readonly [path: readonly string[], value: string])[]

const keyOf = (path: readonly string[]): string => path.join('.')

/**
 * The configuration of the operator with what it lacks of what is wanted, comments and all; null where it lacks
 * nothing. What it says otherwise stays, and `say` is told.
 */
function completed(text: string, wanted: Wanted, say: (line: string) => void): string | null {
  const document = parseDocument(text)
  let isChanged = false
  for (const [path, value] of wanted) {
    // Keys may be written with dots too.
    const given: unknown = document.get(keyOf(path)) ?? document.getIn(path)
    if (given === undefined) {
      document.setIn(path, value)
      isChanged = true
    } else if (given !== value)
      say(`${keyOf(path)} is ${String(given)} there and stays so: to have ${value}, change it in the file`)
  }
  return isChanged ? document.toString() : null
}

/** What everybody on the host may read; null where it is not ordered. Throws on a file that holds anything else. */
function publicFiles({ caFile, releaseKeyFile }: InstallOrder): { ca: string | null; releaseKey: string | null } {
  const [fault] = authorityFaults({ '--ca-file': caFile }, '--ca-file')
  if (fault !== undefined) throw new Error(describeFault(fault))
  const ca = caFile === null ? null : readFileSync(caFile, 'utf8')
  if (ca !== null && hasPrivateKey(ca)) throw new Error(`--ca-file = ${caFile} holds a private key: give certificates`)
  const releaseKey = releaseKeyFile === null ? null : readFileSync(releaseKeyFile, 'utf8')
  if (releaseKey !== null && !isReleaseKey(releaseKey))
    throw new Error(`--release-key-file = ${releaseKeyFile} ${RELEASE_KEY_WANTED}`)
  return { ca, releaseKey }
}

/** Installs. Throws, in words for the operator, when a step fails; the command may then be repeated. */
export function install(order: InstallOrder): void {
  const { executable, collectorUrl, license, root, say } = order
  const fault = collectorUrl === null ? null : collectorUrlFault(collectorUrl)
  if (fault !== null) throw new Error(`--collector-url: ${fault}`)
  if (root === null && process.geteuid?.() !== 0) throw new Error('this needs root: run it with sudo')
  const at = (path: string) => join(root ?? '/', path)
  if (collectorUrl === null && !existsSync(at(PATHS.config)))
    throw new Error(`--collector-url: is needed, for there is no ${at(PATHS.config)} yet`)
  const { ca, releaseKey } = publicFiles(order)
  // Nothing is made on the host before the order is known to be sound.
  const owner = root === null ? makeUser() : null
  const put = (path: string, text: string, mode: number, fileOwner: FileOwner | null = null) => {
    mkdirSync(dirname(at(path)), { recursive: true })
    replaceFile(at(path), text, { mode, owner: fileOwner })
    say(at(path))
  }
  ensureFolder(dirname(at(PATHS.executable)), 0o755, owner)
  if (executable !== at(PATHS.executable)) {
    placeExecutable(executable, at(PATHS.executable), owner)
    say(at(PATHS.executable))
  }
  const wanted: (readonly [readonly string[], string])[] = []
  if (collectorUrl !== null) wanted.push([['collector_url'], collectorUrl], [['license_file'], PATHS.license])
  if (ca !== null) {
    put(PATHS.ca, ca, 0o644)
    wanted.push([['tls', 'ca_file'], PATHS.ca])
  }
  if (releaseKey !== null) {
    put(PATHS.releaseKey, releaseKey, 0o644)
    wanted.push([['update', 'public_key_file'], PATHS.releaseKey])
  }
  if (license !== null) put(PATHS.license, `${license}\n`, 0o600, owner)
  const kept = existsSync(at(PATHS.config)) ? readFileSync(at(PATHS.config), 'utf8') : null
  const text = completed(kept ?? '', wanted, say)
  if (text === null) say(`${at(PATHS.config)} is there already and stays as it is`)
  else if (kept === null) put(PATHS.config, text, 0o644)
  else {
    const { mode, uid, gid } = statSync(at(PATHS.config))
    put(PATHS.config, text, mode & 0o777, root === null ? { uid, gid } : null)
  }
  put(PATHS.unit, unitText, 0o644)
  // As systemd would make it: without systemd nobody else does.
  if (owner !== null) ensureFolder(PATHS.state, 0o700, owner)
  if (root !== null) {
    say(
      `on the host itself: make the user ${USER}, give it ${dirname(PATHS.executable)} and ${PATHS.license}, enable ${SERVICE};`,
    )
    say(`or run ${PATHS.executable} install there, which does all of it`)
    return
  }
  if (!existsSync('/run/systemd/system')) {
    say(
      `systemd does not run here: start ${PATHS.executable} run --config ${PATHS.config} as user ${USER} by other means`,
    )
    return
  }
  if (!succeeds('systemctl', 'daemon-reload') || !succeeds('systemctl', 'enable', SERVICE))
    throw new Error(`cannot enable ${SERVICE}`)
  if (!succeeds('systemctl', 'restart', SERVICE))
    throw new Error(`cannot start ${SERVICE}: see journalctl -u ${SERVICE}`)
  say(
    `started; what it does: sudo -u ${USER} ${PATHS.executable} status --config ${PATHS.config}, journalctl -u ${SERVICE}`,
  )
}
