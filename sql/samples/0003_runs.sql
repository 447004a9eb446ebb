-- Points of one series that follow each other in one row: insert and merges cost by the row. core/samples/point-run.ts writes and reads
-- `points`, and says what lies where. Of two rows with a point of the same time the one with the higher `seq` counts.
-- The table is built anew beside the old one and then takes its place, so that after a crash this file can be run again from its start. Once
-- the new one is in place it is passed over (samples-schema.ts).
DROP TABLE IF EXISTS {db}.next_raw;

CREATE TABLE {db}.next_raw (
  company_id UUID CODEC(ZSTD(1)),
  server_id UUID CODEC(ZSTD(1)),
  series_id UInt64 CODEC(ZSTD(1)),
  ts DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  seq UInt64 CODEC(Delta(8), ZSTD(1)),
  points String CODEC(ZSTD(1))
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(ts)
ORDER BY (company_id, server_id, series_id, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY DELETE
SETTINGS non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1;

INSERT INTO {db}.next_raw (company_id, server_id, series_id, ts, seq, points)
SELECT company_id, server_id, series_id, ts, 0, concat(reinterpretAsFixedString(decimals), reinterpretAsFixedString(digits))
FROM {db}.samples_raw FINAL
SETTINGS max_threads = 1, max_insert_threads = 1, max_partitions_per_insert_block = 0;

EXCHANGE TABLES {db}.next_raw AND {db}.samples_raw;

DROP TABLE {db}.next_raw SYNC;
