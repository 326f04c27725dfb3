-- Second part of the script. The header of take.lua describes the whole script.

-- Holds are members of a sorted set. The score is the time at which the hold expires, in microseconds. The member is the 12 bytes of its
-- id. For a further slot of the same hold, the number of the slot follows, from 1. For a reservation, its hits, its lifetime in
-- milliseconds, and the time at which the bucket would have been full without it follow. A token with other values is then not a member.

local pack, sub = struct.pack, string.sub

-- Maximum number of expired holds that a call removes from a set. A set of 100,000 would take 40 ms.
local MAX_REMOVED = 200
-- Number of slots in each concurrency limit that was counted. The calls of this script keep it up to date.
local slots = {}

-- Returns the member of a hold of `held` hits in a bucket with this `unit`; with `slot` above 0, that of a further slot.
local function memberOf(id, slot, unit, held, lifetime, full)
  local a, b = tonumber(sub(id, 1, 12), 16), tonumber(sub(id, 13, 24), 16)
  if unit ~= 0 then return pack('>I6I6I4I4I7', a, b, held, lifetime, full) end
  if slot == 0 then return pack('>I6I6', a, b) end
  return pack('>I6I6I2', a, b, slot)
end

-- Holds expire when all callers' clocks have reached their time. Windows of other callers (take-steps.lua) do not change this time.
local expired = now - apart

-- Returns the number of slots that are held in a concurrency limit.
local function countSlots(h)
  local count = slots[h]
  if not count then
    count = call('ZCOUNT', KEYS[h], '(' .. format(D, expired), '+inf')
    slots[h] = count
  end
  return count
end

-- Removes some of the holds of a set that have expired.
local function removeExpired(h)
  local dead = call('ZCOUNT', KEYS[h], '-inf', format(D, expired))
  if dead > 0 then call('ZREMRANGEBYRANK', KEYS[h], 0, min(dead, MAX_REMOVED) - 1) end
end

-- Adds a hold. A set expires after its last hold; its expiry time is extended at most once per second. One in 16 takes removes expired
-- holds, chosen by the last digit of the random id.
local function place(h, id, unit, held, lifetime, full)
  local key, ends = KEYS[h], now + lifetime * 1000
  if byte(id, 24) == 48 then removeExpired(h) end
  local score = format(D, ends)
  for slot = 0, unit == 0 and held - 1 or 0 do call('ZADD', key, score, memberOf(id, slot, unit, held, lifetime, full)) end
  local left = given and floor((ends - raw) / 999) + margin or lifetime + 1000
  if unit == 0 and slots[h] == 0 or call('PTTL', key) < left then call('PEXPIRE', key, format(D, left + 1000)) end
end

-- Removes a hold. Returns the time at which it was taken, or -1 if there is no such hold, and the number of its slots that were removed.
local function settle(h, id, unit, held, lifetime, full)
  local key, member = KEYS[h], memberOf(id, 0, unit, held, lifetime, full)
  local ends = tonumber(call('ZSCORE', key, member) or 0)
  if ends <= expired then return -1, 0 end
  local removed = call('ZREM', key, member)
  for slot = 1, unit == 0 and held - 1 or 0 do
    if call('ZREM', key, memberOf(id, slot, unit)) == 0 then break end
    removed = removed + 1
  end
  return ends - lifetime * 1000, removed
end


-- Removes the hold of a set that expires first. Returns when it was taken, its hits, and the time at which the bucket would have been full
-- without it; or -1, 0 and 0 without a hold.
local function settleOldest(h)
  local found = call('ZRANGEBYSCORE', KEYS[h], '(' .. format(D, expired), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local member = found[1]
  if not member then return -1, 0, 0 end
  call('ZREM', KEYS[h], member)
  if #member < 27 then return -1, 0, 0 end
  local _, _, held, lifetime, full = struct.unpack('>I6I6I4I4I7', member)
  return tonumber(found[2]) - lifetime * 1000, held, full
end
