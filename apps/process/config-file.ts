// What the configuration files of executables have in common: how they are read, and the faults of keys that all have.
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { isLoopback, splitAddress } from '../../core/config/address.ts'
import type { ConfigFault } from '../../core/config/keys.ts'

/** Reads a YAML file of configuration. Throws with a message for the operator. */
export function readConfigFile(path: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'))
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

/** Plain HTTP stays on this host, served or called, unless the operator says otherwise (decision G-15). */
export function plainFaults(config: Readonly<Record<string, unknown>>): ConfigFault[] {
  const faults: ConfigFault[] = []
  const isAllowed = config['listen.insecure'] === true
  const isTls = typeof config['tls.cert_file'] === 'string'
  for (const key of ['listen', 'admin.listen', 'ops.listen']) {
    const value = config[key]
    if (typeof value !== 'string' || isAllowed || isLoopback(splitAddress(value).hostname)) continue
    if (key === 'ops.listen' || !isTls)
      faults.push({
        key,
        value,
        message: 'would serve plain HTTP beyond this host; set listen.insecure to allow it',
      })
  }
  const hubUrl = config['hub.url']
  if (typeof hubUrl !== 'string') return faults
  const url = URL.canParse(hubUrl) ? new URL(hubUrl) : null
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    faults.push({ key: 'hub.url', value: hubUrl, message: 'must be an http:// or https:// address' })
  else if (url.protocol === 'http:' && !isAllowed && !isLoopback(url.hostname))
    faults.push({ key: 'hub.url', value: hubUrl, message: 'is plain http to another host; use https' })
  return faults
}

/** A wrong path of the certificate is a fault of the configuration. */
export function fileFaults(
  config: Readonly<Record<string, unknown>>,
  keys: readonly string[] = ['tls.cert_file', 'tls.key_file'],
): ConfigFault[] {
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
