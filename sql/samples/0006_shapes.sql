-- What differs little between rows lies apart from their points, so that each is packed by what is like it: a fifth less on the disk.
-- core/samples/block/chunk-codec.ts writes and reads `shape`, `first` and `points`, and says what lies where. Rows of before stay as they
-- lie: their shape is 0.
ALTER TABLE {db}.samples_raw
  ADD COLUMN IF NOT EXISTS shape UInt64 CODEC(ZSTD(1)) AFTER seq,
  ADD COLUMN IF NOT EXISTS first Int64 CODEC(T64('bit'), ZSTD(1)) AFTER shape,
  MODIFY COLUMN points String CODEC(ZSTD(3));

-- Rows with their points taken apart: `times` in ms, and `values`.
CREATE OR REPLACE VIEW {db}.samples_runs AS
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
FROM {db}.samples_raw
