// File systems and block devices of a Linux host, from /proc/self/mountinfo, statfs(2) and /proc/diskstats
// (metrics.md 29-43). Used percent = used / (used + available to users), as df.
import { type CounterReading, counterDeltas, fieldsOfLines, numbersFrom, windowSeconds } from './counter-rates.ts'
import { isFileSystemReported, type NameFilter } from './filters.ts'
import type { Sample } from './requests-of-cycles.ts'

export type Mount = {
  readonly mount: string
  readonly device: string
  readonly fstype: string
  readonly isReadonly: boolean
  /** Whether the file system itself is read-only, and not this mount of it alone. */
  readonly isWholeReadonly: boolean
  /** major:minor: one file system has one, however often it is mounted. */
  readonly deviceNumber: string
  /** Whether asking for its size may hang for ever: by what it is, or by what lies on the way to it. */
  readonly mayHang: boolean
}

/** What statfs says of a file system; counts of blocks and inodes. */
export type StatFs = {
  readonly bsize: number
  readonly blocks: number
  readonly bfree: number
  readonly bavail: number
  readonly files: number
  readonly ffree: number
}

const SECTOR_BYTES = 512

/** Space, tab, newline and backslash are written as \040, \011, \012 and \134. */
const unescapeMount = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))

/** The folders above a path, the root first: `/`, `/srv`. */
function* foldersAbove(path: string): Generator<string> {
  if (path === '/') return
  yield '/'
  for (let slash = path.indexOf('/', 1); slash > 0; slash = path.indexOf('/', slash + 1)) yield path.slice(0, slash)
}

type PlacedMount = Omit<Mount, 'mayHang'> & { readonly id: string; readonly parent: string }

/**
 * Leaves out mounts that no path leads to: a later mount over a folder above hides them, and asked by their path they
 * would answer with its numbers. It hangs on the same parent, at a folder above theirs, or hides the parent so.
 */
function withoutHidden(mounts: readonly PlacedMount[]): PlacedMount[] {
  const byId = new Map(mounts.map(mount => [mount.id, mount]))
  const pointsOnParent = new Map<string, Set<string>>()
  for (const { id, mount, parent } of mounts) {
    // The first file system of all may be its own parent, and lies over nothing.
    if (id === parent) continue
    const points = pointsOnParent.get(parent)
    if (points) points.add(mount)
    else pointsOnParent.set(parent, new Set([mount]))
  }
  const known = new Map<string, boolean>()
  const isHidden = ({ id, parent, mount }: PlacedMount): boolean => {
    const before = known.get(id)
    if (before !== undefined) return before
    known.set(id, false)
    const points = pointsOnParent.get(parent)
    const above = byId.get(parent)
    const isIt = foldersAbove(mount).some(folder => points?.has(folder)) || (above !== undefined && isHidden(above))
    known.set(id, isIt)
    return isIt
  }
  return mounts.filter(mount => !isHidden(mount))
}

/**
 * The mounts of /proc/self/mountinfo that a path leads to; of several over one point the last one is seen. A local file
 * system below a dead server's is reached through it, and one over another through that: each counts for `mayHang`.
 */
export function parseMountInfo(text: string): Mount[] {
  const placed: PlacedMount[] = []
  const hanging = new Set<string>()
  for (const line of text.split('\n')) {
    // One blank parts two fields, and a source may be empty: two blanks then.
    const fields = line.split(' ')
    const dash = fields.indexOf('-', 6)
    const [fstype, device, superOptions] = dash < 0 ? [] : fields.slice(dash + 1)
    if (!fields[4] || !fields[5] || !fstype || device === undefined) continue
    const isWholeReadonly = superOptions?.split(',').includes('ro') ?? false
    const mount = unescapeMount(fields[4])
    placed.push({
      id: fields[0]!,
      parent: fields[1]!,
      mount,
      device: unescapeMount(device) || 'none',
      fstype,
      isReadonly: isWholeReadonly || fields[5].split(',').includes('ro'),
      isWholeReadonly,
      deviceNumber: fields[2]!,
    })
    // The layers of the root's overlay are not seen from inside; where they hang, the agent's own executable does too.
    if (mayHang(fstype) && !(fstype === 'overlay' && mount === '/')) hanging.add(mount)
  }
  const byPoint = new Map(withoutHidden(placed).map(({ id, parent, ...mount }) => [mount.mount, mount]))
  return [...byPoint.values()].map(mount => ({
    ...mount,
    mayHang: hanging.has(mount.mount) || foldersAbove(mount.mount).some(folder => hanging.has(folder)),
  }))
}

/**
 * Mounts with the read-only flag that the first process of the system sees: a service manager may show a sandboxed
 * agent every file system as read-only. A mount that the system does not have keeps its own flag. Where the agent may
 * not see that process (hidepid), only what the file systems say of themselves is known to be no work of its sandbox.
 */
export function withSystemReadonly(own: readonly Mount[], system: readonly Mount[]): Mount[] {
  if (system.length === 0) return own.map(mount => ({ ...mount, isReadonly: mount.isWholeReadonly }))
  const seen = new Map(system.map(mount => [`${mount.deviceNumber} ${mount.mount}`, mount.isReadonly]))
  return own.map(mount => ({
    ...mount,
    isReadonly: seen.get(`${mount.deviceNumber} ${mount.mount}`) ?? mount.isReadonly,
  }))
}

/** The mounts to report: those that pass the filter, each file system once, under its shortest mount point. */
export function reportedMounts(mounts: readonly Mount[], filter: NameFilter): Mount[] {
  const byDevice = new Map<string, Mount>()
  for (const mount of mounts) {
    if (!isFileSystemReported(mount.mount, mount.device, mount.fstype, filter)) continue
    const key = `${mount.deviceNumber} ${mount.device}`
    const known = byDevice.get(key)
    if (!known || mount.mount.length < known.mount.length) byDevice.set(key, mount)
  }
  return [...byDevice.values()].sort((a, b) => (a.mount < b.mount ? -1 : 1))
}

/** File systems of this host alone, whose size the kernel knows without asking anybody, and those of the kernel. */
const LOCAL_FILE_SYSTEMS = new Set(
  (
    'bcachefs btrfs erofs exfat ext2 ext3 ext4 f2fs hfs hfsplus iso9660 jffs2 jfs minix msdos nilfs2 ntfs ntfs3 ramfs ' +
    'reiserfs rootfs squashfs tmpfs ubifs udf ufs vfat xfs zfs ' +
    'bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs hugetlbfs mqueue nsfs proc pstore securityfs ' +
    'selinuxfs sysfs tracefs'
  ).split(' '),
)

/**
 * Whether a file system lives on another host or in a process, so that asking for its size may hang for ever. One that
 * nobody here knows may: a local one that is asked with care costs a process, a dead one that is not stops the agent.
 */
export const mayHang = (fstype: string): boolean => !LOCAL_FILE_SYSTEMS.has(fstype)

const SILENT_NAMED_MAX = 5
const MOUNT_CHARS_MAX = 200

/** What the operator is told of mounts that do not answer: one warning for all, so that it leaves room for others. */
export function silentMountsWarning(silent: readonly Mount[]): string[] {
  if (silent.length === 0) return []
  const named = silent.slice(0, SILENT_NAMED_MAX).map(({ mount }) => mount.slice(0, MOUNT_CHARS_MAX))
  const more = silent.length > named.length ? ` and ${silent.length - named.length} more` : ''
  return [`disks that do not answer, so that their sizes are missing: ${named.join(', ')}${more}`]
}

/** disk_* of one file system. A file system without an inode table (files 0) has no inode metrics. */
export function fileSystemSamples(mount: Mount, stat: StatFs): Sample[] {
  const labels = { mount: mount.mount, device: mount.device, fstype: mount.fstype }
  const sample = (name: string, value: number): Sample => ({ name, labels, value })
  const samples = [sample('disk_readonly', mount.isReadonly ? 1 : 0)]
  if (stat.blocks > 0) {
    const used = Math.max(0, stat.blocks - stat.bfree)
    samples.push(
      sample('disk_total_bytes', stat.blocks * stat.bsize),
      sample('disk_used_bytes', used * stat.bsize),
      sample('disk_free_bytes', stat.bavail * stat.bsize),
      sample('disk_used_percent', used + stat.bavail > 0 ? (100 * used) / (used + stat.bavail) : 100),
    )
  }
  if (stat.files > 0) {
    const used = Math.max(0, stat.files - stat.ffree)
    samples.push(
      sample('disk_inodes_total', stat.files),
      sample('disk_inodes_used', used),
      sample('disk_inodes_used_percent', (100 * used) / stat.files),
    )
  }
  return samples
}

export type DiskReading = CounterReading & { readonly inProgress: ReadonlyMap<string, number> }

/** Order of the counters kept of /proc/diskstats. */
const READS = 0
const READ_SECTORS = 2
const READ_MS = 3
const WRITES = 4
const WRITE_SECTORS = 6
const WRITE_MS = 7
const IN_PROGRESS = 8
const IO_MS = 9

/** Counters of /proc/diskstats by device name. */
export function parseDiskStats(text: string, elapsedMs: number): DiskReading {
  const bySubject = new Map<string, number[]>()
  const inProgress = new Map<string, number>()
  for (const fields of fieldsOfLines(text)) {
    const numbers = numbersFrom(fields, 3)
    if (!fields[2] || numbers.length <= IO_MS) continue
    inProgress.set(fields[2], numbers[IN_PROGRESS]!)
    // The number of operations in progress is a gauge; taken as a counter it would look like resets.
    bySubject.set(fields[2], numbers.slice(0, IO_MS + 1).with(IN_PROGRESS, 0))
  }
  return { elapsedMs, bySubject, inProgress }
}

/** disk_*_per_second, disk_io_* of the devices that `isReported` lets through. */
export function diskIoSamples(
  previous: DiskReading | null,
  current: DiskReading,
  isReported: (device: string) => boolean,
): Sample[] {
  const seconds = windowSeconds(previous, current)
  const samples: Sample[] = []
  for (const [device, inProgress] of current.inProgress) {
    if (!isReported(device)) continue
    const push = (name: string, value: number) => samples.push({ name, labels: { device }, value })
    if (Number.isFinite(inProgress)) push('disk_io_in_progress', inProgress)
    const deltas = counterDeltas(previous, current, device)
    if (seconds === null || !deltas) continue
    const operations = deltas[READS]! + deltas[WRITES]!
    push('disk_read_bytes_per_second', (deltas[READ_SECTORS]! * SECTOR_BYTES) / seconds)
    push('disk_write_bytes_per_second', (deltas[WRITE_SECTORS]! * SECTOR_BYTES) / seconds)
    push('disk_reads_per_second', deltas[READS]! / seconds)
    push('disk_writes_per_second', deltas[WRITES]! / seconds)
    push('disk_io_util_percent', Math.min(100, deltas[IO_MS]! / (seconds * 10)))
    push('disk_io_await_seconds', operations > 0 ? (deltas[READ_MS]! + deltas[WRITE_MS]!) / operations / 1000 : 0)
  }
  return samples
}
