// Scenarios as `collector-worker rules test` runs them, for the judge. With it come the runner and RE2, which no other
// part of the page needs.
import { parseScenarios } from '../../../../../core/alerting/scenario/parse.ts'
import { runScenario } from '../../../../../core/alerting/scenario/run.ts'
import type { ScenarioVerdict } from './judge-messages.ts'

/** The verdict of each scenario of a text, or the line that is not understood. */
export function runText(
  text: string,
): { readonly verdicts: readonly ScenarioVerdict[] } | { readonly line: number; readonly message: string } {
  const parsed = parseScenarios(text)
  if (!('scenarios' in parsed)) return { line: parsed.line, message: parsed.message }
  return {
    verdicts: parsed.scenarios.map(scenario => ({
      name: scenario.name,
      line: scenario.line,
      faults: runScenario(scenario).faults,
    })),
  }
}
