-- Encodes and decodes holds. Part of the script for takes, and of the script that lists holds.

-- Holds are members of a sorted set. The score is the time at which the hold expires, in microseconds. The member is the 12 bytes of its
-- id. For a further slot of the same hold, the number of the slot follows, from 1. For a reservation, its hits, its lifetime in
-- milliseconds, and the time at which the bucket would have been full without it follow. A token with other values is then not a member.

local pack, unpackFrom, sub = struct.pack, struct.unpack, string.sub

-- Returns the member of a hold of `held` hits in a bucket with this `unit`; with `slot` above 0, that of a further slot. The digits of the
-- id start at `at` in `text`.
local function memberOf(text, at, slot, unit, held, lifetime, full)
  local a, b = tonumber(sub(text, at, at + 11), 16), tonumber(sub(text, at + 12, at + 23), 16)
  if unit ~= 0 then return pack('>I6I6I4I4I7', a, b, held, lifetime, full) end
  if slot == 0 then return pack('>I6I6', a, b) end
  return pack('>I6I6I2', a, b, slot)
end

-- Returns the hits, the lifetime and the full time of a reservation; nothing for a slot.
local function reservationOf(member)
  if #member == 27 then return unpackFrom('>I4I4I7', member, 13) end
end

