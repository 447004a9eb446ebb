// Which file systems, block devices and interfaces an agent reports: the defaults of metrics.md, and the include and
// exclude lists of the configuration. Expressions are RE2 and match the whole name, as everywhere in the product. An
// include list replaces the defaults, so that an operator can ask for devices that they leave out.
import { compileRegex, type Regex } from '../alerting/rules/regex.ts'

/** The longest filter expression that remote configuration may carry (document 3 "Agent config semantics"). */
const FILTER_CHARS_MAX = 200

export type NameFilter = { readonly include: readonly Regex[]; readonly exclude: readonly Regex[] }
type FilterLists = { readonly include: readonly string[]; readonly exclude: readonly string[] }

/** What is wrong with a filter expression, as a phrase; null when it is valid. */
export function filterFault(source: string): string | null {
  if (source === '') return 'is empty'
  if (source.length > FILTER_CHARS_MAX) return `is longer than ${FILTER_CHARS_MAX} characters`
  const compiled = compileRegex(source)
  return 'fault' in compiled ? `is not a valid expression: ${compiled.fault}` : null
}

function compileAll(sources: readonly string[]): Regex[] {
  const compiled: Regex[] = []
  for (const source of sources) {
    const regex = compileRegex(source)
    if (!('fault' in regex)) compiled.push(regex)
  }
  return compiled
}

/** Compiles lists that `filterFault` has passed. */
export const compileFilter = ({ include, exclude }: FilterLists): NameFilter => ({
  include: compileAll(include),
  exclude: compileAll(exclude),
})

/** `compileFilter` that compiles again only when the lists are others: a cycle asks with the same ones for months. */
export function filterCompiler(): (lists: FilterLists) => NameFilter {
  let last: FilterLists | null = null
  let compiled = compileFilter({ include: [], exclude: [] })
  return lists => {
    if (last === null || last.include !== lists.include || last.exclude !== lists.exclude)
      compiled = compileFilter(lists)
    last = lists
    return compiled
  }
}

const isMatched = (regexes: readonly Regex[], text: string): boolean => regexes.some(regex => regex.matches(text))

const PSEUDO_FILE_SYSTEMS = new Set(
  (
    'autofs binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl fuse.lxcfs fuse.gvfsd-fuse ' +
    'fuse.portal fuse.snapfuse hugetlbfs iso9660 mqueue nsfs overlay aufs proc procfs pstore ramfs rootfs rpc_pipefs ' +
    'securityfs selinuxfs squashfs sysfs tmpfs tracefs udf erofs'
  ).split(' '),
)
const HIDDEN_MOUNTS = /^\/(?:dev|proc|sys|run)(?:\/|$)/
const CONTAINER_MOUNTS =
  /^(?:\/var\/lib\/(?:docker|containerd|containers|kubelet|rancher|lxc|lxd)\/|\/var\/snap\/|\/snap\/|.*\/containers\/storage\/)/
const VIRTUAL_INTERFACES =
  /^(?:lo\d*|(?:veth|docker|br-|cali|cni|flannel|cilium|lxc|kube|nodelocaldns|virbr|vnet|tap|dummy|ifb|podman|sit|tunl|ip6tnl|ip6_vti|ip_vti|gre|gretap|erspan|teql).*)$/
const MINOR_DEVICES = /^(?:loop|ram|zram|sr|fd|nbd)\d+$/

/**
 * Whether a file system is reported. `mount` is what the lists are matched with; an exclude may also name the device.
 */
export function isFileSystemReported(mount: string, device: string, fstype: string, filter: NameFilter): boolean {
  if (isMatched(filter.exclude, mount) || isMatched(filter.exclude, device)) return false
  if (filter.include.length > 0) return isMatched(filter.include, mount)
  return !PSEUDO_FILE_SYSTEMS.has(fstype) && !HIDDEN_MOUNTS.test(mount) && !CONTAINER_MOUNTS.test(`${mount}/`)
}

/**
 * Whether a whole block device is reported; an exclude may name it as `sda` or `/dev/sda`. Includes name mounts only.
 */
export function isBlockDeviceReported(device: string, filter: NameFilter): boolean {
  if (isMatched(filter.exclude, device) || isMatched(filter.exclude, `/dev/${device}`)) return false
  return !MINOR_DEVICES.test(device)
}

/** Whether a network interface is reported. */
export function isInterfaceReported(name: string, filter: NameFilter): boolean {
  if (isMatched(filter.exclude, name)) return false
  return filter.include.length > 0 ? isMatched(filter.include, name) : !VIRTUAL_INTERFACES.test(name)
}
