// The process that state-kills.test.ts kills: it takes reports and new databases step by step, and tells the hub
// meanwhile. Steps are numbered; the parent is told of each that is done, and says from where the next process goes on.
import { openState } from '../../../apps/matcher/state/open-state.ts'
import type { MatcherState } from '../../../apps/matcher/state/state-types.ts'
import type { Rule } from '../../../core/matching/advisory.ts'
import { randomFrom } from '../../support/random.ts'
import { advisories, differingKeys, rule } from './advisories.ts'
import { companyId, contentHashOf, hostId, report, scanHost } from './fleet-site.ts'
import { stateOptions } from './state-options.ts'

const HOSTS = 40
const SOURCES = ['bash', 'curl', 'glibc', 'openssl', 'perl', 'zlib']
const SWITCH_EVERY = 20
const FIRST_VERSION = 2026112200

const [dir = '', hubUrl = '', seedText = '', fromText = '', toText = ''] = process.argv.slice(2)
const seed = Number(seedText)

const randomOf = (part: number): (() => number) => randomFrom(seed * 1_000_003 + part)

function rowsOf(version: number): Record<string, readonly Rule[]> {
  const random = randomOf(version)
  const rows: Record<string, readonly Rule[]> = {}
  for (const source of SOURCES)
    rows[`debian:12 ${source}`] = Array.from({ length: 3 }, (_, at) =>
      rule(`CVE-${source}-${at}`, random() < 0.3 ? null : `${1 + Math.floor(random() * 4)}.0`),
    )
  return rows
}

const readerOf = (version: number) => advisories(version, version === 0 ? {} : rowsOf(version))

async function takeStep(state: MatcherState, step: number): Promise<void> {
  const random = randomOf(-step - 1)
  if (step % SWITCH_EVERY === 0) {
    const version = FIRST_VERSION + step / SWITCH_EVERY
    const before = state.currentVersion()
    if (before < version)
      await state.switchTo(readerOf(version), differingKeys(before === 0 ? {} : rowsOf(before), rowsOf(version)))
    return
  }
  const host = 1 + Math.floor(random() * HOSTS)
  const packages = SOURCES.filter(() => random() < 0.7).map(name => `${name} ${1 + Math.floor(random() * 4)}.0`)
  const body = report(packages.length === 0 ? ['bash 1.0'] : packages)
  const outcome = await state.acceptReport({
    hostId: hostId(host),
    report: body,
    contentHash: contentHashOf(body),
    requestTimeMs: step + 1,
    signature: `step ${step}`,
    receivedAtMs: Date.now(),
    minIntervalMs: 0,
  })
  if (outcome.outcome !== 'kept') throw new Error(`step ${step}: ${outcome.outcome}`)
}

async function tell(state: MatcherState): Promise<void> {
  for (const company of state.companiesWaiting()) {
    const batch = await state.nextBatch(company)
    if (batch === null) continue
    const response = await fetch(hubUrl, { method: 'POST', body: JSON.stringify(batch.events) })
    if (response.ok) await state.settle(batch)
  }
}

const state = openState(dir, {
  ...stateOptions(Date.now),
  onError: (what, error) => {
    console.error(what, error)
    process.exit(3)
  },
})
const current = state.currentVersion()
state.startWith(readerOf(current), current > FIRST_VERSION ? readerOf(current - 1) : null)
const hosts = Array.from({ length: HOSTS }, (_, at) => scanHost(1 + at, { companyId: companyId(1 + (at % 2)) }))
await state.applyHostsPage(hosts, { nextSince: 1, isLast: true })
console.log('ready')
let isDone = false
const telling = (async () => {
  while (!isDone || state.companiesWaiting().length > 0) {
    await tell(state)
    await new Promise(resolve => setImmediate(resolve))
  }
})()
for (let step = Number(fromText); step < Number(toText); step++) {
  await takeStep(state, step)
  console.log(`done ${step}`)
}
await state.rematched()
isDone = true
await telling
await state.close()
console.log('end')
