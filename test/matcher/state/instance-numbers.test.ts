// The numbers of package instances in memory, against a map by all that a report says of a package.
import { expect, test } from 'bun:test'
import { InstanceNumbers } from '../../../apps/matcher/state/instance-numbers.ts'
import { randomFrom } from '../../support/random.ts'

const seed = Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 1_000_000)

test(`[MAT-180] an instance is found by all that a report says of it, and by nothing less (seed ${seed})`, () => {
  const random = randomFrom(seed)
  const pick = (texts: readonly string[]): string => texts[Math.floor(random() * texts.length)]!
  const words = ['', 'a', 'ab', 'b']
  const columns = () => ({
    name: pick(words),
    version: pick(words),
    arch: pick(words),
    source: pick(words),
    sourceVersion: pick(words),
    module: pick(words),
    vendor: pick(words),
  })
  const numbers = new InstanceNumbers(1_000_000)
  const expected = new Map<string, number>()
  for (let step = 0; step < 20_000; step++) {
    const release = pick(['dpkg\ndebian:12', 'dpkg\ndebian:13'])
    const instance = columns()
    const key = JSON.stringify([release, instance])
    expect(numbers.of(release).get(instance)).toBe(expected.get(key))
    if (random() < 0.3) {
      numbers.of(release).delete(instance)
      expected.delete(key)
    } else if (!expected.has(key)) {
      numbers.of(release).set(instance, step)
      expected.set(key, step)
    }
  }
})

test('[MAT-185] more instances than memory is meant for are forgotten', () => {
  const numbers = new InstanceNumbers(100)
  const instance = (version: number) => ({
    name: 'bash',
    version: String(version),
    arch: 'amd64',
    source: 'bash',
    sourceVersion: '1',
    module: '',
    vendor: '',
  })
  for (let version = 0; version <= 100; version++) numbers.of('dpkg').set(instance(version), version)
  // The last one is still of the report that is being read.
  expect(numbers.of('dpkg').get(instance(0))).toBeUndefined()
  numbers.of('dpkg').set(instance(0), 7)
  numbers.of('dpkg').delete(instance(0))
  for (let version = 0; version < 100; version++) numbers.of('dpkg').set(instance(version), version)
  expect(numbers.of('dpkg').get(instance(0))).toBe(0)
})
