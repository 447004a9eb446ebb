// The responses to collectors (document 1 "Collector-facing endpoints"; decisions G-28, G-34, G-40, G-102, G-114,
// G-115). server_time is added to each of them.
import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { noDataModes, ruleKinds, severities } from '../../../core/alerting/rules/rule.ts'
import { agentStates } from '../../../core/lifecycle/agent.ts'
import {
  amount,
  answer,
  anyObject,
  id,
  listed,
  named,
  nullable,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'

const absent = <T extends TSchema>(schema: T) => Type.Optional(schema)
const number = () => nullable(Type.Number())

/** A record of a feed. A tombstone has only the first members. */
const record = <T extends TProperties>(name: string, properties: T) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>(named(name, { ...properties, sync_version: amount() }))

const agentRecord = record('AgentRecord', {
  agent_id: id(),
  company_id: id(),
  state: wordOf(agentStates),
  server_id: absent(nullable(id())),
  collector_id: absent(nullable(id())),
  token_hash: absent(string()),
  prev_token_hash: absent(nullable(string())),
  prev_token_expires_at: absent(nullable(time())),
  server_status: absent(wordOf(['maintenance', 'decommissioned', ''])),
  subnet_id: absent(string()),
  datacenter: absent(string()),
  hostname: absent(string()),
  interval_seconds: absent(amount()),
  scan: absent(Type.Object({ matcher_url: string(), enrol_code: string() })),
  version: absent(amount()),
})

const resolvedScope = Type.Object({
  all: Type.Boolean(),
  server_ids: listed(id()),
  resolved_server_ids: listed(id()),
})
const shared = {
  id: id(),
  company_id: id(),
  deleted: Type.Boolean(),
  /** Replaces the content of a record that is too large to be delivered: the upper bound of its bytes. */
  too_large: absent(amount()),
}

export const ruleRecord = record('RuleRecord', {
  ...shared,
  version: amount(),
  enabled: Type.Boolean(),
  name: absent(string()),
  kind: absent(wordOf(ruleKinds)),
  scope: absent(anyObject()),
  resolved_server_ids: absent(listed(id())),
  metric: absent(nullable(string())),
  matchers: absent(nullable(anyObject())),
  operator: absent(nullable(string())),
  threshold: absent(number()),
  for_seconds: absent(nullable(amount())),
  recover_threshold: absent(number()),
  recover_for_seconds: absent(nullable(amount())),
  severity: absent(wordOf(severities)),
  no_data: absent(nullable(wordOf(noDataModes))),
  renotify_seconds: absent(nullable(amount())),
})

export const silenceRecord = record('SilenceRecord', {
  ...shared,
  scope: resolvedScope,
  starts_at: time(),
  ends_at: time(),
  reason: string(),
  rule_ids: absent(listed(id())),
})

export const checkRecord = record('CheckRecord', {
  ...shared,
  enabled: Type.Boolean(),
  scope: resolvedScope,
  type: string(),
  name: string(),
  target: anyObject(),
  timeout_seconds: amount(),
})

export const serverRecord = record('ServerAttributes', {
  server_id: id(),
  company_id: id(),
  deleted: Type.Boolean(),
  tags: absent(listed(string())),
  environment: absent(nullable(string())),
  role: absent(nullable(string())),
  subnet_id: absent(nullable(string())),
  datacenter: absent(nullable(string())),
  status: absent(string()),
})

const page = { next_since: amount(), more: Type.Boolean() }

/** A page of a feed: the records under the feed's name. */
export const feedResponse = (name: string, item: TSchema) =>
  answer(Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({ [name]: listed(item), ...page })))

const oneAgent = Type.Object({ agent: agentRecord })
export const agentLookup = answer(oneAgent)
/** The agents feed; with token_hash only the agent with that token. */
export const agentsResponse = answer(
  Type.Unsafe<Readonly<Record<string, unknown>>>({
    anyOf: [Type.Object({ agents: listed(agentRecord), ...page }), oneAgent],
  }),
)

export const enrollResponse = answer(
  named('Enrollment', {
    agent_id: id(),
    company_id: id(),
    server_id: id(),
    agent_token: string(),
    config: Type.Object({ interval_seconds: amount() }),
  }),
)

export const eventsResponse = answer(
  named('EventsTaken', {
    accepted: listed(string()),
    rejected: listed(
      Type.Object({
        event_id: string(),
        reason: wordOf(['unknown_server', 'unsupported_type', 'invalid_payload']),
      }),
    ),
  }),
)

export const seenResponse = answer(named('AgentsSeen', { updated: amount(), unknown: listed(id()) }))

export const inventoryTaken = answer(
  named('InventoryTaken', {
    accepted: amount(),
    rejected: listed(
      Type.Object({
        agent_id: Type.Unknown(),
        reason: wordOf(['agent_mismatch', 'agent_revoked', 'unknown_server', 'invalid_facts']),
      }),
    ),
  }),
)

export const heartbeatResponse = answer(named('Heartbeat', { collector_id: id() }))

export const companySettings = answer(
  Type.Unsafe<Readonly<Record<string, unknown>>>(
    named('CompanySettings', {
      company_id: id(),
      group_down_min: nullable(amount()),
      group_down_ratio: number(),
      group_down_window_seconds: nullable(amount()),
      metrics_retention_days: nullable(amount()),
      metrics_retention_previous_days: nullable(amount()),
      metrics_retention_grace_until: nullable(time()),
    }),
  ),
)

export const renewResponse = answer(
  named('RenewedToken', {
    agent_token: string(),
    old_token_valid_until: time(),
    agent: Type.Object({
      agent_id: id(),
      company_id: id(),
      server_id: nullable(id()),
      state: wordOf(agentStates),
      token_hash: string(),
      prev_token_hash: nullable(string()),
      prev_token_expires_at: time(),
      version: amount(),
    }),
  }),
)

const labels = Type.Optional(
  Type.Unsafe<unknown>({ anyOf: [{ type: 'object', additionalProperties: { type: 'string' } }, { type: 'null' }] }),
)

/** The shape of an accepted event; each event is validated on its own. Other members are kept in the log. */
export const eventsBody = Type.Object({
  events: Type.Array(
    Type.Object({
      event_id: Type.String({ minLength: 1, maxLength: 128 }),
      type: string(),
      seq: amount(),
      occurred_at: Type.String({ format: 'date-time' }),
      company_id: id(),
      server_id: id(),
      rule_id: string(),
      rule_version: absent(Type.Integer()),
      series_key: string(),
      severity: wordOf(severities),
      value: absent(number()),
      threshold: absent(number()),
      suppressed: absent(nullable(Type.Boolean())),
      suppress_reason: absent(nullable(wordOf(['maintenance', 'silence', 'decommissioned']))),
      group_key: absent(nullable(string())),
      labels,
    }),
    { minItems: 1, maxItems: 200 },
  ),
})

export const inventoryBody = Type.Object({
  items: Type.Array(
    Type.Object({
      agent_id: id(),
      company_id: id(),
      server_id: id(),
      reported_at: Type.String({ format: 'date-time' }),
      facts: Type.Object({}),
    }),
    { minItems: 1, maxItems: 100 },
  ),
})
