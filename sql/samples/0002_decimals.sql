-- Values as digits and decimals instead of floating point, and cells as distances from their last value: a third less on the disk.
-- Each table is built anew beside the old one and then takes its place, so that after a crash this file can be run again from its start.
-- core/samples/decimal.ts is the writer's side of `decimals` and `digits`. A cell keeps its newest value, how far min and max
-- lie from it, and what its sum has more than count times the newest value: nothing, where a series does not move.
DROP TABLE IF EXISTS {db}.next_raw;

CREATE TABLE {db}.next_raw (
  company_id UUID CODEC(ZSTD(1)),
  server_id UUID CODEC(ZSTD(1)),
  series_id UInt64 CODEC(ZSTD(1)),
  ts DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  decimals UInt8 CODEC(ZSTD(1)),
  digits Int64 CODEC(Delta(8), ZSTD(1)),
  value Float64 ALIAS if(decimals = 255, reinterpretAsFloat64(digits), digits / intExp10(decimals))
) ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(ts)
ORDER BY (company_id, server_id, series_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY DELETE
SETTINGS non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1;

INSERT INTO {db}.next_raw (company_id, server_id, series_id, ts, decimals, digits)
WITH
  (x -> multiIf(abs(x) <= 9007199254740992 AND round(x) = x, 0, abs(x) <= 90071992547409 AND round(x * 100) / 100 = x, 2,
                abs(x) <= 900719925474 AND round(x * 10000) / 10000 = x, 4, abs(x) <= 9007199254 AND round(x * 1000000) / 1000000 = x, 6, 255)) AS decimals_of
SELECT company_id, server_id, series_id, ts, decimals_of(value) AS d,
       if(d = 255, reinterpretAsInt64(value), toInt64(round(value * intExp10(d))))
FROM {db}.samples_raw FINAL
SETTINGS max_threads = 1, max_insert_threads = 1, max_partitions_per_insert_block = 0;

EXCHANGE TABLES {db}.next_raw AND {db}.samples_raw;

DROP TABLE {db}.next_raw SYNC;

DROP TABLE IF EXISTS {db}.next_5m;

DROP TABLE IF EXISTS {db}.next_1h;

CREATE TABLE {db}.next_5m (
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
) ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(ts)
ORDER BY (company_id, server_id, series_id, ts)
TTL toDateTime(ts) + INTERVAL 400 DAY DELETE
SETTINGS ttl_only_drop_parts = 1;

CREATE TABLE {db}.next_1h AS {db}.next_5m;

INSERT INTO {db}.next_5m (company_id, server_id, series_id, ts, count, last_after, decimals, last_digits, below, above, beside, version)
WITH
  (x -> multiIf(abs(x) <= 9007199254740992 AND round(x) = x, 0, abs(x) <= 90071992547409 AND round(x * 100) / 100 = x, 2,
                abs(x) <= 900719925474 AND round(x * 10000) / 10000 = x, 4, abs(x) <= 9007199254 AND round(x * 1000000) / 1000000 = x, 6, 255)) AS decimals_of,
  greatest(decimals_of(last), decimals_of(min), decimals_of(max)) AS wanted,
  if(greatest(abs(min), abs(max)) * count * intExp10(wanted) <= 4503599627370496, wanted, 255) AS d,
  ((x, d) -> if(d = 255, reinterpretAsInt64(x), toInt64(round(x * intExp10(d))))) AS digits_of
SELECT company_id, server_id, series_id, ts, count, toUInt32(toUnixTimestamp64Milli(last_ts) - toUnixTimestamp64Milli(ts)), d, digits_of(last, d),
       digits_of(last, d) - digits_of(min, d), digits_of(max, d) - digits_of(last, d), digits_of(sum, d) - toInt64(digits_of(last, d) * count), version
FROM {db}.rollup_5m FINAL
SETTINGS max_threads = 1, max_insert_threads = 1, max_partitions_per_insert_block = 0;

EXCHANGE TABLES {db}.next_5m AND {db}.rollup_5m;

DROP TABLE {db}.next_5m SYNC;

INSERT INTO {db}.next_1h (company_id, server_id, series_id, ts, count, last_after, decimals, last_digits, below, above, beside, version)
WITH
  (x -> multiIf(abs(x) <= 9007199254740992 AND round(x) = x, 0, abs(x) <= 90071992547409 AND round(x * 100) / 100 = x, 2,
                abs(x) <= 900719925474 AND round(x * 10000) / 10000 = x, 4, abs(x) <= 9007199254 AND round(x * 1000000) / 1000000 = x, 6, 255)) AS decimals_of,
  greatest(decimals_of(last), decimals_of(min), decimals_of(max)) AS wanted,
  if(greatest(abs(min), abs(max)) * count * intExp10(wanted) <= 4503599627370496, wanted, 255) AS d,
  ((x, d) -> if(d = 255, reinterpretAsInt64(x), toInt64(round(x * intExp10(d))))) AS digits_of
SELECT company_id, server_id, series_id, ts, count, toUInt32(toUnixTimestamp64Milli(last_ts) - toUnixTimestamp64Milli(ts)), d, digits_of(last, d),
       digits_of(last, d) - digits_of(min, d), digits_of(max, d) - digits_of(last, d), digits_of(sum, d) - toInt64(digits_of(last, d) * count), version
FROM {db}.rollup_1h FINAL
SETTINGS max_threads = 1, max_insert_threads = 1, max_partitions_per_insert_block = 0;

EXCHANGE TABLES {db}.next_1h AND {db}.rollup_1h;

DROP TABLE {db}.next_1h SYNC;
