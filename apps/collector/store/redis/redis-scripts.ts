// Pieces of Lua that several scripts of the collector share.

/** The time of the Redis server, ms: the clocks of a collector's hosts need not agree. */
export const LUA_NOW = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
`

/** Formats numbers as text: Lua itself keeps only 14 digits. */
export const LUA_TEXT = `
local function text(number)
  return string.format('%.0f', number)
end
`

/**
 * Removes from the stream of a partition the entries that both consumers have passed, and updates the count of waiting
 * bytes. The first remaining entry records how many bytes came before it and when it arrived.
 */
export const LUA_TRIM = `
local function trim(partition, stream, state, passed)
  local at = redis.call('HMGET', passed, 'evaluation:' .. partition, 'samples:' .. partition)
  local upTo = math.min(tonumber(at[1] or '0'), tonumber(at[2] or '0'))
  if upTo <= 0 then return end
  redis.call('XTRIM', stream, 'MINID', text(upTo + 1) .. '-0')
  local account = redis.call('HMGET', state, 'bytes:' .. partition, 'held:' .. partition)
  local held = 0
  local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if first then
    held = tonumber(account[1] or '0') - tonumber(first[2][4])
    redis.call('HSET', state, 'oldest:' .. partition, first[2][2])
  else
    redis.call('HDEL', state, 'oldest:' .. partition)
  end
  redis.call('HINCRBY', state, 'held', text(held - tonumber(account[2] or '0')))
  redis.call('HSET', state, 'held:' .. partition, text(held))
end
`

/** Raises the position that a consumer has passed. */
export const LUA_PASS = `
local function pass(consumer, partition, position, passed)
  local field = consumer .. ':' .. partition
  if tonumber(redis.call('HGET', passed, field) or '0') < tonumber(position) then
    redis.call('HSET', passed, field, position)
    return true
  end
  return false
end
`

/** Adds an event to an outbox unless it waits there already. */
export const LUA_OUTBOX = `
local function addEvent(outbox, ids, eventId, kind, createdMs, event)
  if redis.call('HEXISTS', ids, eventId) == 1 then return false end
  local number = redis.call('HINCRBY', ids, 'last', 1)
  redis.call('HSET', ids, eventId, number)
  redis.call('XADD', outbox, text(number) .. '-0', 'e', event, 't', kind, 'c', createdMs)
  return true
end
`
