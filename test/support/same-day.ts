// Loaded before a command that a test starts: its clock stands still at the end of the day on which the tests began, so
// that a name with the day in it is the one that they expect, also at midnight.
const endMs = Number(process.env.TEST_DAY_ENDS_MS)
const realNow = Date.now

globalThis.Date = class extends Date {
  constructor(...given: readonly number[]) {
    // @ts-expect-error Any arguments that a date is made of.
    super(...(given.length === 0 ? [Math.min(realNow(), endMs)] : given))
  }
  static override now(): number {
    return Math.min(realNow(), endMs)
  }
} as DateConstructor
