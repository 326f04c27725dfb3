-- Encodes and decodes holds. Part of the script for takes, and of the script that lists holds.

-- Holds are members of a sorted set. The score is the time at which the hold expires, in microseconds. The member is its id: 14 characters,
-- as the caller sends them (encodeId in take-script.ts). In a further slot of the same hold, a number replaces the last two characters, so
-- that the allocator of Redis needs no larger block. For a reservation, its hits, its lifetime in milliseconds, and the time at which the
-- bucket would have been full without it follow the id. A token with other values is then not a member.

local pack, unpackFrom, sub = struct.pack, struct.unpack, string.sub
-- Length of an id, and of the part that all slots of a hold share.
local ID, SHARED = 14, 12
-- Added to the number of a further slot, which is at least 1. Characters of ids have only 7 bits.
local FURTHER = 32768

-- Returns the member of a hold of `held` hits in a bucket with this `unit`; with `slot` above 0, that of a further slot. The id starts at
-- `at` in `text`.
local function memberOf(text, at, slot, unit, held, lifetime, full)
  if slot > 0 then return sub(text, at, at + SHARED - 1) .. pack('>I2', FURTHER + slot) end
  local id = sub(text, at, at + ID - 1)
  return unit == 0 and id or id .. pack('>I4I4I7', held, lifetime, full)
end

-- Returns the hits, the lifetime and the full time of a reservation; nothing for a slot.
local function reservationOf(member)
  if #member == ID + 15 then return unpackFrom('>I4I4I7', member, ID + 1) end
end

