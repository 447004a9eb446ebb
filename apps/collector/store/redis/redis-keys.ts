// Every key that the processes of one collector share in Redis, and what lies under it (decision G-143). The scripts
// touch several keys at once, so that the server is one Redis (or a primary with replicas), not a Redis Cluster.
import { limits } from '../../../../core/limits.ts'

/** The lease of the leader, the one worker that sweeps groups and retention and computes rollups. */
export const LEADER = limits.stateShards
/** Number of leases: the shards and the leader's. */
export const LEASES = limits.stateShards + 1

/** A stream of the bus holds the entries of so many partitions: a commit costs an item in each that it has some of. */
export const PARTITIONS_A_STREAM = 16
export const BUS_STREAMS = limits.stateShards / PARTITIONS_A_STREAM
export const streamOf = (partition: number): number => Math.floor(partition / PARTITIONS_A_STREAM)

const busKeys = (prefix: string) => ({
  // The bus: a stream for sixteen partitions. An item `N-0`, N its number in the stream, is what one commit has of
  // them: fields t (time, ms), c (bytes of the stream before it), r (`PARTITION LAST COUNT BYTES` of each run of
  // entries of a partition, LAST the position of its last entry), b (the entries of all runs, one after another).
  stream: (stream: number): string => `${prefix}bus:stream:${stream}`,
  /**
   * The stream that a partition had of its own in versions before 2026-12; what such a version wrote is moved. An item
   * `P-0` is a group of entries, P its last position, with n (number of entries) instead of r.
   */
  formerStream: (partition: number | ''): string => `${prefix}bus:${partition}`,
  /**
   * Hash: head:P last position of a partition; of a stream S stream-last:S its last item, stream-bytes:S bytes ever
   * published, stream-held:S bytes that wait, stream-oldest:S when the oldest of them came; held: bytes that wait in
   * all, overflow: when a batch was last refused at the bound, about: a text that makes it a hash table. bytes:P,
   * held:P and oldest:P say of a former stream what those of a stream say.
   */
  busState: `${prefix}bus:state`,
  /**
   * Hash: evaluation:P and samples:P, the position that the consumer has passed for good; evaluation-item:P and
   * samples-item:P, an item of the stream behind which all is that it has not passed.
   */
  busPassed: `${prefix}bus:passed`,
})

/** Ends the name of a worker that reads the streams of the bus; a former version read those of the partitions. */
export const STREAM_WORKER = ' streams'

const leaseKeys = (prefix: string) => ({
  /** Sorted set of workers by the time at which they count as gone, named `OWNER streams`. */
  workers: `${prefix}workers`,
  /** The last fencing number. */
  fence: `${prefix}lease:fence`,
  /** `OWNER FENCE`, expiring: who evaluates a shard. */
  lease: (lease: number): string => (lease === LEADER ? `${prefix}lease:duties` : `${prefix}lease:shard:${lease}`),

  /** Who brings the samples store to its schema, expiring. */
  samplesSchema: `${prefix}lease:samples-schema`,
})

/** What is kept of the evaluation of a shard, and the events that wait for the hub. */
const shardKeys = (prefix: string) => ({
  /** Snapshot of a shard, as core/alerting/durability/snapshot.ts writes it. */
  snapshot: (shard: number): string => `${prefix}snapshot:${shard}`,
  /**
   * Hash: key of a record -> JSON as in the journal: alerts that are open, and what is left of a snapshot that cannot
   * be read.
   */
  openRecords: (shard: number): string => `${prefix}journal:${shard}:open`,
  /** List of JSON {i: number, p: position, r: record}: journal since the snapshot. */
  journal: (shard: number): string => `${prefix}journal:${shard}`,
  /** Hash: journal -> number of the last record that the shard ever wrote, writer -> the lease it was written under. */
  shardState: (shard: number): string => `${prefix}shard:${shard}`,
  /** Set of full series keys of a shard. */
  seriesKeys: (shard: number): string => `${prefix}keys:${shard}`,
  /**
   * List of JSON {p: position, s: cursor, id: rule, c: company, b and a: names before and after}: rules that changed
   * since the snapshot.
   */
  ruleChanges: (shard: number): string => `${prefix}rules:notes:${shard}`,
  /** Hash: rule -> the newest such note of any shard. */
  newestRules: `${prefix}rules:notes:newest`,
  /** JSON of a rule by its name `ID:SYNC_VERSION`, expiring. */
  ruleText: (name: string): string => `${prefix}rules:text:${name}`,
  /**
   * Stream of events for the hub, in the order in which they were made; the id is `NUMBER-0`; fields e (event), t
   * (type), c (made at, ms).
   */
  outbox: (shard: number): string => `${prefix}outbox:${shard}`,
  /** Hash: last -> number of the last event, and event_id -> its number for those that wait. */
  outboxIds: (shard: number): string => `${prefix}outbox:${shard}:ids`,
  /** String: JSON of a value kept by name. */
  kept: (name: string): string => `${prefix}kept:${name}`,
})

/** What all processes know: agents, feeds, purges, and what they ask each other. */
const sharedKeys = (prefix: string) => ({
  /** `up MS` or `down MS`: presence of an agent since its last change (document 2 "Agent presence"). */
  agentState: (agentId: string): string => `${prefix}agent:${agentId}:st`,
  /** Hash: server id -> since when, ms: servers that are declared lost. */
  presenceDown: `${prefix}presence:down`,

  /** Hash: agent id -> JSON record, or `-` for one that was removed. */
  agents: `${prefix}registry:agents`,
  /** Sorted set: agent id by the number of its last change. */
  agentChanges: `${prefix}registry:changes`,
  /** Hash: change, since, synced_at_ms. */
  registryState: `${prefix}registry:state`,

  /** Hash: since, synced_at_ms, records (JSON): the set of a feed and its cursor. */
  feed: (feed: string): string => `${prefix}feed:${feed}`,
  /**
   * Hash: `HOST:PID` -> JSON {at_ms, ingest_rps, outbox_depth}: what each process last told of itself, for heartbeats.
   */
  processes: `${prefix}processes`,
  /** Counter: raised by every reload call (document 3 "Hub to collector admin API"). */
  reload: (feed: string): string => `${prefix}${feed}:reload`,
  /** Hash: `COMPANY SERVER` -> JSON tombstone; the field of a company's purge has no server. */
  tombstones: `${prefix}purge:tombstones`,
  /** List for the answers to one question to other workers, expiring. */
  answers: (question: string): string => `${prefix}answers:${question}`,
  /** String: written before a wait for replicas, which then have all that was written before it. */
  replicationMark: `${prefix}replication-mark`,
  /** Channel of questions to workers. */
  questions: `${prefix}questions`,
})

export type RedisKeys = ReturnType<typeof redisKeys>

export const redisKeys = (prefix: string) => ({
  prefix,
  ...busKeys(prefix),
  ...leaseKeys(prefix),
  ...shardKeys(prefix),
  ...sharedKeys(prefix),
})
