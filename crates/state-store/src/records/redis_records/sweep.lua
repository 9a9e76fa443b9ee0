-- Removes records that are still expired. The keys are those of change.lua. ARGV[1] is the time; the other arguments are
-- triples: the table, counted from 1, the key, and the member of the set of expiries.

local now = tonumber(ARGV[1])
for i = 2, #ARGV, 3 do
  local t = tonumber(ARGV[i])
  local expires = redis.call('ZSCORE', KEYS[1], ARGV[i + 2])
  if expires and tonumber(expires) <= now then
    redis.call('HDEL', KEYS[2 * t], ARGV[i + 1])
    redis.call('ZREM', KEYS[2 * t + 1], ARGV[i + 1])
    redis.call('ZREM', KEYS[1], ARGV[i + 2])
  end
end
return 0
