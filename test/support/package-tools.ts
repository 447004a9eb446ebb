// Package databases made by the tools of the systems themselves, in folders of their own: what they say is the truth
// that the scanner is compared with.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder that stands for the root of a system. */
export class SystemRoot {
  readonly path = mkdtempSync(join(tmpdir(), 'system-root-'))

  write(path: string, content: string | Uint8Array): string {
    const full = join(this.path, path)
    mkdirSync(join(full, '..'), { recursive: true })
    writeFileSync(full, content)
    return full
  }

  read(path: string): string {
    return readFileSync(join(this.path, path), 'utf8')
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** Runs a tool to its end. Throws with what it said when it is missing or fails. */
export function runTool(command: readonly string[], from: string): string {
  const tool = command[0]!
  if (Bun.which(tool) === null) throw new Error(`${tool} is not installed: apt-get install ${from} (CI does)`)
  const child = Bun.spawnSync([...command], { env: { ...process.env, LC_ALL: 'C' } })
  if (child.exitCode !== 0) throw new Error(`${command.join(' ')}: ${child.stderr.toString()}`)
  return child.stdout.toString()
}

/** Builds a package of dpkg out of its control fields, and answers with its path. */
export function buildDeb(folder: string, name: string, control: Readonly<Record<string, string>>): string {
  const tree = join(folder, name)
  mkdirSync(join(tree, 'DEBIAN'), { recursive: true })
  mkdirSync(join(tree, 'usr/share', name), { recursive: true })
  writeFileSync(join(tree, 'usr/share', name, 'file'), name)
  const fields = { Maintainer: 'Nobody <nobody@example.net>', Description: `${name} of a test`, ...control }
  const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}\n`)
  writeFileSync(join(tree, 'DEBIAN/control'), lines.join(''))
  runTool(['dpkg-deb', '--root-owner-group', '-b', tree, `${tree}.deb`], 'dpkg')
  return `${tree}.deb`
}

/** Runs dpkg on a root; packages have no scripts, so that nothing of the root is executed. */
export function dpkg(root: SystemRoot, ...args: readonly string[]): string {
  const forced = ['--force-not-root', '--force-depends', '--force-bad-path', '--force-architecture']
  return runTool(['dpkg', '--log=/dev/null', `--root=${root.path}`, ...forced, ...args], 'dpkg')
}

/** A root with an empty dpkg database. */
export function dpkgRoot(): SystemRoot {
  const root = new SystemRoot()
  root.write('var/lib/dpkg/status', '')
  for (const folder of ['info', 'updates', 'triggers']) mkdirSync(join(root.path, 'var/lib/dpkg', folder))
  root.write('etc/os-release', 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n')
  return root
}

type RpmSpec = {
  readonly name: string
  readonly version: string
  readonly release: string
  readonly epoch?: number
  readonly vendor?: string
  readonly module?: string
  /** Further packages of the same source. */
  readonly packages?: readonly string[]
}

/** Builds the packages of a source with rpmbuild, and answers with their paths. */
export function buildRpms(folder: string, spec: RpmSpec): string[] {
  const top = join(folder, spec.name)
  mkdirSync(top, { recursive: true })
  const lines = [
    `Name: ${spec.name}`,
    `Version: ${spec.version}`,
    `Release: ${spec.release}`,
    ...(spec.epoch === undefined ? [] : [`Epoch: ${spec.epoch}`]),
    ...(spec.vendor === undefined ? [] : [`Vendor: ${spec.vendor}`]),
    ...(spec.module === undefined ? [] : [`ModularityLabel: ${spec.module}`]),
    ...['Summary: of a test', 'License: none', 'BuildArch: noarch', '%description', 'of a test', '%files'],
    ...(spec.packages ?? []).flatMap(name => [
      `%package -n ${name}`,
      'Summary: of a test',
      `%description -n ${name}`,
      'of a test',
      `%files -n ${name}`,
    ]),
  ]
  const path = join(top, 'package.spec')
  writeFileSync(path, `${lines.join('\n')}\n`)
  runTool(['rpmbuild', '-bb', '--quiet', '--define', `_topdir ${top}`, path], 'rpm')
  const rpms = join(top, 'RPMS/noarch')
  return [...new Bun.Glob('*.rpm').scanSync(rpms)].map(name => join(rpms, name)).sort()
}

/** Writes packages into a database of rpm, without their files. */
export function installRpms(database: string, rpms: readonly string[]): void {
  mkdirSync(database, { recursive: true })
  runTool(['rpm', '-i', '--justdb', '--nodeps', '--nosignature', '--dbpath', database, ...rpms], 'rpm')
}
