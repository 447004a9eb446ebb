// A samples store of several servers (clickhouse.cluster): data lie in `…_local` on every node, replicated within a
// shard, and are written and read under the table's own name, which is Distributed (sql/samples/cluster.sql). What
// differs for whoever writes a statement stands here.

/** The part of an open store that decides this. */
type Store = { readonly database: string; readonly cluster: string | null }

/**
 * Of every statement. An insert is answered when the shards have it. Reads and inserts go to the first replica that
 * lives, in the order of the cluster's definition, so that what was stored is read. Subqueries stay on their shard, on
 * which all rows of a server are. A statement of all nodes waits 25 s for one that is away, and goes on without it.
 */
export const CLUSTER_SETTINGS = {
  distributed_foreground_insert: 1,
  load_balancing: 'in_order',
  prefer_localhost_replica: 0,
  distributed_product_mode: 'local',
  optimize_skip_unused_shards: 1,
  distributed_ddl_output_mode: 'null_status_on_timeout',
  distributed_ddl_task_timeout: '25',
} as const

/** The table as a statement names it that changes stored rows in place: Distributed can only be read and added to. */
export const storedTable = ({ database, cluster }: Store, table: string): string =>
  cluster === null ? `${database}.${table}` : `${database}.${table}_local ON CLUSTER '${cluster}'`

/** Deletes wait for all replicas; on a cluster each waits for itself, and one that is away follows when it is back. */
export const deleteSettings = ({ cluster }: Store): string =>
  `SETTINGS lightweight_deletes_sync = ${cluster === null ? 2 : 1}`

/** A table of the engine about itself, of all nodes. */
export const ofAllNodes = ({ cluster }: Store, table: string): string =>
  cluster === null ? table : `clusterAllReplicas('${cluster}', ${table})`

/** The table that a local one belongs to. */
export const tableOfStored = ({ cluster }: Store, stored: string): string =>
  cluster === null ? stored : stored.replace(/_local$/, '')
