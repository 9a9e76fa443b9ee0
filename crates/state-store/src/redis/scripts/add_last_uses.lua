-- Adds last uses of sessions, removes the earliest ones above a maximum number, and publishes those that were added.
--
-- KEYS[1] sorted set from session ids to the times of their last uses, in milliseconds
--
-- The other arguments are triples: the time, the session id, and the encoding of both for the message.

local head = ARGV[1] -- the first bytes of the message, before the uses
local channel = ARGV[2]
local max = tonumber(ARGV[3])
local FIRST_USE = 4

local message = {head}
for i = FIRST_USE, #ARGV, 3 do
  -- GT: a later use is never replaced by an earlier one.
  redis.call('ZADD', KEYS[1], 'GT', ARGV[i], ARGV[i + 1])
  message[#message + 1] = ARGV[i + 2]
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - max)
redis.call('PUBLISH', channel, table.concat(message))
return 0
