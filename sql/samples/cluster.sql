-- The tables of version 6 on a cluster (clickhouse.cluster): what the other files make on one server lies as `…_local` on every node, replicated
-- within a shard, and is written and read under its name through Distributed. All rows of a server are on one shard, so that each shard answers
-- for its servers alone, late cells included. Macros of the nodes: {shard} and {replica}. Every statement can be run again.
CREATE DATABASE IF NOT EXISTS {db} ON CLUSTER '{cluster}';

CREATE TABLE IF NOT EXISTS {db}.schema_version_local ON CLUSTER '{cluster}' (
  version UInt32,
  applied_at DateTime64(3, 'UTC')
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{db}/schema_version', '{replica}') ORDER BY version;

CREATE TABLE IF NOT EXISTS {db}.series_local ON CLUSTER '{cluster}' (
  company_id UUID CODEC(ZSTD(1)),
  server_id UUID CODEC(ZSTD(1)),
  metric LowCardinality(String),
  series_id UInt64 CODEC(ZSTD(1)),
  key String CODEC(ZSTD(1)),
  first_seen SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{db}/series', '{replica}')
ORDER BY (company_id, server_id, metric, series_id, key)
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800, index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {db}.samples_raw_local ON CLUSTER '{cluster}' (
  company_id UUID CODEC(ZSTD(1)),
  server_id UUID CODEC(ZSTD(1)),
  series_id UInt64 CODEC(ZSTD(1)),
  ts DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  seq UInt64 CODEC(Delta(8), ZSTD(1)),
  shape UInt64 CODEC(ZSTD(1)),
  first Int64 CODEC(T64('bit'), ZSTD(1)),
  points String CODEC(ZSTD(3))
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{db}/samples_raw', '{replica}')
PARTITION BY toYYYYMMDD(ts)
ORDER BY (company_id, server_id, series_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY DELETE
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {db}.rollup_5m_local ON CLUSTER '{cluster}' (
  company_id UUID CODEC(ZSTD(1)),
  server_id UUID CODEC(ZSTD(1)),
  series_id UInt64 CODEC(ZSTD(1)),
  ts DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  count UInt32 CODEC(ZSTD(1)),
  last_after UInt32 CODEC(ZSTD(1)),
  decimals UInt8 CODEC(ZSTD(1)),
  last_digits Int64 CODEC(T64, ZSTD(3)),
  below Int64 CODEC(T64, ZSTD(3)),
  above Int64 CODEC(T64, ZSTD(3)),
  beside Int64 CODEC(T64, ZSTD(3)),
  version UInt64 CODEC(ZSTD(1)),
  last Float64 ALIAS if(decimals = 255, reinterpretAsFloat64(last_digits), last_digits / intExp10(decimals)),
  min Float64 ALIAS if(decimals = 255, reinterpretAsFloat64(last_digits - below), (last_digits - below) / intExp10(decimals)),
  max Float64 ALIAS if(decimals = 255, reinterpretAsFloat64(last_digits + above), (last_digits + above) / intExp10(decimals)),
  sum Float64 ALIAS if(decimals = 255, reinterpretAsFloat64(toInt64(last_digits * count) + beside), (toInt64(last_digits * count) + beside) / intExp10(decimals)),
  last_ts DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toUnixTimestamp64Milli(ts) + last_after, 'UTC')
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{db}/rollup_5m', '{replica}', version)
PARTITION BY toYYYYMM(ts)
ORDER BY (company_id, server_id, series_id, ts)
TTL toDateTime(ts) + INTERVAL 400 DAY DELETE
SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {db}.rollup_1h_local ON CLUSTER '{cluster}' AS {db}.rollup_5m_local
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{db}/rollup_1h', '{replica}', version)
PARTITION BY toYYYYMM(ts)
ORDER BY (company_id, server_id, series_id, ts)
TTL toDateTime(ts) + INTERVAL 400 DAY DELETE
SETTINGS ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {db}.rollup_late_local ON CLUSTER '{cluster}' (
  batch String,
  company_id UUID,
  server_id UUID,
  ts DateTime64(3, 'UTC')
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{db}/rollup_late', '{replica}') ORDER BY batch
SETTINGS replicated_deduplication_window = 1000, replicated_deduplication_window_seconds = 604800, fsync_after_insert = 1, fsync_part_directory = 1;

CREATE TABLE IF NOT EXISTS {db}.rollup_progress_local ON CLUSTER '{cluster}' (
  cell LowCardinality(String),
  complete_before DateTime64(3, 'UTC')
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{db}/rollup_progress', '{replica}', complete_before) ORDER BY cell;

CREATE TABLE IF NOT EXISTS {db}.retention_memory_local ON CLUSTER '{cluster}' (
  company_id UUID,
  day Date,
  first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  retention_days SimpleAggregateFunction(max, UInt32)
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{db}/retention_memory', '{replica}') ORDER BY (company_id, day);

CREATE TABLE IF NOT EXISTS {db}.schema_version ON CLUSTER '{cluster}' AS {db}.schema_version_local
ENGINE = Distributed('{cluster}', '{db}', 'schema_version_local', version);

CREATE TABLE IF NOT EXISTS {db}.series ON CLUSTER '{cluster}' AS {db}.series_local
ENGINE = Distributed('{cluster}', '{db}', 'series_local', cityHash64(company_id, server_id));

CREATE TABLE IF NOT EXISTS {db}.samples_raw ON CLUSTER '{cluster}' AS {db}.samples_raw_local
ENGINE = Distributed('{cluster}', '{db}', 'samples_raw_local', cityHash64(company_id, server_id));

CREATE TABLE IF NOT EXISTS {db}.rollup_5m ON CLUSTER '{cluster}' AS {db}.rollup_5m_local
ENGINE = Distributed('{cluster}', '{db}', 'rollup_5m_local', cityHash64(company_id, server_id));

CREATE TABLE IF NOT EXISTS {db}.rollup_1h ON CLUSTER '{cluster}' AS {db}.rollup_1h_local
ENGINE = Distributed('{cluster}', '{db}', 'rollup_1h_local', cityHash64(company_id, server_id));

CREATE TABLE IF NOT EXISTS {db}.rollup_late ON CLUSTER '{cluster}' AS {db}.rollup_late_local
ENGINE = Distributed('{cluster}', '{db}', 'rollup_late_local', cityHash64(company_id, server_id));

CREATE TABLE IF NOT EXISTS {db}.rollup_progress ON CLUSTER '{cluster}' AS {db}.rollup_progress_local
ENGINE = Distributed('{cluster}', '{db}', 'rollup_progress_local', cityHash64(cell));

CREATE TABLE IF NOT EXISTS {db}.retention_memory ON CLUSTER '{cluster}' AS {db}.retention_memory_local
ENGINE = Distributed('{cluster}', '{db}', 'retention_memory_local', cityHash64(company_id));

-- Rows with their points taken apart: `times` in ms, and `values`.
CREATE VIEW IF NOT EXISTS {db}.samples_runs ON CLUSTER '{cluster}' AS
WITH
  shape = 0 AS is_older,
  toUInt8(if(is_older, reinterpretAsUInt8(substring(points, 1, 1)), bitAnd(shape, 255))) AS decimals,
  toUInt32(if(is_older, reinterpretAsUInt16(substring(points, 11, 2)), bitAnd(bitShiftRight(shape, 16), 65535))) AS more,
  toUInt32(if(is_older, reinterpretAsUInt32(substring(points, 13, 4)), bitShiftRight(shape, 32))) AS step,
  toUInt32(if(step = 0, 4 * more, 0)) AS time_bytes,
  toUInt32(if(is_older, 16, if(decimals = 255, 8, 0))) AS values_after,
  toUInt32(if(is_older, reinterpretAsUInt8(substring(points, 10, 1)), if(more = 0, 0, intDiv(length(points) - values_after - time_bytes, more)))) AS width,
  arrayMap(point -> substring(points, toUInt32(values_after + 1 + point * width), width), range(if(width = 255, 0, more))) AS texts,
  arrayMap(text -> reinterpretAsUInt64(text), if(is_older, emptyArrayString(), texts)) AS wholes
SELECT company_id, server_id, series_id, ts, seq,
  arrayMap(after -> toUnixTimestamp64Milli(ts) + after, if(step = 0,
    arrayConcat([toUInt32(0)], reinterpret(if(more = 0, '', substring(points, toUInt32(values_after + 1 + if(width = 255, 8, width) * more), time_bytes)), 'Array(UInt32)')),
    arrayMap(point -> toUInt32(point * step), range(more + 1)))) AS times,
  multiIf(
    decimals = 255, reinterpret(if(is_older, concat(substring(points, 2, 8), substring(points, 17, 8 * more)), substring(points, 1, 8 * (more + 1))), 'Array(Float64)'),
    is_older, arrayMap(digits -> digits / intExp10(decimals), arrayCumSum(arrayConcat([reinterpretAsInt64(substring(points, 2, 8))],
      arrayMap(text -> multiIf(width = 1, toInt64(reinterpretAsInt8(text)), width = 2, toInt64(reinterpretAsInt16(text)),
        width = 4, toInt64(reinterpretAsInt32(text)), reinterpretAsInt64(text)), texts)))),
    bitAnd(shape, 65280) = 512, arrayMap(digits -> digits / intExp10(decimals), arrayConcat([first], arrayMap(whole -> toInt64(whole), wholes))),
    arrayMap(digits -> digits / intExp10(decimals), arrayCumSum(arrayConcat([first],
      arrayMap(whole -> if(width = 8, reinterpretAsInt64(whole), toInt64(bitXor(bitShiftRight(whole, 1), negate(toInt64(bitAnd(whole, 1)))))), wholes))))) AS values
FROM {db}.samples_raw;

-- Every point once, for whoever looks into the store.
CREATE VIEW IF NOT EXISTS {db}.samples ON CLUSTER '{cluster}' AS
SELECT company_id, server_id, series_id, fromUnixTimestamp64Milli(time, 'UTC') AS ts, value
FROM (
  SELECT company_id, server_id, series_id, time, argMax(point, seq) AS value
  FROM {db}.samples_runs ARRAY JOIN times AS time, values AS point
  GROUP BY company_id, server_id, series_id, time
)
