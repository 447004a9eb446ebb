// How the embedded engine is kept small: this host also runs everything else. Measured against the engine's defaults.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Two threads of merges and small caches: the defaults are for servers that do nothing else. The engine counts free
 * places of its pool before it merges large parts or deletes, so these counts must fit the smaller pool. The two
 * threads share many places: a delete is one task a part, and with few places each of them waits a tenth of a second
 * for its own (25 parts: 3,300 ms with 4 places, 75 ms with 32).
 *
 * A row costs 170 ns to insert and 250 ns each time it is merged, so that parts are merged ten at a time instead of
 * five: a third less work for the processor, and at most twice as many parts. A fresh part lies in one file, which
 * costs a tenth less to write than one a column. Larger parts do not: a delete would write them anew as a whole.
 *
 * Its memory is looked at every two seconds instead of twenty times a second: on an idle host nothing woke it as often.
 * Each table looks for merges, and for streams that nothing here has, ten times a second at first and less and less
 * often until the next insert: eight tables woke an idle host 10 to 50 times a second. An insert and the end of a merge
 * call for the next look anyway.
 *
 * max_thread_pool_size is no bound to save with: an engine that has no thread left waits for one without end, and each
 * closing leaves about five behind.
 */
const CONFIG = `<clickhouse>
  <background_pool_size>2</background_pool_size>
  <background_merges_mutations_concurrency_ratio>16</background_merges_mutations_concurrency_ratio>
  <background_move_pool_size>1</background_move_pool_size>
  <background_fetches_pool_size>1</background_fetches_pool_size>
  <background_common_pool_size>1</background_common_pool_size>
  <background_schedule_pool_size>2</background_schedule_pool_size>
  <background_streaming_schedule_pool_size>1</background_streaming_schedule_pool_size>
  <max_thread_pool_size>1000</max_thread_pool_size>
  <max_thread_pool_free_size>4</max_thread_pool_free_size>
  <memory_worker_period_ms>2000</memory_worker_period_ms>
  <background_processing_pool_thread_sleep_seconds_if_nothing_to_do>5</background_processing_pool_thread_sleep_seconds_if_nothing_to_do>
  <background_streaming_processing_pool_thread_sleep_seconds_if_nothing_to_do>600</background_streaming_processing_pool_thread_sleep_seconds_if_nothing_to_do>
  <mark_cache_size>67108864</mark_cache_size>
  <index_mark_cache_size>8388608</index_mark_cache_size>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <tables_loader_foreground_pool_size>2</tables_loader_foreground_pool_size>
  <tables_loader_background_pool_size>1</tables_loader_background_pool_size>
  <merge_tree>
    <merge_selector_base>10</merge_selector_base>
    <min_bytes_for_wide_part>33554432</min_bytes_for_wide_part>
    <number_of_free_entries_in_pool_to_execute_mutation>1</number_of_free_entries_in_pool_to_execute_mutation>
    <number_of_free_entries_in_pool_to_lower_max_size_of_merge>1</number_of_free_entries_in_pool_to_lower_max_size_of_merge>
    <number_of_free_entries_in_pool_to_execute_optimize_entire_partition>1</number_of_free_entries_in_pool_to_execute_optimize_entire_partition>
  </merge_tree>
</clickhouse>
`

/** Writes the engine's configuration beside its data and returns the arguments that name it. */
export function embeddedEngineConfig(directory: string): string[] {
  const file = join(directory, 'engine.xml')
  writeFileSync(file, CONFIG, { mode: 0o600 })
  return [
    `--config-file=${file}`,
    '--max_threads=2',
    '--max_insert_threads=1',
    // Reads of one server touch a few kilobytes of each part: no read-ahead, no thread for it.
    '--local_filesystem_read_method=pread',
    '--output_format_json_quote_64bit_integers=0',
  ]
}
