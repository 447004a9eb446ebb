-- An insert is on the disk when it is acknowledged (fsync_after_insert): the bus then forgets what it held of it.
CREATE DATABASE IF NOT EXISTS {db};

CREATE TABLE IF NOT EXISTS {db}.schema_version (
  version UInt32,
  applied_at DateTime64(3, 'UTC')
) ENGINE = ReplacingMergeTree ORDER BY version;

CREATE TABLE IF NOT EXISTS {db}.series (
  company_id UUID CODEC(ZSTD(1)),
  server_id UUID CODEC(ZSTD(1)),
  metric LowCardinality(String),
  series_id UInt64 CODEC(ZSTD(1)),
  key String CODEC(ZSTD(1)),
  first_seen SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
) ENGINE = AggregatingMergeTree
ORDER BY (company_id, server_id, metric, series_id, key)
SETTINGS non_replicated_deduplication_window = 1000, index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {db}.samples_raw (
  company_id UUID CODEC(ZSTD(1)),
  server_id UUID CODEC(ZSTD(1)),
  series_id UInt64 CODEC(ZSTD(1)),
  ts DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  value Float64 CODEC(ZSTD(1))
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(ts)
ORDER BY (company_id, server_id, series_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY DELETE
SETTINGS non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {db}.rollup_5m (
  company_id UUID CODEC(ZSTD(1)),
  server_id UUID CODEC(ZSTD(1)),
  series_id UInt64 CODEC(ZSTD(1)),
  ts DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  count UInt32 CODEC(ZSTD(1)),
  sum Float64 CODEC(ZSTD(1)),
  min Float64 CODEC(ZSTD(1)),
  max Float64 CODEC(ZSTD(1)),
  last Float64 CODEC(ZSTD(1)),
  last_ts DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  version UInt64 CODEC(ZSTD(1))
) ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(ts)
ORDER BY (company_id, server_id, series_id, ts)
TTL toDateTime(ts) + INTERVAL 400 DAY DELETE
SETTINGS ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS {db}.rollup_1h AS {db}.rollup_5m;

CREATE TABLE IF NOT EXISTS {db}.rollup_late (
  batch String,
  company_id UUID,
  server_id UUID,
  ts DateTime64(3, 'UTC')
) ENGINE = MergeTree ORDER BY batch
SETTINGS non_replicated_deduplication_window = 1000, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {db}.rollup_progress (
  cell LowCardinality(String),
  complete_before DateTime64(3, 'UTC')
) ENGINE = ReplacingMergeTree(complete_before) ORDER BY cell;

CREATE TABLE IF NOT EXISTS {db}.retention_memory (
  company_id UUID,
  day Date,
  first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  retention_days SimpleAggregateFunction(max, UInt32)
) ENGINE = AggregatingMergeTree ORDER BY (company_id, day)
