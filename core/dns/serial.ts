// The serial number of a zone: what secondaries compare to learn that they are behind.

export const serialPolicies = ['date', 'increment'] as const
type SerialPolicy = (typeof serialPolicies)[number]

const MODULUS = 2 ** 32

/** Whether `a` is newer than `b` in the arithmetic of RFC 1982, 32 bits wide. */
export function isNewerSerial(a: number, b: number): boolean {
  const ahead = (a - b + MODULUS) % MODULUS
  return ahead !== 0 && ahead < MODULUS / 2
}

/** `date`: YYYYMMDD00 of the day in UTC, or one more than before where that is not newer. `increment`: one more. */
export function nextSerial(policy: SerialPolicy, serial: number, now: Date): number {
  const next = (serial + 1) % MODULUS
  if (policy === 'increment') return next
  const today = Number(now.toISOString().slice(0, 10).replaceAll('-', '')) * 100
  return isNewerSerial(today, serial) ? today : next
}
