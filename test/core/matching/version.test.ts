import { describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { PackageSystem } from '../../../core/matching/report-schema.ts'
import { compareToBoundary, compareVersions, isValidVersion } from '../../../core/matching/version.ts'
import { dpkg, dpkgRoot } from '../../support/package-tools.ts'
import { randomFrom } from '../../support/random.ts'

const PAIRS = 10_000
/** A process each. */
const COMMANDS = 500

/** What versions are made of, strange things included; heads are what each may begin with. */
const pieces = {
  dpkg: {
    heads: ['', '', '', '0:', '1:', '00:', '2:'],
    parts: ['0', '1', '2', '10', '01', '001', 'a', 'b', 'rc', 'Z', '.', '.', '-', '~', '~', '+', '_', ':', 'ubuntu'],
  },
  rpm: {
    heads: ['', '', '', '0:', '1:', '00:'],
    parts: ['0', '1', '2', '10', '01', '001', 'a', 'b', 'rc', 'Z', '.', '.', '-', '~', '^', '+', '_', 'el9'],
  },
  apk: {
    heads: [''],
    parts: [
      '0',
      '1',
      '10',
      '01',
      '.1',
      '.2',
      '.10',
      '.01',
      'a',
      'b',
      '_alpha',
      '_rc',
      '_p',
      '_git',
      '_p2',
      '~ab1',
      '-r0',
      '-r2',
    ],
  },
} as const

/** Valid versions; every second one differs from the one before it by a piece only, so that ends are compared too. */
function randomVersions(system: PackageSystem, count: number, random: () => number): string[] {
  const { heads, parts } = pieces[system]
  const oneOf = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const versions: string[] = []
  while (versions.length < count) {
    const before = versions.at(-1)
    const isVariant = before !== undefined && versions.length % 2 === 1 && random() < 0.6
    let version = isVariant ? before : oneOf(heads) + oneOf(['0', '1', '2', '10', '01'])
    if (isVariant) {
      const at = Math.floor(random() * (version.length + 1))
      version = version.slice(0, at) + oneOf(parts) + version.slice(at + (random() < 0.5 ? 1 : 0))
    } else for (let left = Math.floor(random() * 7); left > 0; left--) version += oneOf(parts)
    if (isValidVersion(system, version)) versions.push(version)
  }
  return versions
}

function pairsOf(system: PackageSystem): { readonly a: string; readonly b: string }[] {
  const seed = Number(process.env.SVC_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
  console.log(`${system} pairs: SVC_FUZZ_SEED=${seed}`)
  const versions = randomVersions(system, 2 * PAIRS, randomFrom(seed))
  return Array.from({ length: PAIRS }, (_, index) => ({ a: versions[2 * index]!, b: versions[2 * index + 1]! }))
}

/** Runs a tool over a file of pairs, a line each; the tool must be installed. */
function overPairs(pairs: readonly string[], run: (file: string) => string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'versions-'))
  try {
    const file = join(folder, 'pairs')
    writeFileSync(file, `${pairs.join('\n')}\n`)
    const [command, ...args] = run(file)
    const done = spawnSync(command!, args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
    if (done.error) throw new Error(`${command} is needed here, see HACKING.md: ${done.error.message}`)
    return done.stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * Whether dpkg, of each pair, takes what it is offered for a package in the place of what it holds: it does unless that
 * is older. It asks the comparison that `--compare-versions` asks, in one process for all pairs.
 */
function takenByDpkg(pairs: readonly { readonly held: string; readonly offered: string }[]): boolean[] {
  using root = dpkgRoot()
  const stanza = (index: number, version: string, description: string): string =>
    `Package: p${index}\nArchitecture: all\nMaintainer: N <n@example.net>\nDescription: ${description}\nVersion: ${version}\n\n`
  root.write('var/lib/dpkg/available', pairs.map(({ held }, index) => stanza(index, held, 'held')).join(''))
  const offers = pairs.map(({ offered }, index) => stanza(index, offered, 'offered')).join('')
  dpkg(root, '--merge-avail', root.write('offers', offers))
  const kept = new Map(
    root
      .read('var/lib/dpkg/available')
      .split('\n\n')
      .map(text => [/^Package: (.*)$/m.exec(text)?.[1], /^Description: (.*)$/m.exec(text)?.[1]] as const),
  )
  return pairs.map((_, index) => {
    const description = kept.get(`p${index}`)
    if (description === undefined) throw new Error(`dpkg has let go of p${index}`)
    return description === 'offered'
  })
}

const sign = (system: PackageSystem, a: string, b: string): number => Math.sign(compareVersions(system, a, b))

describe('dpkg', () => {
  test('[MAT-090] [MAT-091] [MAT-099] random pairs order as dpkg --compare-versions orders them', () => {
    const pairs = pairsOf('dpkg')
    const isAtMost = takenByDpkg(pairs.map(({ a, b }) => ({ held: a, offered: b })))
    const isAtLeast = takenByDpkg(pairs.map(({ a, b }) => ({ held: b, offered: a })))
    for (const [index, { a, b }] of pairs.entries()) {
      const order = sign('dpkg', a, b)
      expect([a, b, order <= 0, order >= 0]).toEqual([a, b, isAtMost[index]!, isAtLeast[index]!])
    }
    const words = { '-1': 'lt', '0': 'eq', '1': 'gt' } as const
    const lines = pairs.slice(0, COMMANDS).map(({ a, b }) => `${a} ${words[sign('dpkg', a, b) as -1 | 0 | 1]} ${b}`)
    // The command confirms each claim too, and echoes the ones that it does not.
    const claim = 'dpkg --compare-versions "$a" "$op" "$b" 2>/dev/null || echo "$a $op $b"'
    const script = `while read -r a op b; do ${claim}; done < "$0"; echo end`
    expect(overPairs(lines, file => ['sh', '-c', script, file])).toBe('end\n')
  }, 120_000)

  test('[MAT-090] [MAT-091] pairs that are known', () => {
    const less = (a: string, b: string) => {
      expect([a, b, sign('dpkg', a, b)]).toEqual([a, b, -1])
      expect([b, a, sign('dpkg', b, a)]).toEqual([b, a, 1])
    }
    const equal = (a: string, b: string) => expect([a, b, sign('dpkg', a, b)]).toEqual([a, b, 0])
    less('1.0~rc1', '1.0')
    less('1.0~~', '1.0~')
    less('1.0~~a', '1.0~')
    less('1.0', '1.0a')
    less('1.0a', '1.0+')
    less('1.0-1', '1.0-1.1')
    less('1.0-1', '1.0-1+deb12u1')
    less('1.0-1~deb11u1', '1.0-1')
    less('9', '10')
    less('99999999999999999999998', '99999999999999999999999')
    less('2:0.9', '3:0.1')
    less('3.0', '1:1.0')
    less('1.2-3', '1.2.3')
    less('1.2-3-4', '1.2-3.1-1')
    less('5.10.0-8', '5.10.0-13')
    less('7.88.1-10+deb12u4', '7.88.1-10+deb12u12')
    less('1.8.21p2-3ubuntu1.2', '1.8.21p2-3ubuntu1.10')
    equal('0:1.0', '1.0')
    equal('1.0-0', '1.0')
    equal('1.01', '1.1')
    equal('1.0-01', '1.0-1')
    less('1', '1.')
    equal('1.0', '1.00-0')
    equal('  1.0 ', '1.0')
  })

  test('[MAT-092] what dpkg compares is compared; blanks inside, no upstream part and a wrong epoch are not', () => {
    for (const version of [
      '1.0',
      'abc',
      '1_0',
      '1:2:3',
      '0001:2',
      '1.0-a_b',
      '1~',
      ' 1',
      '1.0-1.el7',
      '20.10.0~3-0~debian',
    ])
      expect([version, isValidVersion('dpkg', version)]).toEqual([version, true])
    for (const version of ['', ' ', '1 0', '1:', ':1', 'a:1', '-1:2', '1:-1', '-', '1.0-', '99999999999:1', '1\t2-1'])
      expect([version, isValidVersion('dpkg', version)]).toEqual([version, false])
  })
})

describe('rpm', () => {
  test('[MAT-093] [MAT-094] [MAT-099] random pairs order as rpm.vercmp orders them', () => {
    const pairs = pairsOf('rpm')
    const lines = pairs.map(({ a, b }) => `${a} ${b}`)
    const lua = (file: string) =>
      `%{lua: for line in io.lines("${file}") do print(rpm.vercmp(line:match("(%S+) (%S+)"))) end}`
    // Numbers behind each other, without anything between them: -1, 0 and 1 can be told apart.
    const orders = overPairs(lines, file => ['rpm', '--eval', lua(file)]).match(/-1|0|1/g) ?? []
    expect(orders).toHaveLength(PAIRS)
    expect(
      pairs.filter(({ a, b }, index) => String(sign('rpm', a, b)) !== orders[index]).map(({ a, b }) => `${a} ${b}`),
    ).toEqual([])
  }, 120_000)

  test('[MAT-094] pairs that are known', () => {
    const ordered = (a: string, b: string, order: number) => {
      expect([a, b, sign('rpm', a, b)]).toEqual([a, b, order])
      expect([b, a, sign('rpm', b, a)]).toEqual([b, a, order === 0 ? 0 : -order])
    }
    ordered('1.0', '2.0', -1)
    ordered('2.0', '2.0.1', -1)
    ordered('2.0.1', '2.0.1a', -1)
    ordered('5.5p1', '5.5p10', -1)
    ordered('10xyz', '10.1xyz', -1)
    ordered('xyz10', 'xyz10.1', -1)
    ordered('xyz.4', '8', -1)
    ordered('5.6p1', '6.5p1', -1)
    ordered('6.0', '6.0.rc1', -1)
    ordered('10a2', '10b2', -1)
    ordered('1.0a', '1.0aa', -1)
    ordered('10.0001', '10.1', 0)
    ordered('10.0001', '10.0039', -1)
    ordered('4.999.9', '5.0', -1)
    ordered('20101121', '20101122', -1)
    ordered('2_0', '2.0', 0)
    ordered('a+', 'a_', 0)
    ordered('+a', '_a', 0)
    ordered('1.0~rc1', '1.0', -1)
    ordered('1.0~rc1~git123', '1.0~rc1', -1)
    ordered('1.0^', '1.0', 1)
    ordered('1.0^git1', '1.01', -1)
    ordered('1.0^20160101', '1.0.1', -1)
    ordered('1.0~rc1^git1', '1.0~rc1', 1)
    ordered('1.0^git1~pre', '1.0^git1', -1)
    ordered('1b.fc17', '1.fc17', -1)
    ordered('0:1.0-1', '1.0-1', 0)
    ordered('1:1.0-1', '2.0-9', 1)
    ordered('3.0.7-24.el9', '3.0.7-25.el9_3', -1)
    ordered('1.0', '1.0-1', -1)
  })

  test('[MAT-093] a release that a boundary or a version lacks is not compared with a boundary', () => {
    expect(compareToBoundary('rpm', '1.2-3', '1.2')).toBe(0)
    expect(compareToBoundary('rpm', '1.2', '1.2-3')).toBe(0)
    expect(compareToBoundary('rpm', '1.2-3', '1.2-4')).toBeLessThan(0)
    expect(compareToBoundary('rpm', '1:1.2', '1.2-3')).toBeGreaterThan(0)
    expect(compareToBoundary('dpkg', '1.2-3', '1.2')).toBeGreaterThan(0)
  })

  test('[MAT-098] empty parts, blanks and a wrong epoch are invalid', () => {
    for (const version of ['1.0', '1:1.0-1.el9', '1.0^git-1', 'a', '1.1.α'])
      expect([version, isValidVersion('rpm', version)]).toEqual([version, true])
    for (const version of ['', '-1', '1.0-', '1:', '1:-1', 'a:1', ':1', '1:2:3', '1 0', '1\u0000'])
      expect([version, isValidVersion('rpm', version)]).toEqual([version, false])
  })
})

describe('apk', () => {
  test('[MAT-095] [MAT-096] pairs that are known', () => {
    const less = (a: string, b: string) => {
      expect([a, b, sign('apk', a, b)]).toEqual([a, b, -1])
      expect([b, a, sign('apk', b, a)]).toEqual([b, a, 1])
    }
    less('0.1.0_alpha', '0.1.0')
    less('0.1.0_alpha_pre2', '0.1.0_alpha')
    less('0.1.0_alpha', '0.1.0_alpha2')
    less('1.0_beta', '1.0_pre')
    less('1.0_pre', '1.0_rc')
    less('1.0_rc9', '1.0')
    less('1.0', '1.0_cvs')
    less('1.0_svn', '1.0_git')
    less('1.0_hg', '1.0_p')
    less('1.0_p9-r0', '1.0_p10-r0')
    less('1.0-r9', '1.0-r10')
    less('1.0', '1.0-r1')
    less('1.0-r9', '1.0.1-r0')
    less('1.0', '1.0a')
    less('1.0a', '1.0b')
    less('1.0b-r9', '1.0.1')
    less('2.3.0b-r1', '2.3.0b-r2')
    less('1.2.9', '1.2.10')
    less('8.2.0', '8.2.001')
    less('8.2.0015', '8.2.002')
    less('1.06-r6', '006')
    less('0.9.28', '0.9.28.1')
    less('1.0~1234', '1.0~2345')
    less('1.0~1234-r0', '1.0~1234-r1')
    less('1.0~1234-r1', '1.0~2345-r0')
    less('20050718-r1', '20050718-r2')
    less('1.0.0_pre20191002222144-r0', '1.0.0_pre20210530193627-r0')
    less('1.9.5p1-r0', '1.9.5p2-r0')
    less('3.1.4-r5', '3.1.4-r6')
    expect(sign('apk', '006', '6')).toBe(0)
    expect(sign('apk', '1.0-r01', '1.0-r1')).toBe(0)
  })

  test('[MAT-095] [MAT-097] what is a version, digits behind a letter included', () => {
    for (const version of ['1.2', '0.1_pre2', '0.1_pre2~1234abcd', '0.1_p1_pre2', '0.1_git20240101_pre1', '1.9.5p2-r0'])
      expect([version, isValidVersion('apk', version)]).toEqual([version, true])
    for (const version of [
      '',
      '0.1bc',
      '0.1a.1',
      '0.1_pre2~',
      '0.1_pre2~1234xbcd',
      '0.1_foobar',
      '0.1-pre1.1',
      '0.1-r',
      '.1',
    ])
      expect([version, isValidVersion('apk', version)]).toEqual([version, false])
    for (const version of ['a', '_pre1', '-r1', '0.1_', '0.1-r2-r3', '0.1-r2.1', '0.1-r2_pre1', '0.1__alpha', '1.0 '])
      expect([version, isValidVersion('apk', version)]).toEqual([version, false])
  })
})

describe('order', () => {
  test('[MAT-099] is total: antisymmetric and transitive on valid versions of every system', () => {
    const seed = Number(process.env.SVC_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))
    console.log(`order: SVC_FUZZ_SEED=${seed}`)
    for (const system of ['dpkg', 'rpm', 'apk'] as const) {
      const { heads, parts } = pieces[system]
      const version = fc
        .tuple(
          fc.constantFrom(...heads),
          fc.constantFrom('0', '1', '01'),
          fc.array(fc.constantFrom(...parts), { maxLength: 5 }),
        )
        .map(([head, first, rest]) => head + first + rest.join(''))
        .filter(text => isValidVersion(system, text))
      const atMost = (a: string, b: string): boolean => compareVersions(system, a, b) <= 0
      fc.assert(
        fc.property(version, version, version, (a, b, c) => {
          expect(sign(system, a, a)).toBe(0)
          // By addition, since 0 and -0 are told apart.
          expect(sign(system, a, b) + sign(system, b, a)).toBe(0)
          if (atMost(a, b) && atMost(b, c)) expect(atMost(a, c)).toBe(true)
        }),
        { seed, numRuns: 5_000 },
      )
    }
  }, 60_000)

  test('a version of any text is judged and compared without a fault', () => {
    for (const system of ['dpkg', 'rpm', 'apk'] as const)
      fc.assert(
        fc.property(fc.string({ unit: 'binary', maxLength: 20 }), fc.string({ maxLength: 20 }), (a, b) => {
          expect(typeof isValidVersion(system, a)).toBe('boolean')
          expect(Number.isFinite(compareVersions(system, a, b))).toBe(true)
        }),
        { numRuns: 2_000 },
      )
  })
})
