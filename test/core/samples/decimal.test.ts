import { describe, expect, test } from 'bun:test'
import { BITS, splitDecimal } from '../../../core/samples/block/decimal.ts'
import { randomFrom } from '../../support/random.ts'

const digits = new Float64Array(2)

/** What a reader of the store makes of a point: one of `values` of samples_raw. */
function read(value: number): { decimals: number; back: number } {
  const decimals = splitDecimal(value, 1, digits)
  return { decimals, back: decimals === BITS ? digits[1]! : digits[1]! / 10 ** decimals }
}

describe('a value as digits and decimals', () => {
  test('short decimals become whole numbers, others keep their bits', () => {
    const f = (value: number, decimals: number): void =>
      expect([value, read(value).decimals]).toEqual([value, decimals])
    f(0, 0)
    f(-3, 0)
    f(2 ** 53, 0)
    f(-(2 ** 53), 0)
    f(2 ** 53 + 2, BITS)
    f(12.5, 2)
    f(-0.01, 2)
    f(99.99, 2)
    f(0.835, 4)
    f(0.000123, 6)
    f(1 / 3, BITS)
    f(0.1 + 0.2, BITS)
    f(5e-324, BITS)
    f(Number.MAX_VALUE, BITS)
    f(90_071_992_547_409.94, BITS)
  })

  test('[STO-001] what is read is exactly what was written', () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    const random = randomFrom(seed)
    const check = (value: number): void => {
      const { back } = read(value)
      if (back !== value) throw new Error(`${value} came back as ${back} (SEED=${seed})`)
    }
    for (let turn = 0; turn < 20_000; turn++) {
      const size = 10 ** Math.floor(random() * 18 - 3)
      const value = (random() - 0.5) * size
      for (const decimals of [0, 1, 2, 3, 4, 6]) check(Math.round(value * 10 ** decimals) / 10 ** decimals)
      check(value)
      check(Math.round(value) * 4096)
    }
    expect(read(-0).back).toBe(0)
  })
})
