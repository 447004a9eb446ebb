// `collector-worker rules test FILE…`: runs rule scenarios through the production state machine and says what differs.
import { readFileSync } from 'node:fs'
import { parseScenarios } from '../../../../core/alerting/scenario/parse.ts'
import { runScenario } from '../../../../core/alerting/scenario/run.ts'

/**
 * Runs the scenarios of the files. Resolves to the exit code: 0 all as expected, 1 something differs, 2 a file cannot
 * be read.
 */
export async function runRulesTest(files: string[], write: (line: string) => void): Promise<number> {
  if (files.length === 0) {
    write('usage: collector-worker rules test FILE…')
    return 2
  }
  let passed = 0
  let failed = 0
  let unread = 0
  for (const file of files) {
    const parsed = readScenarios(file)
    if ('fault' in parsed) {
      write(parsed.fault)
      unread++
      continue
    }
    for (const scenario of parsed.scenarios) {
      const { faults } = runScenario(scenario)
      if (faults.length === 0) passed++
      else failed++
      write(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${file}:${scenario.line} ${scenario.name}`)
      for (const fault of faults) write(`       ${fault}`)
    }
  }
  write(`${passed} passed, ${failed} failed${unread > 0 ? `, ${unread} files cannot be read` : ''}`)
  return unread > 0 ? 2 : failed > 0 ? 1 : 0
}

function readScenarios(file: string) {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    return { fault: `cannot read ${file}: ${error instanceof Error ? error.message : String(error)}` }
  }
  const parsed = parseScenarios(text)
  return 'scenarios' in parsed ? parsed : { fault: `${file}:${parsed.line}: ${parsed.message}` }
}
