-- Renews the beat of a replica, and returns what the replica must know about the data and the others.
--
-- A beat is the text "TIME CONNECTION WRITTEN": the server's time in milliseconds, the name of the replica's current
-- connection, and the generation to which the replica has written its ends, or nothing.
--
-- KEYS[1] hash with the fields run, generation and born (the time at which the generation began, in milliseconds)
-- KEYS[2] hash from the name of each replica to its beat
-- KEYS[3] sorted set of records, with the generation as one member
--
-- Returns the generation, its age in milliseconds, 1 if all other replicas have written to it, the number of members of
-- KEYS[3], 1 if no other replica has a lower name, and the number of live replicas with this one.

local run = ARGV[1] -- the run id of the server process
local fresh = ARGV[2] -- the generation to begin if the data has none
local replica = ARGV[3]
local connection = ARGV[4]
local written = ARGV[5]
local lease = tonumber(ARGV[6]) -- in milliseconds, as is return_time
local return_time = tonumber(ARGV[7])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function set_beat(name, connection, written)
  redis.call('HSET', KEYS[2], name, string.format('%.0f', now) .. ' ' .. connection .. ' ' .. written)
end

-- After a restart or a failover, another process serves the data and may have lost the last writes. Therefore a process
-- without a generation of its own begins a new one. The generation is also a member of the list of records, so that the
-- loss of the list alone is noticed. A birth in the future means that the clock was set back.
local known = redis.call('HMGET', KEYS[1], 'run', 'generation', 'born')
local generation, born = known[2], tonumber(known[3])
local has_list = generation and redis.call('ZSCORE', KEYS[3], 'generation ' .. generation)
if known[1] ~= run or not has_list or not born or born > now then
  generation, born = fresh, now
  redis.call('HSET', KEYS[1], 'run', run, 'generation', generation, 'born', born)
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '+inf', '+inf')
  redis.call('ZADD', KEYS[3], '+inf', 'generation ' .. generation)
end

set_beat(replica, connection, written)

local all_written, is_lowest, alive = 1, 1, 0
local beats = redis.call('HGETALL', KEYS[2])
for i = 1, #beats, 2 do
  local name = beats[i]
  local beat, other_connection, other_written = string.match(beats[i + 1], '^(%d+) (%x+) (%x*)$')
  beat = tonumber(beat)
  if beat and beat > now then
    -- The clock was set back. Otherwise the replica would count as alive until the clock has caught up.
    set_beat(name, other_connection, other_written)
    beat = now
  end
  if not beat or now - beat >= return_time then
    redis.call('HDEL', KEYS[2], name)
  else
    if now - beat < lease then alive = alive + 1 end
    if name ~= replica then
      if other_written ~= generation then all_written = 0 end
      if name < replica then is_lowest = 0 end
    end
  end
end

return {generation, now - born, all_written, redis.call('ZCARD', KEYS[3]), is_lowest, alive}
