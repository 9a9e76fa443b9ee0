-- Returns the keys of a range, each followed by its stored value, in the order of the keys.
--
-- KEYS[1] and KEYS[2] are the hash and the sorted set of keys of a table, as in change.lua. ARGV[1] and ARGV[2] are the ends
-- of the range for ZRANGEBYLEX, and ARGV[3] is the maximum number of keys.

local keys = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
if #keys == 0 then return {} end
local stored = redis.call('HMGET', KEYS[1], unpack(keys))
local found = {}
for i, key in ipairs(keys) do
  found[2 * i - 1] = key
  found[2 * i] = stored[i] or ''
end
return found
