-- What both scripts of controls begin with. All controls of a server, and what else its processes tell each other, lie in one sorted set, as a script
-- may only use one key where keys are spread over servers. They are kept as a log: each change has the next version, and who reads asks for
-- what came after the last version that it knows.
--
-- KEYS[1] the sorted set
-- ARGV[1] '' to go by the clock of this Redis; else the time in microseconds, as in take.lua
--
-- Members, by score. All scores are whole numbers below 2^53.
--   version            the row of an entry: <version> <end> <what> <name> <id> <text>
--                      what   c a control; g a control that was ended before its time; t buckets that were given tokens
--                      name   two of one name are not kept: the later one replaces the other. 32 characters of a control, t<version> of buckets
--                      id     of a control, - of buckets
--                      text   JSON without line ends
--   - version          n<name>; and m<mark>, for what was the latest version once: a mark is drawn at random for each change, so that who knows one
--                      can tell whether it has seen this log, or one that Redis has lost
--   1e15 + a number    V the latest version, N how many controls are kept, S bytes of all texts, H the highest version of an entry that was dropped:
--                      who has not seen that one must read all anew
--   2e15               L<mark of the latest version>
--   3e15 + end         xn<name> and xm<mark>: until when it is kept, microseconds

local key, call = KEYS[1], redis.call

local function number(value)
  return string.format('%.0f', value)
end

local now
if ARGV[1] == '' then
  -- Before anything is written, so that nothing was done where it is refused.
  local time = redis.pcall('TIME')
  if time.err then return { err = 'NOTIME ' .. time.err } end
  now = time[1] * 1000000 + time[2]
else
  now = tonumber(ARGV[1])
end

local function count(name)
  local score = call('ZSCORE', key, name)
  return score and tonumber(score) - 1e15 or 0
end

-- The row of a version.
local function rowOf(version)
  return call('ZRANGEBYSCORE', key, number(version), number(version))[1]
end

local latest = rowOf(2e15)
