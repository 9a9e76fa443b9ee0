-- Makes a change: all of its writes if all of its conditions hold.
--
-- KEYS[1] sorted set of all records by their expiry, in milliseconds. A member is the name of the table, a zero byte and the
-- key.
-- KEYS[2t], KEYS[2t + 1] of the table t, counted from 1: hash from keys to stored values, and sorted set of the keys in the
-- order of their bytes. A stored value begins with its expiry, in 8 bytes.
--
-- ARGV[1] is the time, ARGV[2] the number of conditions, and ARGV[2 + t] the name of the table t. Then follow the conditions
-- and the writes, five arguments each: what it is, the table, and three values.
--   value    table key 1 expected    the record has this value
--   value    table key 0 ''          the record is absent
--   below    table max '' ''         the table has fewer records
--   put      table key expiry stored
--   delete   table key '' ''
--
-- Returns 0 if the change was made, 1 if a record has another value, 2 if a table is full.

local now = tonumber(ARGV[1])
local conditions = tonumber(ARGV[2])
local first = 3 + (#KEYS - 1) / 2
local EXPIRY = 8 -- bytes

local function has_expired(stored)
  local expires = 0
  for i = 1, EXPIRY do expires = expires * 256 + string.byte(stored, i) end
  return expires <= now
end

for i = first, first + 5 * (conditions - 1), 5 do
  local records = KEYS[2 * tonumber(ARGV[i + 1])]
  if ARGV[i] == 'below' then
    if redis.call('HLEN', records) >= tonumber(ARGV[i + 2]) then return 2 end
  else
    local stored = redis.call('HGET', records, ARGV[i + 2])
    if stored and has_expired(stored) then stored = false end
    if ARGV[i + 3] == '1' then
      if not stored or string.sub(stored, EXPIRY + 1) ~= ARGV[i + 4] then return 1 end
    elseif stored then
      return 1
    end
  end
end

for i = first + 5 * conditions, #ARGV, 5 do
  local t = tonumber(ARGV[i + 1])
  local key = ARGV[i + 2]
  local entry = ARGV[2 + t] .. '\0' .. key
  if ARGV[i] == 'put' then
    redis.call('HSET', KEYS[2 * t], key, ARGV[i + 4])
    redis.call('ZADD', KEYS[2 * t + 1], 0, key)
    redis.call('ZADD', KEYS[1], ARGV[i + 3], entry)
  else
    redis.call('HDEL', KEYS[2 * t], key)
    redis.call('ZREM', KEYS[2 * t + 1], key)
    redis.call('ZREM', KEYS[1], entry)
  end
end
return 0
