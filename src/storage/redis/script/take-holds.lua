-- Third part of the script. The header of take.lua describes the whole script.

-- Holds are members of a sorted set. The score is the time at which the hold expires, in microseconds. The member is the 12 bytes of its
-- id. For a further slot of the same hold, the number of the slot follows, from 1. For a reservation, its hits, its lifetime in
-- milliseconds, and the time at which the bucket would have been full without it follow. A token with other values is then not a member.

local pack, sub = struct.pack, string.sub

-- Maximum number of expired holds that a call removes from a set. A set of 100,000 would take 40 ms.
local MAX_REMOVED = 200
-- Holds expire when all callers' clocks have reached their time.
local expired = now - apart
-- Number of holds in each set that was counted. The calls of this script keep it up to date.
local slots = {}

local function memberOf(id, slot, ask, full)
  local a, b = tonumber(sub(id, 1, 12), 16), tonumber(sub(id, 13, 24), 16)
  if ask.unit ~= 0 then return pack('>I6I6I4I4I7', a, b, ask.held, ask.lifetime, full) end
  if slot == 0 then return pack('>I6I6', a, b) end
  return pack('>I6I6I2', a, b, slot)
end

-- Returns the number of holds in a set, and removes some of those that have expired.
local function countHolds(h)
  if slots[h] then return slots[h] end
  slots[h] = call('ZCOUNT', KEYS[h], '(' .. format(D, expired), '+inf')
  local dead = call('ZCARD', KEYS[h]) - slots[h]
  if dead > 0 then call('ZREMRANGEBYRANK', KEYS[h], 0, min(dead, MAX_REMOVED) - 1) end
  return slots[h]
end

-- Adds a hold. A set expires after its last hold; its expiry time is extended at most once per second.
local function place(h, id, ask, full)
  local key, ends = KEYS[h], now + ask.lifetime * 1000
  countHolds(h)
  local score = format(D, ends)
  for slot = 0, ask.unit == 0 and ask.held - 1 or 0 do call('ZADD', key, score, memberOf(id, slot, ask, full)) end
  local left = given and floor((ends - raw) / 999) + margin or ask.lifetime + 1000
  if call('PTTL', key) < left then call('PEXPIRE', key, format(D, left + 1000)) end
end

-- Removes a hold. Returns the time at which it was taken, or -1 if there is no such hold, and the number of its slots that were removed.
local function settle(h, id, ask)
  local member = memberOf(id, 0, ask, ask.full)
  local ends = tonumber(call('ZSCORE', KEYS[h], member) or 0)
  if ends <= expired then return -1, 0 end
  countHolds(h)
  local removed = call('ZREM', KEYS[h], member)
  for slot = 1, ask.unit == 0 and ask.held - 1 or 0 do
    if call('ZREM', KEYS[h], memberOf(id, slot, ask)) == 0 then break end
    removed = removed + 1
  end
  return ends - ask.lifetime * 1000, removed
end
