// What a command prints: one JSON object with --json, else lines for people.
import type { Command } from 'commander'
import type { Hub } from '../hub-context.ts'

export type Print = (result: Readonly<Record<string, unknown>>) => void

/** Runs an act on an open hub and prints its result; set up and torn down by main.ts. */
export type Run = (command: Command, act: (hub: Hub, print: Print) => Promise<void>) => Promise<void>

/** A value on a line for people; what has parts as JSON. */
function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '')
}

export function printer(isJson: boolean): Print {
  return result => {
    if (isJson) {
      process.stdout.write(`${JSON.stringify(result)}\n`)
      return
    }
    const { data } = result
    if (Array.isArray(data)) {
      for (const row of data)
        process.stdout.write(
          `${Object.entries(row as Record<string, unknown>)
            .map(([key, value]) => `${key}=${textOf(value)}`)
            .join('  ')}\n`,
        )
      return
    }
    // A result is a sentence by itself.
    for (const [key, value] of Object.entries(result))
      process.stdout.write(key === 'result' ? `${textOf(value)}\n` : `${key}: ${textOf(value)}\n`)
  }
}

/** `90d`, `12h`, `30s` or `never` as the instant it ends; throws for anything else. */
export function expiryOf(text: string, nowMs: number, parseDuration: (value: string) => number | null): Date | null {
  if (text === 'never') return null
  const lengthMs = parseDuration(text)
  if (lengthMs === null || lengthMs <= 0) throw new Error('--expires-in must be such as 90d, 12h, 30s, or never')
  return new Date(nowMs + lengthMs)
}

/** A number of the command line, or `none` as null. */
export function numberOrNone(text: string, option: string, min: number, max: number): number | null {
  if (text === 'none') return null
  return wholeNumber(text, option, min, max)
}

export function wholeNumber(text: string, option: string, min: number, max: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < min || value > max)
    throw new Error(`${option} must be a whole number, ${min} to ${max}`)
  return value
}
