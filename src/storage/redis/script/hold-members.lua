-- Encodes and decodes holds. Part of the script for takes, and of the script that lists holds.

-- Holds are members of a sorted set. The score is the time at which the hold expires, in microseconds. The member is its id: 14 characters,
-- as the caller sends them (encodeId in take-script.ts). In a further slot of the same hold, a number replaces the last two characters, so
-- that the allocator of Redis needs no larger block. For a reservation, its hits, its lifetime in milliseconds, and the time at which the
-- bucket would have been full without it follow the id. In a token bucket, the time in which its hits refill follows, at the rate of the
-- take; holds of earlier versions of weir do not have it. A token with other values is then not a member.

local pack, unpackFrom, sub = struct.pack, struct.unpack, string.sub
-- Length of an id, and of the part that all slots of a hold share.
local ID, SHARED = 14, 12
-- Added to the number of a further slot, which is at least 1. Characters of ids have only 7 bits.
local FURTHER = 32768

-- Returns the member of a hold of `held` hits in a bucket with this `unit`; with `slot` above 0, that of a further slot. The id starts at
-- `at` in `text`. `cost` is 0 without a known cost.
local function memberOf(text, at, slot, unit, held, lifetime, full, cost)
  if slot > 0 then return sub(text, at, at + SHARED - 1) .. pack('>I2', FURTHER + slot) end
  local id = sub(text, at, at + ID - 1)
  if unit == 0 then return id end
  return id .. pack('>I4I4I7', held, lifetime, full) .. (cost > 0 and pack('>I7', cost) or '')
end

-- Returns the hits, the lifetime, the full time and the cost of a reservation; nothing for a slot.
local function reservationOf(member)
  if #member ~= ID + 15 and #member ~= ID + 22 then return end
  local held, lifetime, full = unpackFrom('>I4I4I7', member, ID + 1)
  local cost = #member > ID + 15 and unpackFrom('>I7', member, ID + 16) or 0
  return held, lifetime, full, cost
end

