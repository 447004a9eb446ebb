// What the configuration files of executables have in common: how they are read, and the faults of files they name.
import { readFileSync } from 'node:fs'
import { LineCounter, parseDocument } from 'yaml'
import type { ConfigFault } from '../../core/config/keys.ts'

/**
 * The content of a YAML file of configuration. Throws with the place and kind of what is wrong and no line of the file:
 * its lines hold passwords, and the message goes to a log.
 */
export function parseConfig(text: string): unknown {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { prettyErrors: false, lineCounter })
  const [fault] = document.errors
  if (fault) {
    const { line, col } = lineCounter.linePos(fault.pos[0])
    throw new Error(`line ${line}, column ${col}: ${fault.code.toLowerCase().replaceAll('_', ' ')}`)
  }
  try {
    return document.toJS()
  } catch {
    throw new Error('an alias (*name) in it names nothing, or there are too many of them')
  }
}

/** Reads a YAML file of configuration. Throws with a message for the operator. */
export function readConfigFile(path: string): unknown {
  try {
    return parseConfig(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new Error(`cannot read the configuration ${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

export const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** `listen` is an address, and `listen.insecure` a key beside it: nested YAML writes the first as `listen.address`. */
export function withNestedListen(file: unknown): unknown {
  if (!isMapping(file) || !isMapping(file.listen)) return file
  const { listen, ...rest } = file
  const { address: where, ...nested } = isMapping(listen) ? listen : {}
  const dotted = Object.fromEntries(Object.entries(nested).map(([name, value]) => [`listen.${name}`, value]))
  return { ...rest, ...(where === undefined ? {} : { listen: where }), ...dotted }
}

/** A file that cannot be read is a fault of the configuration. */
export function fileFaults(config: Readonly<Record<string, unknown>>, keys: readonly string[]): ConfigFault[] {
  const faults: ConfigFault[] = []
  for (const key of keys) {
    const value = config[key]
    if (typeof value !== 'string') continue
    try {
      readFileSync(value)
    } catch (error) {
      const cause = error instanceof Error && 'code' in error ? String(error.code) : 'no file'
      faults.push({ key, value, message: `cannot be read (${cause})` })
    }
  }
  return faults
}

/** One line a fault, for the operator. */
export const describeFault = (fault: ConfigFault): string =>
  `${fault.key}${fault.value ? ` = ${fault.value}` : ''} ${fault.message}`
