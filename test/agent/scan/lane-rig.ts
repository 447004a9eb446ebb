// The scanning of an agent on a virtual clock, beside a scripted matcher: it scans a root of its own.
import { mkdtempSync, readFileSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { resolveAgentOptions } from '../../../apps/agent/config.ts'
import { ScanLane } from '../../../apps/agent/scan/scan-lane.ts'
import { readScanStatus } from '../../../apps/agent/scan/scan-status.ts'
import { ScanStore } from '../../../apps/agent/scan/scan-store.ts'
import { SettingsInForce } from '../../../apps/agent/state/settings-in-force.ts'
import { StateDir } from '../../../apps/agent/state/state-dir.ts'
import { StatusReport } from '../../../apps/agent/state/status.ts'
import { dpkgRoot } from '../../support/package-tools.ts'
import { TestClock } from '../test-clock.ts'
import { ScriptedMatcher } from './scripted-matcher.ts'

export const CODE = 'code_of_the_test'
const STATUS = 'var/lib/dpkg/status'

export class LaneRig {
  readonly matcher: ScriptedMatcher
  readonly clock = new TestClock()
  readonly stateDir = mkdtempSync(join(tmpdir(), 'scan-test-'))
  readonly root = dpkgRoot()
  readonly dir = new StateDir(this.stateDir)
  logged = ''
  #lanes: { lane: ScanLane; ended: Promise<void> }[] = []

  /** With key and certificate the matcher serves https. */
  constructor(tls: { readonly key: string; readonly cert: string } | null = null) {
    this.matcher = new ScriptedMatcher(tls)
    this.matcher.now = () => this.clock.now()
    this.root.write('etc/machine-id', '0123456789abcdef0123456789abcdef\n')
    this.install('base-files', '1')
  }

  /** Starts scanning as a process that begins now would. */
  start(keys: Record<string, unknown> = {}): { settings: SettingsInForce; status: StatusReport } {
    const { options, faults } = resolveAgentOptions({
      file: undefined,
      environment: {},
      options: { state_dir: this.stateDir, 'scan.matcher_url': this.matcher.url, 'scan.enrol_code': CODE, ...keys },
      readSecretFile: path => readFileSync(path, 'utf8'),
    })
    if (faults.length > 0) throw new Error(JSON.stringify(faults))
    const { clock, dir } = this
    const write = (line: string): void => {
      this.logged += line
    }
    const log = pino({ level: 'debug' }, { write })
    const status = new StatusReport(dir, clock, log, '1.2.3')
    const settings = new SettingsInForce(options, dir, status, log)
    const lane = new ScanLane({ options, log, clock, random: () => 1, dir, status, settings }, this.root.path)
    this.#lanes.push({ lane, ended: lane.run() })
    return { settings, status }
  }

  async stopLanes(): Promise<void> {
    for (const { lane, ended } of this.#lanes.splice(0)) {
      lane.stop()
      await ended
    }
  }

  /** Puts a package into the scanned root, as of the virtual now. */
  install(name: string, version: string): void {
    const path = this.root.write(
      STATUS,
      `Package: ${name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: ${version}\n\n`,
    )
    utimesSync(path, this.clock.now() / 1000, this.clock.now() / 1000)
  }

  get store(): ScanStore {
    return new ScanStore(this.dir)
  }

  get status() {
    return readScanStatus(this.stateDir, true)
  }

  /** Lets virtual time pass until so many calls of a path were made, and what follows from them is done. */
  async calls(path: string, count: number, withinMs = 3_600_000): Promise<void> {
    await this.clock.runUntil(() => this.matcher.of(path).length >= count, `${count} calls of ${path}`, withinMs, 1)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopLanes()
    await this.matcher.stop()
    this.root[Symbol.dispose]()
    rmSync(this.stateDir, { recursive: true, force: true })
  }
}
