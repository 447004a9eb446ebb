// UUIDs as 16 bytes, for the places where text would cost: bus entries and column blocks.

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** True for the canonical lowercase form. */
export const isUuid = (text: string): boolean => UUID.test(text)

/** True for any value that is a UUID, in upper case too: as people and their programs may send it. */
export const isUuidOfAnyCase = (value: unknown): value is string =>
  typeof value === 'string' && value.length === 36 && UUID.test(value.toLowerCase())

/** Writes the 16 bytes of a canonical UUID at `offset`. */
export function writeUuid(into: Uint8Array, offset: number, uuid: string): void {
  let at = 0
  for (let byte = 0; byte < 16; byte++) {
    if (at === 8 || at === 13 || at === 18 || at === 23) at++
    into[offset + byte] = (hexDigit(uuid.charCodeAt(at)) << 4) | hexDigit(uuid.charCodeAt(at + 1))
    at += 2
  }
}

function hexDigit(code: number): number {
  return code >= 97 ? code - 87 : code >= 65 ? code - 55 : code - 48
}

/** The canonical text of the 16 bytes at `offset`. */
export function readUuid(from: Uint8Array, offset: number): string {
  const h = (index: number) => HEX[from[offset + index]!]!
  return `${h(0)}${h(1)}${h(2)}${h(3)}-${h(4)}${h(5)}-${h(6)}${h(7)}-${h(8)}${h(9)}-${h(10)}${h(11)}${h(12)}${h(13)}${h(14)}${h(15)}`
}
