// Walks over "source needs target" edges against walks made by hand, and against a slow one on random graphs.
import { describe, expect, test } from 'bun:test'
import { affectedBy, allNodes, cyclesOf, type Dependency, nodesAround } from '../../../core/network/dependency-graph.ts'

/** `a>b` hard, `a~b` soft. */
const edges = (text: string): Dependency[] =>
  text.split(' ').map(each => {
    const [, source = '', arrow, target = ''] = /^(\w+)([>~])(\w+)$/.exec(each) ?? []
    return { source, target, isHard: arrow === '>' }
  })
const around = (text: string, root: string, direction: Parameters<typeof nodesAround>[2], depth = 10, max = 100) => {
  const { depths, isTruncated } = nodesAround(edges(text), root, direction, depth, max)
  return [[...depths].map(([key, at]) => `${key}${at}`).join(' '), isTruncated]
}

test('[RES-049] [RES-053] each node once with its smallest depth, nearest first, no more than asked for', () => {
  const text = 'web>app app>db web>db db>disk job>db'
  expect(around(text, 'db', 'dependents')).toEqual(['db0 app1 web1 job1', false])
  expect(around(text, 'db', 'dependents', 1)).toEqual(['db0 app1 web1 job1', false])
  expect(around(text, 'disk', 'dependents', 1)).toEqual(['disk0 db1', false])
  expect(around(text, 'web', 'dependencies')).toEqual(['web0 app1 db1 disk2', false])
  expect(around(text, 'app', 'both')).toEqual(['app0 db1 web1 disk2', false])
  expect(around(text, 'disk', 'dependents', 10, 3)).toEqual(['disk0 db1 app2', true])
  expect(around(text, 'alone', 'both')).toEqual(['alone0', false])
  expect([...allNodes(edges(text), 2).depths.keys()]).toEqual(['db', 'app'])
})

test('[RES-051] cycles are named, each with its smallest key first, and walks over them end', () => {
  expect(cyclesOf(edges('a>b b>a'), 10)).toEqual([['a', 'b']])
  expect(cyclesOf(edges('c>a a>b b>c b>d d>e'), 10)).toEqual([['a', 'b', 'c']])
  expect(cyclesOf(edges('a>b b>a b>c c>b x>a c>y'), 10)).toEqual([
    ['a', 'b'],
    ['b', 'c'],
  ])
  expect(cyclesOf(edges('a>b b>a c>d d>c'), 1)).toHaveLength(1)
  expect(cyclesOf(edges('a>b b>c a>c'), 10)).toEqual([])
  expect(around('a>b b>a', 'a', 'both')).toEqual(['a0 b1', false])
})

describe('impact', () => {
  const f = (text: string, root: string) =>
    affectedBy(edges(text), root).map(({ path, isHard }) => `${path().join('>')} ${isHard ? 'hard' : 'soft'}`)

  test('[RES-052] what reaches the root over hard edges comes first, with its way; the rest does without it', () => {
    expect(f('web>app app>db report~db job>report web~db', 'db')).toEqual([
      'app>db hard',
      'web>app>db hard',
      'report>db soft',
      'job>report>db soft',
    ])
    expect(f('a>b b>a c>a', 'a')).toEqual(['b>a hard', 'c>a hard'])
    expect(f('a>b', 'a')).toEqual([])
  })

  test('[RES-052] on random graphs it is what a walk by hand finds', () => {
    const seed = Number(process.env.SVC_FUZZ_SEED ?? Math.floor(Math.random() * 1e9))
    let state = seed
    const random = (below: number): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
    for (let run = 0; run < 50; run++) {
      const count = 2 + random(20)
      const some: Dependency[] = Array.from({ length: random(40) }, () => {
        const source = random(count)
        return { source: `n${source}`, target: `n${(source + 1 + random(count - 1)) % count}`, isHard: random(2) === 0 }
      })
      const fixpoint = (list: readonly Dependency[]): string[] => {
        const hit = new Set(['n0'])
        for (let size = 0; size !== hit.size; ) {
          size = hit.size
          for (const { source, target } of list) if (hit.has(target)) hit.add(source)
        }
        return [...hit].filter(key => key !== 'n0').sort()
      }
      const affected = affectedBy(some, 'n0')
      const keys = (hard: boolean) => affected.flatMap(({ key, isHard }) => (isHard === hard ? [key] : [])).sort()
      const hard = fixpoint(some.filter(each => each.isHard))
      expect([seed, run, keys(true)]).toEqual([seed, run, hard])
      expect([seed, run, keys(false)]).toEqual([seed, run, fixpoint(some).filter(key => !hard.includes(key))])
      for (const { key, path, isHard } of affected) {
        const way = path()
        expect([way[0], way.at(-1)]).toEqual([key, 'n0'])
        for (const [at, source] of way.slice(0, -1).entries())
          expect(some.some(e => e.source === source && e.target === way[at + 1] && (e.isHard || !isHard))).toBe(true)
      }
    }
  })
})
