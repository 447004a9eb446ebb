// The scenario format: what cannot be read is told with its line, what differs with what was expected; the command's
// exit codes.
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runRulesTest } from '../../../apps/collector/worker/evaluation/rules-test.ts'
import { parseScenarios } from '../../../core/alerting/scenario/parse.ts'
import { runScenario } from '../../../core/alerting/scenario/run.ts'

const HEAD = 'scenario a test\nserver web-1\nrule cpu: cpu_usage_percent > 90\n'

/** `line: message` of the first fault, or `ok`. */
function fault(text: string): string {
  const parsed = parseScenarios(text)
  return 'scenarios' in parsed ? 'ok' : `${parsed.line}: ${parsed.message}`
}

/** The differences of the only scenario of a text. */
function differencesOf(text: string): readonly string[] {
  const parsed = parseScenarios(text)
  if (!('scenarios' in parsed)) throw new Error(`line ${parsed.line}: ${parsed.message}`)
  return runScenario(parsed.scenarios[0]!).faults
}

test('a line that cannot be read is told with its number', () => {
  expect(fault('server web-1')).toBe('1: the first line is `scenario [ID] what is shown`')
  expect(fault(`${HEAD}at 5x heartbeat web-1\nexpect nothing`)).toBe('4: 5x is not a time; write 90s, 5m, 1h30m')
  expect(fault(`${HEAD}at 5s explode web-1\nexpect nothing`)).toBe('4: explode is not something that can happen')
  expect(fault(`${HEAD}at 5s heartbeat web-2\nexpect nothing`)).toBe('4: no server web-2')
  expect(fault(`${HEAD}  cpu_usage_percent 1\nexpect nothing`)).toBe(
    '4: an indented line belongs under `<server> every <time>`',
  )
  expect(fault(`${HEAD}web-1 every 30s\n  cpu_usage_percent x\nexpect nothing`)).toBe('5: x is not a number')
  expect(fault(`${HEAD}rule cpu: cpu_usage_percent => 90\nexpect nothing`)).toMatch(/^4: operator => is not one of/)
  expect(fault(`${HEAD}expect 5s alert.exploded cpu web-1 color=red`)).toMatch(/^4: color=red is not understood/)
  expect(fault(HEAD)).toMatch(/^1: the scenario expects no event; say `expect nothing`/)
  expect(fault(`${HEAD}# a remark\nexpect nothing # and why`)).toBe('ok')
})

test('a difference names line, event and field', () => {
  const text = `${HEAD}at 5s batch web-1 cpu_usage_percent=95\nuntil 30s\n`
  expect(differencesOf(`${text}expect 5s alert.opened cpu web-1 value=95 threshold=90`)).toEqual([])
  expect(differencesOf(`${text}expect 5s alert.opened cpu web-1 value=96`)).toEqual([
    'line 6: differs    5s alert.opened cpu web-1: value is 95, expected 96',
  ])
  expect(differencesOf(`${text}expect 6s alert.opened cpu web-1`)).toEqual([
    'line 6: missing    6s alert.opened cpu web-1',
    expect.stringMatching(/^unexpected 5s alert.opened cpu web-1 series=cpu_usage_percent value=95 threshold=90/),
  ])
  expect(differencesOf(`${text}expect nothing`)).toHaveLength(1)
})

test('the command answers 0 when all is as expected, 1 for a difference, 2 for a file that cannot be read', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rules-test-'))
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const run = async (...files: string[]) => {
    const lines: string[] = []
    return { code: await runRulesTest(files, line => lines.push(line)), last: lines.at(-1) }
  }
  try {
    const good = file('good.txt', `${HEAD}at 5s batch web-1 cpu_usage_percent=50\nuntil 30s\nexpect nothing`)
    const bad = file('bad.txt', `${HEAD}at 5s batch web-1 cpu_usage_percent=95\nuntil 30s\nexpect nothing`)
    expect(await run(good)).toEqual({ code: 0, last: '1 passed, 0 failed' })
    expect(await run(good, bad)).toEqual({ code: 1, last: '1 passed, 1 failed' })
    expect(await run(good, file('none.txt', 'nonsense'))).toEqual({
      code: 2,
      last: '1 passed, 0 failed, 1 files cannot be read',
    })
    expect(await run(join(directory, 'missing.txt'))).toMatchObject({ code: 2 })
    expect((await run()).code).toBe(2)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
