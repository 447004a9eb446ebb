// Configuration: defaults, file, environment, options, in that order; every fault is said with its key.
import { expect, test } from 'bun:test'
import { address, boolean, duration, integer, list, map, secret, size, text } from '../../../core/config/keys.ts'
import { parseDuration, parseSize, resolveConfig } from '../../../core/config/resolve.ts'

const keys = {
  listen: address('127.0.0.1:1', ''),
  'log.level': text('info', '', ['info', 'warn']),
  'hub.token': secret(''),
  'debug.accept_json': boolean(false, ''),
  'bus.max_bytes': size(1024, '', { min: 10 }),
  'alerting.no_data_after': duration(300_000, '', { min: 1000 }),
  'ingest.limits.max_points': integer(20_000, '', { min: 1 }),
  trusted_proxies: list([], ''),
  'alerting.group_down.companies': map(''),
} as const

const resolve = (sources: {
  file?: unknown
  environment?: Record<string, string>
  options?: Record<string, unknown>
}) =>
  resolveConfig(keys, {
    file: sources.file,
    environment: sources.environment ?? {},
    options: sources.options ?? {},
    readSecretFile: path => {
      if (path === '/secret') return 'from the file\n'
      throw new Error(`cannot read ${path}`)
    },
  })
const faultsOf = (sources: Parameters<typeof resolve>[0]) =>
  resolve(sources).faults.map(({ key, value, message }) => `${key}${value && ` = ${value}`} ${message}`)

test('without anything, the defaults', () => {
  const { config, faults } = resolve({})
  expect(faults).toEqual([])
  expect(config['alerting.no_data_after']).toBe(300_000)
  expect(config['hub.token']).toBeNull()
})

test('options win over the environment, the environment over the file', () => {
  const file = { log: { level: 'warn' }, alerting: { no_data_after: '1m' }, bus: { max_bytes: '1 MiB' } }
  const environment = { SVC_ALERTING_NO_DATA_AFTER: '2m', SVC_LOG_LEVEL: 'info' }
  const { config, faults } = resolve({ file, environment, options: { 'log.level': 'warn' } })
  expect(faults).toEqual([])
  expect([config['log.level'], config['alerting.no_data_after'], config['bus.max_bytes']]).toEqual([
    'warn',
    120_000,
    1_048_576,
  ])
})

test('a key may be written nested or with dots; a mapping key keeps its subtree', () => {
  const { config, faults } = resolve({
    file: { 'ingest.limits': { max_points: 5 }, alerting: { group_down: { companies: { c1: { min: 2 } } } } },
  })
  expect(faults).toEqual([])
  expect(config['ingest.limits.max_points']).toBe(5)
  expect(config['alerting.group_down.companies']).toEqual({ c1: { min: 2 } })
})

test('a secret may stand in a file of its own; its value is never told', () => {
  expect(resolve({ file: { hub: { token_file: '/secret' } } }).config['hub.token']).toBe('from the file')
  expect(resolve({ environment: { SVC_HUB_TOKEN_FILE: '/secret' } }).config['hub.token']).toBe('from the file')
  expect(faultsOf({ file: { hub: { token_file: '/nowhere' } } })).toEqual([
    'hub.token_file = /nowhere cannot read /nowhere',
  ])
  expect(faultsOf({ file: { hub: { token: ['s3cret'] } } }).join()).not.toContain('s3cret')
  expect(faultsOf({ file: { log: { level_file: '/secret' } } })).toEqual(['log.level_file is not a known key'])
})

test('unknown keys and values out of their domain are all said, an unknown key without its value: it may be a secret', () => {
  expect(
    faultsOf({
      file: {
        bus: { max_byte: 1, max_bytes: 9 },
        log: { level: 'loud' },
        listen: 'nowhere',
        debug: { accept_json: 'yes' },
        ingest: { limits: { max_points: 1.5 } },
      },
    }).sort(),
  ).toEqual([
    'bus.max_byte is not a known key',
    'bus.max_bytes = 9 must be a number of bytes, or a size such as 64 MiB, 10 to ∞',
    'debug.accept_json = yes must be true or false',
    'ingest.limits.max_points = 1.5 must be a whole number',
    'listen = nowhere must be HOST:PORT, for example 127.0.0.1:8080',
    'log.level = loud must be one of info, warn',
  ])
  expect(faultsOf({ file: ['x'] })).toEqual(['(file) the configuration file must be a mapping of keys'])
})

test('durations and sizes are read as operators write them', () => {
  const d = (value: string, expected: number | null) => expect(parseDuration(value)).toBe(expected)
  d('30s', 30_000)
  d('1h30m', 5_400_000)
  d('250ms', 250)
  d('90d', 7_776_000_000)
  d('0', 0)
  for (const value of ['', '5', 's', '-5s', '5 s', '1.5h']) d(value, null)
  const s = (value: string, expected: number | null) => expect(parseSize(value)).toBe(expected)
  s('64 MiB', 67_108_864)
  s('1048576', 1_048_576)
  s('1.5GiB', 1_610_612_736)
  for (const value of ['', 'MiB', '5 MB', '-1']) s(value, null)
})
