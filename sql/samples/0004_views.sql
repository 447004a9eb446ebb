-- Rows with their points taken apart: `times` in ms, and `values`. Views, since columns that are computed cost each read of the table 5 ms.
CREATE VIEW IF NOT EXISTS {db}.samples_runs AS
WITH
  reinterpretAsUInt8(substring(points, 1, 1)) AS decimals,
  reinterpretAsUInt8(substring(points, 10, 1)) AS width,
  toUInt32(reinterpretAsUInt16(substring(points, 11, 2))) AS more,
  reinterpretAsUInt32(substring(points, 13, 4)) AS step
SELECT company_id, server_id, series_id, ts, seq,
  arrayMap(after -> toUnixTimestamp64Milli(ts) + after, if(step = 0,
    arrayConcat([toUInt32(0)], reinterpret(substring(points, 17 + if(width = 255, 8, width) * more, 4 * more), 'Array(UInt32)')),
    arrayMap(point -> toUInt32(point * step), range(more + 1)))) AS times,
  if(decimals = 255,
    arrayConcat([reinterpretAsFloat64(substring(points, 2, 8))], reinterpret(if(width = 255, substring(points, 17, 8 * more), ''), 'Array(Float64)')),
    arrayMap(digits -> digits / intExp10(decimals), arrayCumSum(arrayConcat(
      [reinterpretAsInt64(substring(points, 2, 8))],
      arrayResize(emptyArrayInt64(), if(width = 0, more, 0)),
      CAST(reinterpret(if(width = 1, substring(points, 17, more), ''), 'Array(Int8)'), 'Array(Int64)'),
      CAST(reinterpret(if(width = 2, substring(points, 17, 2 * more), ''), 'Array(Int16)'), 'Array(Int64)'),
      CAST(reinterpret(if(width = 4, substring(points, 17, 4 * more), ''), 'Array(Int32)'), 'Array(Int64)'),
      reinterpret(if(width = 8, substring(points, 17, 8 * more), ''), 'Array(Int64)'))))) AS values
FROM {db}.samples_raw;

-- Every point once, for whoever looks into the store.
CREATE VIEW IF NOT EXISTS {db}.samples AS
SELECT company_id, server_id, series_id, fromUnixTimestamp64Milli(time, 'UTC') AS ts, value
FROM (
  SELECT company_id, server_id, series_id, time, argMax(point, seq) AS value
  FROM {db}.samples_runs ARRAY JOIN times AS time, values AS point
  GROUP BY company_id, server_id, series_id, time
)
