// An agent on a virtual clock beside a scripted collector, with a state directory of its own.
import { setDefaultTimeout } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { type RunningAgent, type StartOptions, startAgent } from '../../apps/agent/agent.ts'
import { type AgentOptions, resolveAgentOptions } from '../../apps/agent/config.ts'
import { Peer } from './peer.ts'
import { TestClock } from './test-clock.ts'

// Virtual days are thousands of real requests: a busy host may need its time for them.
setDefaultTimeout(60_000)

export const LICENSE = 'lic_secret_of_the_test'

/** Options of a run out of configuration keys, as a file would give them. */
function optionsOf(keys: Record<string, unknown>): AgentOptions {
  const { options, faults } = resolveAgentOptions({
    file: undefined,
    environment: {},
    options: keys,
    readSecretFile: path => readFileSync(path, 'utf8'),
  })
  if (faults.length > 0) throw new Error(JSON.stringify(faults))
  return options
}

export class Rig {
  readonly peer = new Peer()
  readonly clock = new TestClock()
  readonly stateDir = mkdtempSync(join(tmpdir(), 'agent-test-'))
  /** Everything that was logged. */
  logged = ''
  #agents: RunningAgent[] = []

  constructor() {
    this.peer.now = () => this.clock.now()
  }

  /** Starts an agent on the rig's state directory. */
  async start(keys: Record<string, unknown> = {}, more: Partial<StartOptions> = {}): Promise<RunningAgent> {
    const log = pino(
      { level: 'debug' },
      {
        write: (line: string) => {
          this.logged += line
        },
      },
    )
    const options = optionsOf({ collector_url: this.peer.url, license: LICENSE, state_dir: this.stateDir, ...keys })
    const agent = await startAgent({ options, log, clock: this.clock, random: () => 0.5, ...more })
    this.#agents.push(agent)
    return agent
  }

  /** Log lines with this message. */
  lines(message: string): Record<string, unknown>[] {
    return this.logged
      .split('\n')
      .filter(line => line !== '')
      .map((line): Record<string, unknown> => JSON.parse(line))
      .filter(line => line.msg === message)
  }

  file(name: string): string {
    return readFileSync(join(this.stateDir, name), 'utf8')
  }

  status(): Record<string, unknown> {
    return JSON.parse(this.file('status.json'))
  }

  async stop(): Promise<void> {
    for (const agent of this.#agents) await agent.stop()
    await this.peer.stop()
    rmSync(this.stateDir, { recursive: true, force: true })
  }
}

/** Runs a test with a rig, and clears away after it. */
export async function withRig(test: (rig: Rig) => Promise<void>): Promise<void> {
  const rig = new Rig()
  try {
    await test(rig)
  } finally {
    await rig.stop()
  }
}
