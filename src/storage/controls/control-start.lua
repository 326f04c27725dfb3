-- Common beginning of both scripts of controls. One sorted set contains all controls of a server, and other messages between its
-- processes, because a script can use only one key if keys are spread over servers. The set is a log: each change gets the next version,
-- and a reader asks for the entries after the last version that it knows.
--
-- KEYS[1] the sorted set
-- ARGV[1] '' to use the clock of this Redis, or a time in microseconds, as in take.lua
--
-- Members, by score. All scores are integers below 2^53.
--   version            the row of an entry: <version> <end> <what> <name> <id> <text>
--                      what   c a control; g a control that an operator ended early; t buckets that got tokens
--                      name   unique: a new entry replaces the one with the same name. 32 characters for a control, t<version> for buckets
--                      id     of a control; - for buckets
--                      text   JSON without line breaks
--   - version          n<name>; and m<mark>, a random text for each change. A process whose mark is missing knows that this Redis has
--                      lost the log that the process has read.
--   1e15 + a number    V the latest version, N the number of controls, S the bytes of all rows, H the highest version of a removed entry:
--                      a process that has not read that version must read the log again from its start
--   2e15               L<mark of the latest version>
--   3e15 + end         xn<name> and xm<mark>: the time until which it is kept, in microseconds

local key, call = KEYS[1], redis.call

local function number(value)
  return string.format('%.0f', value)
end

local now
if ARGV[1] == '' then
  -- The first command, so that nothing has changed if Redis rejects it.
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

-- Returns the row of a version.
local function rowOf(version)
  return call('ZRANGEBYSCORE', key, number(version), number(version))[1]
end

local latest = rowOf(2e15)
