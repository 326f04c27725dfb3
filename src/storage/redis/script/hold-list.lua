-- Lists the holds of a bucket that expire first, or looks for one hold. Only reads. hold-members.lua precedes it in the script.
--
-- KEYS[1] the sorted set of the holds
-- ARGV    1 '' to use the clock of this Redis, or a time in microseconds, as in take.lua
--         2 maximum number of holds, at least 1
--         3 to look for one hold only: its id, as in a member. Then 0 for slots, or 1 for a reservation, and its hits, lifetime, full time
--           and cost.
-- Reply   lines: <number of members that have not expired>
--         then, for each hold: <id> <hits, or slots> <lifetime in milliseconds, or - for slots> <time at which the bucket would have been
--         full> <cost> <time until it expires in microseconds>
--         With a hold to look for: 1 if it exists, else 0.

local call, byte, format = redis.call, string.byte, string.format
-- Maximum number of members of one hold.
local MAX_SLOTS = 1000

-- Returns the hexadecimal digits of an id: seven for each four characters, and three for the last two characters.
local function digitsOf(id)
  local digits = ''
  for at = 1, ID - 2, 4 do
    local a, b, c, d = byte(id, at, at + 3)
    digits = digits .. format('%07x', ((a * 128 + b) * 128 + c) * 128 + d)
  end
  local a, b = byte(id, ID - 1, ID)
  return digits .. format('%03x', a * 32 + b)
end

local now = tonumber(ARGV[1])
if not now then
  local time = redis.pcall('TIME')
  if time.err then return { err = 'NOTIME ' .. time.err } end
  now = time[1] * 1000000 + time[2]
end
if ARGV[3] then
  local member = memberOf(ARGV[3], 1, 0, tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]))
  return tonumber(call('ZSCORE', KEYS[1], member) or 0) > now and '1' or '0'
end
local most, from = tonumber(ARGV[2]), '(' .. format('%.0f', now)
local limit = most + MAX_SLOTS
local found = call('ZRANGEBYSCORE', KEYS[1], from, '+inf', 'WITHSCORES', 'LIMIT', '0', format('%.0f', limit))
local holds, last = {}, nil
for i = 1, #found, 2 do
  local member = found[i]
  if last and sub(last.id, 1, SHARED) == sub(member, 1, SHARED) then
    -- The slots of a hold are next to each other, because they have the same score and the same first bytes.
    last.held = last.held + 1
  elseif #holds == most then
    break
  else
    local held, lifetime, full, cost = reservationOf(member)
    last = { id = sub(member, 1, ID), held = held or 1, lifetime = lifetime, full = full or 0, cost = cost or 0, left = math.max(0, tonumber(found[i + 1]) - now) }
    holds[#holds + 1] = last
  end
end
-- Further slots of the hold of the last member may be missing.
if #found == 2 * limit and sub(last.id, 1, SHARED) == sub(found[#found - 1], 1, SHARED) then holds[#holds] = nil end
local lines = { call('ZCOUNT', KEYS[1], from, '+inf') }
for i = 1, #holds do
  local hold = holds[i]
  local lifetime = hold.lifetime and format('%.0f', hold.lifetime) or '-'
  lines[i + 1] = format('%s %.0f %s %.0f %.0f %.0f', digitsOf(hold.id), hold.held, lifetime, hold.full, hold.cost, hold.left)
end
return table.concat(lines, '\n')
