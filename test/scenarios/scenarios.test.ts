// Every scenario of this folder, as a test of its own name.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseScenarios } from '../../core/alerting/scenario/parse.ts'
import { runScenario } from '../../core/alerting/scenario/run.ts'

const files = readdirSync(import.meta.dir).filter(name => name.endsWith('.txt'))

for (const file of files) {
  const parsed = parseScenarios(readFileSync(join(import.meta.dir, file), 'utf8'))
  if (!('scenarios' in parsed)) {
    test(`${file} can be read`, () => {
      throw new Error(`${file}:${parsed.line}: ${parsed.message}`)
    })
    continue
  }
  for (const scenario of parsed.scenarios)
    test(scenario.name, () => {
      const { faults } = runScenario(scenario)
      expect(faults.map(fault => `${file}:${scenario.line} ${fault}`)).toEqual([])
    })
}
