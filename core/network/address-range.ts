// Addresses as numbers: ranges of them, their union, and what is left free between them.
import ipaddr from 'ipaddr.js'
import { addressText, parseCidr } from './cidr.ts'
import { type IpAddress, parseAddress } from './ip-address.ts'

export type Family = 4 | 6
/** Both ends belong to it. */
export type AddressRange = { readonly from: bigint; readonly to: bigint }

const numberOf = (address: IpAddress): bigint =>
  address.toByteArray().reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)

/** The number of an address; null for a text that is none. */
export function addressNumber(text: string): bigint | null {
  const address = parseAddress(text)
  return address && numberOf(address)
}

export function numberAddress(value: bigint, family: Family): string {
  const bytes = Array.from({ length: family === 4 ? 4 : 16 }, (_, index, all = family === 4 ? 4 : 16) =>
    Number((value >> BigInt(8 * (all - 1 - index))) & 0xffn),
  )
  return addressText(ipaddr.fromByteArray(bytes))
}

export const familyOf = (text: string): Family => (text.includes(':') ? 6 : 4)
const bitsOfFamily = (family: Family): number => (family === 4 ? 32 : 128)

/** The addresses of a block. */
export function rangeOfCidr(cidr: string): AddressRange & { readonly family: Family; readonly prefix: number } {
  const block = parseCidr(cidr)
  if (!block) throw new Error('assertion failed: a block that was stored is one')
  const family = familyOf(cidr)
  const from = numberOf(block.address)
  return { family, prefix: block.prefix, from, to: from + (1n << BigInt(bitsOfFamily(family) - block.prefix)) - 1n }
}

export const sizeOf = ({ from, to }: AddressRange): bigint => to - from + 1n

/** The same addresses in ranges that neither touch nor overlap, in order. */
export function unionOf(ranges: readonly AddressRange[]): AddressRange[] {
  const sorted = [...ranges].filter(({ from, to }) => from <= to).sort((a, b) => (a.from < b.from ? -1 : 1))
  const merged: { from: bigint; to: bigint }[] = []
  for (const { from, to } of sorted) {
    const last = merged.at(-1)
    if (!last || from > last.to + 1n) merged.push({ from, to })
    else if (to > last.to) last.to = to
  }
  return merged
}

/** What of a range none of the ranges has, in order. */
export function gapsIn(whole: AddressRange, taken: readonly AddressRange[]): AddressRange[] {
  const gaps: AddressRange[] = []
  let at = whole.from
  for (const { from, to } of unionOf(taken)) {
    if (to < at) continue
    if (from > whole.to) break
    if (from > at) gaps.push({ from: at, to: from - 1n })
    at = to + 1n
  }
  if (at <= whole.to) gaps.push({ from: at, to: whole.to })
  return gaps
}

/** What of the ranges, given in order and without overlap, lies in the gaps, given in the same way. */
export function partsIn(gaps: readonly AddressRange[], ranges: readonly AddressRange[]): AddressRange[] {
  const parts: AddressRange[] = []
  let at = 0
  for (const range of ranges) {
    while (at < gaps.length && gaps[at]!.to < range.from) at++
    for (let index = at; index < gaps.length && gaps[index]!.from <= range.to; index++) {
      let { from, to } = gaps[index]!
      if (from < range.from) from = range.from
      if (to > range.to) to = range.to
      parts.push({ from, to })
    }
  }
  return parts
}

/**
 * The lowest (highest) blocks of a prefix length that lie in free ranges, at most so many; and how many there are in
 * all.
 */
export function blocksIn(
  gaps: readonly AddressRange[],
  family: Family,
  prefix: number,
  countMax: number,
  down = false,
): { readonly blocks: readonly string[]; readonly total: bigint } {
  const size = 1n << BigInt(bitsOfFamily(family) - prefix)
  const blocks: string[] = []
  let total = 0n
  for (const { from, to } of down ? gaps.toReversed() : gaps) {
    const first = ((from + size - 1n) / size) * size
    if (first + size - 1n > to) continue
    const count = (to + 1n - first) / size
    total += count
    for (let index = 0n; index < count && blocks.length < countMax; index++)
      blocks.push(`${numberAddress(first + (down ? count - 1n - index : index) * size, family)}/${prefix}`)
  }
  return { blocks, total }
}

/** A number as JSON has it: text over 2^53. */
export const jsonNumber = (value: bigint): number | string =>
  value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value.toString()
