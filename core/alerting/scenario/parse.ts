// Reads scenarios: rule behaviour as plain text that an operator can read and write, run with `collector-worker rules
// test FILE…`.
//
//   scenario [EVAL-007] a violation that holds for for_seconds opens an alert
//   settings no_data_after=5m flap_window=30m flap_transitions=4 flap_stable=30m snapshot_interval=30s
//            group_enabled=true group_window=60s group_min=5 group_ratio=0.3
//   server web-1 interval=30s status=maintenance subnet=s1 datacenter=d1 company=acme      (all but the name optional)
//   rule cpu: cpu_usage_percent{core=~"0|1"} > 90 for=5m recover=80 recover_for=2m severity=warning no_data=ignore
//             renotify=10m scope=all|web-1,web-2 resolved=web-3 company=acme kind=threshold  (on one line; the rest optional)
//   web-1 every 30s from=0s late=0s            one batch a tick; late = how long after its sample time a batch is received
//     cpu_usage_percent  50 10*95 _ 40         one value a tick; 10*95 = ten times; _ = the series is absent
//     heartbeat          14*1                  a tick with no series present still sends a batch, without samples
//   at 5m batch web-1 cpu_usage_percent=95 disk_used_percent{mount="/"}=10@4m30s,11@5m        value@time of the sample
//   at 5m heartbeat web-1                      a batch without samples
//   at 5m rule cpu: …                          the rule is edited (or made) so; its version grows
//   at 5m disable cpu | enable cpu | delete cpu
//   at 5m silence quiet scope=all|web-1 rules=cpu in=scope|resolved|top from=5m until=10m ; at 9m unsilence quiet
//   at 5m status web-1 maintenance|decommissioned|none ; subnet web-1 s2 ; datacenter web-1 d2
//   at 5m revoke web-1                         its last agent ; at 9m enroll web-1: a new agent of the server
//   at 5m restart down=10s                     graceful: the bus is drained, the state saved; starts again after `down`
//   at 5m crash down=10s                       killed: last snapshot, journal and bus are what is left
//   at 5m snapshot | overflow
//   at 5m group hub|config min=2 ratio=0.5 window=60s company=acme       one of the three a line; `-` unsets
//   expect 5m alert.opened cpu web-1 value=95  the event's own time, type, rule, server, and fields that count
//   expect 5m agent.down web-1 ; expect 5m group_down subnet:s1 members=web-1,web-2
//   expect nothing
//   until 20m                                  the end; otherwise 1 minute after the last step or expectation
//
// Everything that is emitted must be expected. At one instant: steps in the order of the text, batches, then every 10 s
// the sweep, then a snapshot, then a stop. A `#` starts a comment. Several scenarios may stand in one file.
import { limits } from '../../limits.ts'
import { FLAP_DEFAULTS } from '../evaluate/flapping.ts'
import { GROUP_DEFAULTS } from '../evaluate/group-parameters.ts'
import { parseAction } from './parse-action.ts'
import { parseRule } from './parse-rule.ts'
import type {
  ExpectedEvent,
  Scenario,
  ScenarioFault,
  ScenarioServer,
  ScenarioSettings,
  ScenarioStep,
} from './scenario.ts'
import { duration, durationText, LineFault, number, options, tokens, withoutComment } from './tokens.ts'

const AFTER_LAST_MS = 60_000

type Draft = {
  line: number
  name: string
  settings: ScenarioSettings
  servers: ScenarioServer[]
  steps: ScenarioStep[]
  expected: ExpectedEvent[]
  saysNothing: boolean
  untilMs: number | null
}

/** A block of ticks whose series lines are being read. */
type Block = {
  server: string
  everyMs: number
  fromMs: number
  lateMs: number
  line: number
  rows: Map<string, (number | null)[]>
}

const defaultSettings = (): ScenarioSettings => ({
  noDataAfterMs: limits.noDataAfterMs,
  flapWindowMs: FLAP_DEFAULTS.windowMs,
  flapTransitions: FLAP_DEFAULTS.transitions,
  flapStableMs: FLAP_DEFAULTS.stableMs,
  snapshotIntervalMs: limits.rulesStateIntervalMs,
  groupEnabled: true,
  groupWindowMs: GROUP_DEFAULTS.windowMs,
  groupMin: GROUP_DEFAULTS.min,
  groupRatio: GROUP_DEFAULTS.ratio,
})

const SETTINGS: Readonly<Record<string, (settings: ScenarioSettings, text: string) => void>> = {
  no_data_after: (s, text) => {
    s.noDataAfterMs = duration(text)
  },
  flap_window: (s, text) => {
    s.flapWindowMs = duration(text)
  },
  flap_transitions: (s, text) => {
    s.flapTransitions = number(text)
  },
  flap_stable: (s, text) => {
    s.flapStableMs = duration(text)
  },
  snapshot_interval: (s, text) => {
    s.snapshotIntervalMs = duration(text)
  },
  group_enabled: (s, text) => {
    s.groupEnabled = text === 'true'
  },
  group_window: (s, text) => {
    s.groupWindowMs = duration(text)
  },
  group_min: (s, text) => {
    s.groupMin = number(text)
  },
  group_ratio: (s, text) => {
    s.groupRatio = number(text)
  },
}

/** The scenarios of a file, or its first fault. */
export function parseScenarios(text: string): { scenarios: Scenario[] } | ScenarioFault {
  const drafts: Draft[] = []
  let block: Block | null = null
  const lines = text.split('\n')
  for (let index = 0; index <= lines.length; index++) {
    const line = index + 1
    const content = index < lines.length ? withoutComment(lines[index]!).trimEnd() : 'end'
    if (content.trim() === '') continue
    try {
      const draft = drafts.at(-1)
      if (/^\s/.test(content)) {
        if (!block) throw new LineFault('an indented line belongs under `<server> every <time>`')
        readRow(block, tokens(content))
        continue
      }
      if (block && draft) draft.steps.push(...ticks(block))
      block = null
      if (index === lines.length) break
      if (content.startsWith('scenario ')) drafts.push(newDraft(content.slice(9).trim(), line))
      else if (!draft) throw new LineFault('the first line is `scenario [ID] what is shown`')
      else block = readLine(draft, content, line)
    } catch (error) {
      if (error instanceof LineFault) return { line, message: error.message }
      throw error
    }
  }
  return finish(drafts)
}

const newDraft = (name: string, line: number): Draft => ({
  line,
  name,
  settings: defaultSettings(),
  servers: [],
  steps: [],
  expected: [],
  saysNothing: false,
  untilMs: null,
})

/** Reads an unindented line into the draft; returns the block that it opens. */
function readLine(draft: Draft, content: string, line: number): Block | null {
  const parts = tokens(content)
  const [first = '', second = ''] = parts
  switch (first) {
    case 'settings':
      for (const [name, value] of options(parts.slice(1), Object.keys(SETTINGS))) SETTINGS[name]!(draft.settings, value)
      return null
    case 'server':
      draft.servers.push(readServer(second, parts.slice(2)))
      return null
    case 'rule':
      draft.steps.push({ atMs: 0, line, action: { kind: 'rule', rule: parseRule(parts.slice(1)) } })
      return null
    case 'at':
      draft.steps.push({ atMs: duration(second), line, action: parseAction(parts.slice(2), duration(second)) })
      return null
    case 'expect':
      if (second === 'nothing') draft.saysNothing = true
      else draft.expected.push(readExpected(parts.slice(1), line))
      return null
    case 'until':
      draft.untilMs = duration(second)
      return null
  }
  if (second !== 'every')
    throw new LineFault(
      `${first} is not understood; a line starts with settings, server, rule, at, expect, until or <server> every`,
    )
  const given = options(parts.slice(3), ['from', 'late'])
  return {
    server: first,
    everyMs: duration(parts[2] ?? ''),
    fromMs: duration(given.get('from') ?? '0'),
    lateMs: duration(given.get('late') ?? '0'),
    line,
    rows: new Map(),
  }
}

function readServer(name: string, rest: readonly string[]): ScenarioServer {
  const given = options(rest, ['company', 'interval', 'status', 'subnet', 'datacenter'])
  return {
    name,
    company: given.get('company') ?? 'acme',
    intervalSeconds: duration(given.get('interval') ?? '30s') / 1000,
    status: given.get('status') ?? '',
    subnet: given.get('subnet') ?? '',
    datacenter: given.get('datacenter') ?? '',
  }
}

/** Field names of `expect`; see `event-text.ts`. */
const EXPECT_FIELDS = [
  'series', 'value', 'threshold', 'severity', 'version', 'suppressed', 'reason', 'duration', 'peak', 'transitions',
  'members', 'total', 'server', 'company', 'emitted', 'labels.',
] // biome-ignore format: a list of words

function readExpected(parts: readonly string[], line: number): ExpectedEvent {
  const [at = '', type = '', ...rest] = parts
  const names = rest.filter(part => !part.includes('=') && !part.includes('"'))
  const fields = options(rest.slice(names.length), EXPECT_FIELDS)
  for (const name of ['duration', 'emitted'])
    if ((fields.get(name) ?? 'absent') !== 'absent') fields.set(name, durationText(duration(fields.get(name)!)))
  const isAlert = type.startsWith('alert.')
  const isGroup = type.startsWith('group_')
  if (!isAlert && !isGroup && !type.startsWith('agent.')) throw new LineFault(`${type} is not a type of event`)
  if (names.length !== (isAlert ? 2 : 1))
    throw new LineFault(isAlert ? 'after the type: rule and server' : 'after the type: one name')
  return {
    line,
    atMs: duration(at),
    type,
    rule: isAlert || isGroup ? names[0]! : '',
    server: isAlert ? names[1]! : isGroup ? '' : names[0]!,
    fields,
  }
}

function readRow(block: Block, parts: readonly string[]): void {
  const [key = '', ...words] = parts
  const values: (number | null)[] = []
  for (const word of words) {
    const repeated = /^(\d+)\*(.+)$/.exec(word)
    const text = repeated ? repeated[2]! : word
    const value = text === '_' ? null : number(text)
    for (let count = repeated ? Number(repeated[1]) : 1; count > 0; count--) values.push(value)
  }
  if (values.length === 0) throw new LineFault('a series has at least one value')
  block.rows.set(key, values)
}

/** The batches of a block, one a tick. */
function ticks(block: Block): ScenarioStep[] {
  const steps: ScenarioStep[] = []
  const length = Math.max(...[...block.rows.values()].map(values => values.length))
  for (let tick = 0; tick < length; tick++) {
    const tsMs = block.fromMs + tick * block.everyMs
    const present = [...block.rows].filter(([, values]) => (values[tick] ?? null) !== null)
    if (present.length === 0) continue
    const series = present
      .filter(([key]) => key !== 'heartbeat')
      .map(([key, values]) => ({ key, points: [{ tsMs, value: values[tick]! }] }))
    steps.push({ atMs: tsMs + block.lateMs, line: block.line, action: { kind: 'batch', server: block.server, series } })
  }
  return steps
}

function finish(drafts: readonly Draft[]): { scenarios: Scenario[] } | ScenarioFault {
  const scenarios: Scenario[] = []
  for (const draft of drafts) {
    if (draft.expected.length === 0 && !draft.saysNothing)
      return { line: draft.line, message: 'the scenario expects no event; say `expect nothing` if none must come' }
    if (draft.expected.length > 0 && draft.saysNothing)
      return { line: draft.line, message: '`expect nothing` stands beside an expected event' }
    const known = new Set(draft.servers.map(server => server.name))
    for (const { action, line } of draft.steps)
      if ('server' in action && !known.has(action.server)) return { line, message: `no server ${action.server}` }
    const times = [...draft.steps, ...draft.expected].map(timed => timed.atMs)
    scenarios.push({
      line: draft.line,
      name: draft.name,
      settings: draft.settings,
      servers: draft.servers,
      steps: draft.steps
        .map((step, order) => ({ step, order }))
        .sort((a, b) => a.step.atMs - b.step.atMs || a.order - b.order)
        .map(({ step }) => step),
      expected: draft.expected,
      untilMs: draft.untilMs ?? Math.max(0, ...times) + AFTER_LAST_MS,
    })
  }
  return { scenarios }
}
