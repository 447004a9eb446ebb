// Pieces of Lua that several scripts of the collector share.
import { PARTITIONS_A_STREAM } from './redis-keys.ts'

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
 * Removes from a stream the items of which both consumers have passed every entry, and updates the count of waiting
 * bytes. The first remaining item records how many bytes came before it and when it came. A consumer that has passed
 * all of a partition has no more to ask of any item that is there.
 */
export const LUA_TRIM = `
local function trim(index, stream, state, passed)
  local first = index * ${PARTITIONS_A_STREAM}
  local fields, asked = {'stream-last:' .. index, 'stream-bytes:' .. index, 'stream-held:' .. index}, {}
  for partition = first, first + ${PARTITIONS_A_STREAM - 1} do
    fields[#fields + 1] = 'head:' .. partition
    for _, consumer in ipairs({'evaluation', 'samples'}) do
      asked[#asked + 1] = consumer .. ':' .. partition
      asked[#asked + 1] = consumer .. '-item:' .. partition
    end
  end
  local account, at = redis.call('HMGET', state, unpack(fields)), redis.call('HMGET', passed, unpack(asked))
  local last = tonumber(account[1] or '0')
  local upTo, moved = last, {}
  for field = 1, #asked, 2 do
    local head = tonumber(account[3 + math.ceil(field / 4)] or '0')
    local item = tonumber(at[field + 1] or '0')
    if tonumber(at[field] or '0') < head then
      upTo = math.min(upTo, item)
    elseif item ~= last then
      moved[#moved + 1] = asked[field + 1]
      moved[#moved + 1] = text(last)
    end
  end
  if #moved > 0 then redis.call('HSET', passed, unpack(moved)) end
  if upTo <= 0 then return end
  redis.call('XTRIM', stream, 'MINID', text(upTo + 1) .. '-0')
  local held = 0
  local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if oldest then
    held = tonumber(account[2] or '0') - tonumber(oldest[2][4])
    redis.call('HSET', state, 'stream-oldest:' .. index, oldest[2][2])
  else
    redis.call('HDEL', state, 'stream-oldest:' .. index)
  end
  redis.call('HINCRBY', state, 'held', text(held - tonumber(account[3] or '0')))
  redis.call('HSET', state, 'stream-held:' .. index, text(held))
end
`

/** Raises the position that a consumer has passed, and the item behind which all is that it has not; 0: not known. */
export const LUA_PASS = `
local function pass(consumer, partition, position, item, passed)
  local field = consumer .. ':' .. partition
  if tonumber(redis.call('HGET', passed, field) or '0') >= tonumber(position) then return false end
  redis.call('HSET', passed, field, position)
  local itemField = consumer .. '-item:' .. partition
  if tonumber(redis.call('HGET', passed, itemField) or '0') < item then
    redis.call('HSET', passed, itemField, text(item))
  end
  return true
end
`

/** So many groups of a partition's former stream are moved in one call. */
export const MOVED_GROUPS = 64

/**
 * Moves the first `most` groups of a partition's former stream to its stream, under their positions, and removes the
 * former one once it is empty. Returns whether there may be more.
 */
export const LUA_MOVE = `
local function moveFormer(partition, former, index, stream, state, most)
  local rows = redis.call('XRANGE', former, '-', '+', 'COUNT', most)
  local account = redis.call('HMGET', state, 'stream-last:' .. index, 'stream-bytes:' .. index, 'stream-held:' .. index,
    'stream-oldest:' .. index, 'held:' .. partition)
  local item, before, held = tonumber(account[1] or '0'), tonumber(account[2] or '0'), tonumber(account[3] or '0')
  local oldest, formerHeld = tonumber(account[4] or '0'), tonumber(account[5] or '0')
  local position
  for _, row in ipairs(rows) do
    local atMs, count, bytes = row[2][2], row[2][6], row[2][8]
    position = string.match(row[1], '^%d+')
    item = item + 1
    redis.call('XADD', stream, text(item) .. '-0', 't', atMs, 'c', text(before),
      'r', partition .. ' ' .. position .. ' ' .. count .. ' ' .. #bytes, 'b', bytes)
    before, held, formerHeld = before + #bytes, held + #bytes, formerHeld - #bytes
    if oldest == 0 or tonumber(atMs) < oldest then oldest = tonumber(atMs) end
  end
  if #rows > 0 then
    redis.call('HSET', state, 'stream-last:' .. index, text(item), 'stream-bytes:' .. index, text(before),
      'stream-held:' .. index, text(held), 'stream-oldest:' .. index, text(oldest))
  end
  if #rows == most then
    redis.call('XTRIM', former, 'MINID', text(tonumber(position) + 1) .. '-0')
    redis.call('HSET', state, 'held:' .. partition, text(formerHeld))
    return true
  end
  redis.call('DEL', former)
  redis.call('HDEL', state, 'bytes:' .. partition, 'held:' .. partition, 'oldest:' .. partition)
  if formerHeld ~= 0 then redis.call('HINCRBY', state, 'held', text(-formerHeld)) end
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
