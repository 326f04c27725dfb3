-- Encodes, decodes and lists holds. In the script for takes, take.lua follows. In the script for lists, a call of listHolds() follows.

-- Holds are members of a sorted set. The score is the time at which the hold expires, in microseconds. The member begins with the id of the
-- hold: 14 characters, as the caller sends them (encodeId in take-script.ts). If a hold has several slots, each further slot is another
-- member, in which a number replaces the last two characters of the id, so that the allocator of Redis needs no larger block. In a
-- reservation, the id is followed by the hits, the lifetime in milliseconds, and the time at which the bucket would have been full without
-- the hold. In a token bucket, the member ends with the time in which the hits refill at the rate of the take; holds of earlier versions of
-- weir do not have this time. For this reason, a token with other values does not match any member.

local call, byte, format, sub = redis.call, string.byte, string.format, string.sub
local pack, unpackFrom = struct.pack, struct.unpack
-- Length of an id, and length of its part that all slots of a hold share.
local ID, SHARED = 14, 12
-- This is added to the number of a further slot, which is at least 1, to distinguish it from an id, whose characters have only 7 bits.
local FURTHER = 32768

-- Returns the member for a hold of `held` hits in a bucket with this `unit`. If `slot` is above 0, returns the member for this further
-- slot. The id starts at `at` in `text`. `cost` is 0 if the cost is unknown.
local function memberOf(text, at, slot, unit, held, lifetime, full, cost)
  if slot > 0 then return sub(text, at, at + SHARED - 1) .. pack('>I2', FURTHER + slot) end
  local id = sub(text, at, at + ID - 1)
  if unit == 0 then return id end
  return id .. pack('>I4I4I7', held, lifetime, full) .. (cost > 0 and pack('>I7', cost) or '')
end

-- Returns the hits, the lifetime, the full time and the cost of a reservation. Returns nothing for a slot.
local function reservationOf(member)
  if #member ~= ID + 15 and #member ~= ID + 22 then return end
  local held, lifetime, full = unpackFrom('>I4I4I7', member, ID + 1)
  local cost = #member > ID + 15 and unpackFrom('>I7', member, ID + 16) or 0
  return held, lifetime, full, cost
end

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

-- Lists the holds of a set that expire first, or looks for one hold. Does not change anything.
--
-- arguments 1 '' to use the clock of this Redis, or a time in microseconds, as in take.lua
--           2 maximum number of holds, at least 1
--           3 to look for one hold only: its id, as in a member. Then 0 for slots, or 1 for a reservation, and its hits, lifetime, full
--             time and cost.
-- Reply     lines: <number of members that have not expired>
--           then, for each hold: <id> <hits, or slots> <lifetime in milliseconds, or - for slots> <time at which the bucket would have
--           been full> <cost> <time until it expires in microseconds>
--           With a hold to look for: 1 if it exists, else 0.
local function listHolds(set, arguments)
  local now = tonumber(arguments[1])
  if not now then
    local time = redis.pcall('TIME')
    if time.err then return { err = 'NOTIME ' .. time.err } end
    now = time[1] * 1000000 + time[2]
  end
  if arguments[3] then
    local member = memberOf(arguments[3], 1, 0, tonumber(arguments[4]), tonumber(arguments[5]), tonumber(arguments[6]), tonumber(arguments[7]), tonumber(arguments[8]))
    return tonumber(call('ZSCORE', set, member) or 0) > now and '1' or '0'
  end
  local most, from = tonumber(arguments[2]), '(' .. format('%.0f', now)
  local limit = most + MAX_SLOTS
  local found = call('ZRANGEBYSCORE', set, from, '+inf', 'WITHSCORES', 'LIMIT', '0', format('%.0f', limit))
  local holds, last = {}, nil
  for i = 1, #found, 2 do
    local member = found[i]
    if last and sub(last.id, 1, SHARED) == sub(member, 1, SHARED) then
      -- All slots of a hold are next to each other in the set, because they have the same score and begin with the same bytes.
      last.held = last.held + 1
    elseif #holds == most then
      break
    else
      local held, lifetime, full, cost = reservationOf(member)
      last = { id = sub(member, 1, ID), held = held or 1, lifetime = lifetime, full = full or 0, cost = cost or 0, left = math.max(0, tonumber(found[i + 1]) - now) }
      holds[#holds + 1] = last
    end
  end
  -- If the last member is a slot, the list may lack further slots of its hold.
  if #found == 2 * limit and sub(last.id, 1, SHARED) == sub(found[#found - 1], 1, SHARED) then holds[#holds] = nil end
  local lines = { call('ZCOUNT', set, from, '+inf') }
  for i = 1, #holds do
    local hold = holds[i]
    local lifetime = hold.lifetime and format('%.0f', hold.lifetime) or '-'
    lines[i + 1] = format('%s %.0f %s %.0f %.0f %.0f', digitsOf(hold.id), hold.held, lifetime, hold.full, hold.cost, hold.left)
  end
  return table.concat(lines, '\n')
end
