// Values and bytes that nobody should send, of those that somebody should.
import type { Random } from './seeded.ts'

/** Values that programs trip over. */
const odd: readonly unknown[] = [
  null,
  true,
  -1,
  0.5,
  1e300,
  Number.MAX_SAFE_INTEGER,
  '',
  '\u0000',
  '\ud800',
  '../../etc/passwd',
  "'; drop table host; --",
  'é'.repeat(300),
  '%s%n{{7*7}}',
  [],
  {},
  [[[[]]]],
  { __proto__: 1 },
  ['a', 1],
  Array.from({ length: 100 }, () => 'x'),
]

/** A copy with one member, at any depth, replaced, removed, doubled or added. */
export function mutated(value: unknown, random: Random): unknown {
  if (typeof value !== 'object' || value === null || random.chance(0.15)) return random.pick(odd)
  if (Array.isArray(value)) {
    if (value.length === 0 || random.chance(0.3)) return [...value, random.pick(odd)]
    const at = random.below(value.length)
    return random.chance(0.3) ? value.toSpliced(at, 1) : value.with(at, mutated(value[at], random))
  }
  const names = Object.keys(value)
  const name = names.length === 0 || random.chance(0.1) ? String(random.pick(odd)) : random.pick(names)
  const { [name]: member, ...rest } = value as Record<string, unknown>
  return random.chance(0.2) ? rest : { ...rest, [name]: mutated(member, random) }
}

export function damaged(bytes: Uint8Array, random: Random): Uint8Array {
  const copy = new Uint8Array(bytes)
  if (random.chance(0.3)) return copy.subarray(0, random.below(copy.length + 1))
  for (let times = 1 + random.below(4); times > 0 && copy.length > 0; times--)
    copy[random.below(copy.length)] = random.below(256)
  return copy
}
