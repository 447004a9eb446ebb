// Every limit and default of the contract, once, with the relations between them asserted; those of flapping and of
// incidents stand with their rules (alerting/evaluate/flapping.ts, alerting/evaluate/group-parameters.ts).
// Sources: document 1 "Limits", document 2 "Limits", document 3 "Limits", and the decisions that fill their gaps.
import { assert } from './assert.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
const KIB = 1024
const MIB = 1024 * KIB

export const limits = {
  /** Agent protocol versions that the collector speaks (header X-SVC-Proto). */
  protoMin: 1,
  protoMax: 1,

  bodyBytesMax: 1 * MIB,
  inflatedBytesMax: 8 * MIB,
  pointsPerRequestMax: 20_000,
  /**
   * Names, labels and unknown fields of a request that are read one by one: enough for 8 labels (each a field with two
   * inside) in each of 20,000 new series. Without a bound, bytes that compress to nothing would keep a thread for long.
   */
  fieldsPerRequestMax: 500_000,
  seriesPerAgentMax: 500,
  /** A series not seen for this long frees its place in the agent's limit. */
  seriesActiveMs: HOUR_MS,
  labelsPerSeriesMax: 32,
  labelValueBytesMax: 128,
  pointAgeMaxMs: 24 * HOUR_MS,
  pointAheadMaxMs: 5 * MINUTE_MS,
  /** What lies further ahead of now than this came while a clock was wrong. Ingest takes no point from so far ahead. */
  wrongClockAheadMs: 60 * MINUTE_MS,
  warningsPerAckMax: 20,
  /** What is kept of a warning that an agent gives of itself. */
  agentWarningCharsMax: 500,

  metricsPerMinute: 4,
  metricsBurst: 10,
  /**
   * Bytes of batches after decompression are limited at the rate of requests times these, a request on average: 8 MiB a
   * minute and 20 MiB at once. A full batch of 20,000 points of 20,000 series has less. A pending agent gets less,
   * since nothing of it is kept.
   */
  inflatedBytesPerRequest: 2 * MIB,
  inflatedBytesPerRequestPending: 256 * KIB,
  configPerMinute: 2,
  inventoryPerMinute: 2,

  intervalSecondsMin: 10,
  intervalSecondsMax: 300,
  intervalSecondsDefault: 30,
  /** An agent sends at most this often, whatever its interval: the metrics rate limit refills one request in 15 s. */
  sendPeriodMinMs: 15 * SECOND_MS,
  agentBufferBytes: 64 * MIB,
  configPollMs: 300 * SECOND_MS,
  configPollJitter: 0.2,
  configReloadMinMs: 30 * SECOND_MS,
  inventoryPeriodMs: 6 * HOUR_MS,
  backoffStartMs: 5 * SECOND_MS,
  backoffCapMs: 300 * SECOND_MS,
  renewPeriodMs: 30 * DAY_MS,
  tokenOverlapMs: DAY_MS,

  checksPerServerMax: 50,
  checkTimeoutSecondsDefault: 5,
  checkTimeoutSecondsMax: 15,
  checkIntervalSecondsMin: 30,
  checkIntervalSecondsMax: 3600,

  stateShards: 64,
  seriesKeyBytesMax: 255,
  regexCharsMax: 128,
  matcherListMax: 64,
  forSecondsMax: 86_400,
  renotifySecondsMin: 60,
  renotifySecondsMax: 604_800,
  staleMinMs: 2 * MINUTE_MS,
  noDataAfterMs: 5 * MINUTE_MS,
  /** The state of an OK series is dropped after this long a silence. */
  okStateDropMs: DAY_MS,
  /**
   * How often evaluation looks for series that are no longer sent. Longer than ingest takes to forget a series, or to
   * announce it again.
   */
  seriesSweepMs: 2 * HOUR_MS,
  presenceSweepMs: 10 * SECOND_MS,
  presenceDownMinMs: 90 * SECOND_MS,
  rulesStateIntervalMs: 30 * SECOND_MS,
  silenceKeepMs: DAY_MS,

  eventsPerRequest: 200,
  inventoryPerRequest: 100,
  inventoryBodyBytesMax: 1 * MIB,
  seenPerRequest: 1000,
  syncPageDefault: 100,
  syncPageMax: 500,
  agentsPageMax: 1000,
  /** The hub ends a page of a feed with the record that reaches this, so that a page is at most this and one record. */
  feedPageBytes: 4 * MIB,
  /** The hub withholds a record that may be larger than this and reports it instead. */
  feedRecordBytesMax: 16 * MIB,
  /** The collector does not read larger responses of the hub. */
  hubAnswerBytesMax: 64 * MIB,
  /** Bytes of a server id in a record of a feed, with quotes and a comma. */
  feedIdBytes: 40,
  clockSkewWarnMs: 5 * SECOND_MS,
  hubOnlineThresholdMs: 300 * SECOND_MS,
  collectorOnlineMs: 180 * SECOND_MS,
  seenIntervalMs: MINUTE_MS,
  heartbeatIntervalMs: 30 * SECOND_MS,

  queryPointsMax: 11_000,
  /** An answer about several metrics leaves metrics out that come after so many points. */
  queryMetricsPointsMax: 200_000,
  /** Series of one server that are listed; those of the metrics that come first in the catalogue count first. */
  querySeriesListedMax: 5_000,
  queryPointsDefault: 500,
  queryStepMinMs: 30 * SECOND_MS,
  queryRangeMaxMs: 400 * DAY_MS,
  queryRawMaxAgeMs: 7 * DAY_MS,
  /** As the TTL of the tables has it (sql/samples/): nothing here deletes. */
  rawRetentionDays: 30,
  rollupRetentionDays: 400,
  statusValueAgeMs: 15 * MINUTE_MS,

  outboxEventsMax: 1_000_000,
  purgeTombstoneMs: 15 * MINUTE_MS,
  /** How long after its end a tombstone is known: batches of before may lie on the bus while no worker reads it. */
  purgeTombstoneKeptMs: 7 * DAY_MS,
  purgeSecondDeleteMs: 10 * SECOND_MS,
  tombstonePollMs: 2 * SECOND_MS,

  pageSize: 15,
  licenseNameMax: 255,
  licenseUsesMax: 1000,

  /** Refused enrollments that are kept (decision G-180). */
  refusalsPerCompany: 1_000,
  refusalDays: 7,
  refusalAddressesMax: 16,

  /**
   * Limits of one company, unless the operator's configuration sets others. They exist because every collector keeps
   * the records of every company.
   */
  serversPerCompany: 50_000,
  serversPerCompanyMax: 250_000,
  rulesPerCompany: 2_000,
  silencesPerCompany: 1_000,
  silenceRuleIdsMax: 200,
  checksPerCompany: 1_000,
  companiesPerCompany: 100,
  /** Ids of servers in all rules, silences and checks of a company, listed and resolved. */
  scopeIdsPerCompany: 2_000_000,
  /** The maximum of listed server ids, and of names of each kind, in one scope. */
  scopeServerIdsMax: 10_000,
  scopeNamesMax: 200,
  scopeNameCharsMax: 128,
} as const

assert(limits.seenIntervalMs * 3 < limits.hubOnlineThresholdMs, 'seen must arrive three times in the online threshold')
assert(limits.presenceSweepMs < limits.presenceDownMinMs, 'a sweep must see a silent agent in time')
assert(limits.sendPeriodMinMs * limits.metricsPerMinute >= MINUTE_MS, 'an agent at its fastest must fit the rate limit')
assert(limits.bodyBytesMax < limits.inflatedBytesMax, 'a body may inflate')
assert(limits.pointAgeMaxMs <= DAY_MS, 'the locked zone starts after one day at the earliest')
assert(limits.seriesActiveMs < limits.seriesSweepMs, 'ingest forgets a series before evaluation does')
assert(limits.backoffStartMs < limits.backoffCapMs, 'backoff grows')

/** Four kinds of names, each character of at most six bytes in JSON. */
const scopeNamesBytes = 4 * limits.scopeNamesMax * (6 * limits.scopeNameCharsMax + 4)
assert(
  (limits.serversPerCompanyMax + limits.scopeServerIdsMax) * limits.feedIdBytes + scopeNamesBytes + MIB <
    limits.feedRecordBytesMax,
  'a record that names every server a company may have is delivered',
)
assert(
  limits.feedPageBytes + limits.feedRecordBytesMax + MIB < limits.hubAnswerBytesMax,
  'the largest page of a feed fits the answer that a collector reads',
)
assert(limits.serversPerCompany <= limits.serversPerCompanyMax, 'the servers of a company are within what can be set')
assert(limits.scopeServerIdsMax <= limits.serversPerCompany, 'a scope lists no more servers than a company has')
assert(limits.checksPerCompany < limits.rulesPerCompany, 'every check may bring a rule, and there is room beside them')
