// Who needs whom: walks over "source needs target" edges, the cycles in them, and what fails with a node. The graph is
// a set of nodes with all edges between them; cycles are allowed and named (decision R-019).

/** An edge: the source needs the target. */
export type Dependency = {
  readonly source: string
  readonly target: string
  /** The source fails without the target. */
  readonly isHard: boolean
}

export const directions = ['dependencies', 'dependents', 'both'] as const
export type Direction = (typeof directions)[number]

/** The keys beside each key, in the order of the edges. */
type Neighbours = ReadonlyMap<string, readonly string[]>

function neighboursOf(edges: readonly Dependency[], from: 'source' | 'target', to: 'source' | 'target'): Neighbours {
  const found = new Map<string, string[]>()
  for (const edge of edges) {
    const known = found.get(edge[from])
    if (known) known.push(edge[to])
    else found.set(edge[from], [edge[to]])
  }
  return found
}
const targetsOf = (edges: readonly Dependency[]): Neighbours => neighboursOf(edges, 'source', 'target')
const sourcesOf = (edges: readonly Dependency[]): Neighbours => neighboursOf(edges, 'target', 'source')

/** Breadth first: each key that is reached, nearest first, with the key before it and its distance. */
function reach(root: string, next: Neighbours, depthMax: number) {
  const reached = new Map<string, { readonly before: string | null; readonly depth: number }>([
    [root, { before: null, depth: 0 }],
  ])
  // A map is read in the order of insertion, also while it grows: it is the queue.
  for (const [key, { depth }] of reached) {
    if (depth >= depthMax) continue
    for (const each of next.get(key) ?? []) if (!reached.has(each)) reached.set(each, { before: key, depth: depth + 1 })
  }
  return reached
}

type Listed = {
  /** Smallest depth of each key, nearest first; null where there is no root. */
  readonly depths: ReadonlyMap<string, number | null>
  readonly isTruncated: boolean
}

function firstOf(all: readonly (readonly [string, number | null])[], nodesMax: number): Listed {
  return { depths: new Map(all.slice(0, nodesMax)), isTruncated: all.length > nodesMax }
}

/** The nodes that a root needs, or that need it, up to a depth: nearest first, at most `nodesMax` with the root. */
export function nodesAround(
  edges: readonly Dependency[],
  root: string,
  direction: Direction,
  depthMax: number,
  nodesMax: number,
): Listed {
  const walks = [
    ...(direction === 'dependents' ? [] : [reach(root, targetsOf(edges), depthMax)]),
    ...(direction === 'dependencies' ? [] : [reach(root, sourcesOf(edges), depthMax)]),
  ]
  const depths = new Map<string, number>()
  for (const walk of walks)
    for (const [key, { depth }] of walk) depths.set(key, Math.min(depth, depths.get(key) ?? depth))
  return firstOf(
    [...depths].sort(([, a], [, b]) => a - b),
    nodesMax,
  )
}

/** All nodes, those with the most edges first. */
export function allNodes(edges: readonly Dependency[], nodesMax: number): Listed {
  const counts = new Map<string, number>()
  for (const { source, target } of edges) {
    counts.set(source, (counts.get(source) ?? 0) + 1)
    counts.set(target, (counts.get(target) ?? 0) + 1)
  }
  const byEdges = [...counts].sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
  return firstOf(
    byEdges.map(([key]) => [key, null] as const),
    nodesMax,
  )
}

/** Keys in the order in which a depth-first walk leaves them. */
function leftInOrder(keys: Iterable<string>, next: Neighbours): string[] {
  const left: string[] = []
  const seen = new Set<string>()
  for (const start of keys) {
    if (seen.has(start)) continue
    seen.add(start)
    const path = [{ key: start, at: 0 }]
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const beside = next.get(top.key)?.[top.at++]
      if (beside === undefined) {
        left.push(top.key)
        path.pop()
      } else if (!seen.has(beside)) {
        seen.add(beside)
        path.push({ key: beside, at: 0 })
      }
    }
  }
  return left
}

/** The number of the strongly connected component of each key (Kosaraju). */
function componentsOf(edges: readonly Dependency[]): ReadonlyMap<string, number> {
  const next = targetsOf(edges)
  const before = sourcesOf(edges)
  const component = new Map<string, number>()
  let count = 0
  for (const start of leftInOrder(next.keys(), next).reverse()) {
    if (component.has(start)) continue
    const queue = [start]
    component.set(start, count)
    for (const key of queue)
      for (const each of before.get(key) ?? [])
        if (!component.has(each)) {
          component.set(each, count)
          queue.push(each)
        }
    count++
  }
  return component
}

/** The way from a reached key back to the root of the walk: the key first, the root last. */
function pathToRoot(key: string, reached: ReturnType<typeof reach>): string[] {
  const path = [key]
  for (let at = reached.get(key)?.before; at !== null && at !== undefined; at = reached.get(at)?.before) path.push(at)
  return path
}

/** A cycle that begins with its smallest key. */
function turned(cycle: readonly string[]): string[] {
  const first = cycle.indexOf(cycle.toSorted()[0] ?? '')
  return [...cycle.slice(first), ...cycle.slice(0, first)]
}

/**
 * The shortest way from one key to another over edges, both included. Nodes are numbers here: a walk is made for each
 * cycle that is named, and in a dense graph it sees most of the nodes.
 */
function shortestWays(edges: readonly Dependency[]): (from: string, to: string) => string[] {
  const keys: string[] = []
  const numbers = new Map<string, number>()
  const numberOf = (key: string): number => {
    const known = numbers.get(key) ?? keys.length
    if (known === keys.length) keys.push(key)
    numbers.set(key, known)
    return known
  }
  const next: number[][] = []
  for (const { source, target } of edges) {
    const [from, to] = [numberOf(source), numberOf(target)]
    const known = next[from]
    if (known) known.push(to)
    else next[from] = [to]
  }
  const before = new Int32Array(keys.length)
  /** The walk that reached a node last. */
  const reachedBy = new Int32Array(keys.length)
  let walk = 0
  return (from, to) => {
    const [start, end] = [numberOf(from), numberOf(to)]
    walk++
    const queue = [start]
    reachedBy[start] = walk
    for (let at = 0; at < queue.length && reachedBy[end] !== walk; at++) {
      const node = queue[at] ?? start
      for (const each of next[node] ?? []) {
        if (reachedBy[each] === walk) continue
        reachedBy[each] = walk
        before[each] = node
        queue.push(each)
      }
    }
    const way = [end]
    for (let at = end; at !== start; at = before[at] ?? start) way.push(before[at] ?? start)
    return way.reverse().map(node => keys[node] ?? '')
  }
}

/**
 * Cycles, each as the keys along it, the smallest first: for every edge that closes one the shortest through it, up to
 * `cyclesMax`.
 */
export function cyclesOf(edges: readonly Dependency[], cyclesMax: number): string[][] {
  const component = componentsOf(edges)
  const within = edges.filter(({ source, target }) => component.get(source) === component.get(target))
  const wayBetween = shortestWays(within)
  const found = new Map<string, string[]>()
  const covered = new Set<string>()
  for (const { source, target } of within) {
    if (found.size >= cyclesMax) break
    if (covered.has(`${source} ${target}`)) continue
    // From the target onwards to the source, which lies in one component with it.
    const way = wayBetween(target, source)
    for (const [at, key] of way.entries()) covered.add(`${key} ${way[(at + 1) % way.length]}`)
    const cycle = turned(way)
    found.set(cycle.join(' '), cycle)
  }
  return [...found.values()]
}

type Affected = {
  readonly key: string
  readonly depth: number
  /** From the key to the root: `depth` + 1 keys. */
  readonly path: () => readonly string[]
  /** Fails with the root: every edge of the path is hard. */
  readonly isHard: boolean
}

/** What reaches the root: over hard edges first, each nearest first; then the rest, which does without it. */
export function affectedBy(edges: readonly Dependency[], root: string): Affected[] {
  const before = (some: readonly Dependency[]) => reach(root, sourcesOf(some), Number.POSITIVE_INFINITY)
  const hard = before(edges.filter(({ isHard }) => isHard))
  const all = before(edges)
  const of = (walk: typeof all, isHard: boolean): Affected[] =>
    [...walk].map(([key, { depth }]) => ({ key, depth, path: () => pathToRoot(key, walk), isHard }))
  const rest = of(all, false).filter(({ key }) => !hard.has(key))
  return [...of(hard, true), ...rest].filter(({ key }) => key !== root)
}
