// Order of semantic versions, as far as agent versions need it: numbers compared as numbers, a pre-release before its
// release (semver.org, 11). Used for min_agent_version and for updates (document 3 "Agent config semantics", "Versioning").

const VERSION = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/

type Version = { readonly numbers: readonly number[]; readonly prerelease: readonly string[] }

function parse(text: string): Version | null {
  const found = VERSION.exec(text)
  if (!found) return null
  return {
    numbers: [Number(found[1]), Number(found[2]), Number(found[3])],
    prerelease: found[4] ? found[4].split('.') : [],
  }
}

/** Whether text is a semantic version: MAJOR.MINOR.PATCH with an optional pre-release and build part. */
export const isVersion = (text: string): boolean => parse(text) !== null

function comparePrereleasePart(left: string, right: string): number {
  const leftIsNumber = /^\d+$/.test(left)
  const rightIsNumber = /^\d+$/.test(right)
  if (leftIsNumber && rightIsNumber) return Math.sign(Number(left) - Number(right))
  if (leftIsNumber !== rightIsNumber) return leftIsNumber ? -1 : 1
  return left < right ? -1 : left > right ? 1 : 0
}

function comparePrerelease(left: readonly string[], right: readonly string[]): number {
  if (left.length === 0 || right.length === 0) return Math.sign(right.length - left.length)
  for (let index = 0; index < Math.min(left.length, right.length); index++) {
    const order = comparePrereleasePart(left[index]!, right[index]!)
    if (order !== 0) return order
  }
  return Math.sign(left.length - right.length)
}

/** -1, 0 or 1 as left is older than, equal to or newer than right; null when one of them is no semantic version. */
export function compareVersions(left: string, right: string): number | null {
  const a = parse(left)
  const b = parse(right)
  if (!a || !b) return null
  for (let index = 0; index < 3; index++) {
    const order = Math.sign(a.numbers[index]! - b.numbers[index]!)
    if (order !== 0) return order
  }
  // A release is newer than its pre-releases: an empty list sorts after a filled one.
  return comparePrerelease(a.prerelease, b.prerelease)
}
