-- Adds records to the list and publishes them, unless the data has another generation.
--
-- KEYS[1] to KEYS[3] are those of beat.lua. The other arguments are pairs: the time of a record, in milliseconds, and its
-- encoding.
--
-- Returns 1 if the generation is the expected one (otherwise nothing was added), 1 if it is so old that no replica can
-- return without having written to it, and the connections of the live replicas, with that of the caller.

local generation = ARGV[1] -- the expected generation
local head = ARGV[2] -- the first bytes of the message, before the records
local channel = ARGV[3]
local lease = tonumber(ARGV[4]) -- in milliseconds, as is return_time
local return_time = tonumber(ARGV[5])
local publishes_known = ARGV[6] == '1' -- whether to publish also the records that the list had already
local FIRST_RECORD = 7

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local known = redis.call('HMGET', KEYS[1], 'generation', 'born')
if known[1] ~= generation or not redis.call('ZSCORE', KEYS[3], 'generation ' .. generation) then
  return {0, 0, {}}
end

local message = {head}
for i = FIRST_RECORD, #ARGV, 2 do
  local is_new = redis.call('ZADD', KEYS[3], ARGV[i], ARGV[i + 1]) == 1
  if is_new or publishes_known then message[#message + 1] = ARGV[i + 1] end
end
if #message > 1 then redis.call('PUBLISH', channel, table.concat(message)) end

local is_settled = 0
if now - tonumber(known[2]) >= return_time then is_settled = 1 end

local alive = {}
local beats = redis.call('HGETALL', KEYS[2])
for i = 1, #beats, 2 do
  local beat, connection = string.match(beats[i + 1], '^(%d+) (%x+) ')
  if beat and now - tonumber(beat) < lease then alive[#alive + 1] = connection end
end
return {1, is_settled, alive}
