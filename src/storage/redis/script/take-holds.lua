-- Second part of the script, after hold-members.lua. The header of take.lua describes the whole script.

-- Maximum number of expired holds that a take removes from a set, or gives back. A set of 100,000 would take 40 ms.
local MAX_REMOVED = 200
-- For each set whose expired holds this call has given back: whether others may be left. Such holds are not removed otherwise.
local isPart = {}
-- Number of holds that this call has given back.
local freedCount = 0
-- Number of slots in each concurrency limit that was counted. The calls of this script keep it up to date.
local slots = {}

local nowText = format(D, now)
local liveFrom = '(' .. nowText

-- Returns the number of slots that are held in a concurrency limit.
local function countSlots(h)
  local count = slots[h]
  if not count then
    count = call('ZCOUNT', KEYS[h], liveFrom, '+inf')
    slots[h] = count
  end
  return count
end

-- First member of each set. Its score is minus a time until which the key certainly exists, in microseconds. It also keeps a set without
-- holds, because its next start then needs no new key.
local UNTIL = 'until'

-- Removes some of the holds of a set that have expired.
local function removeExpired(h)
  local dead = call('ZCOUNT', KEYS[h], '0', nowText)
  if dead > 0 then call('ZREMRANGEBYRANK', KEYS[h], 1, min(dead, MAX_REMOVED)) end
end

-- Holds that this call has added and not stored yet. For each set: a list of scores and members, the time at which the last of them
-- expires, and whether the set had no other holds.
local added, lastEnds, isNew = {}, {}, {}
local score, scoreEnds
-- The score of UNTIL for holds that expire between two times, and how long a key then exists, in milliseconds.
local untilFrom, untilTo, untilScore, untilLeft = 0, 0, nil, nil

-- Adds a hold, which storeHolds() stores. One in 16 takes removes expired holds, chosen by the last digit of the random id, which is its last four bits.
local function place(h, id, unit, held, lifetime, full, cost)
  local list, ends = added[h], now + lifetime * 1000
  if not list then
    list = {}
    added[h], lastEnds[h], isNew[h] = list, ends, unit == 0 and slots[h] == 0
  elseif ends > lastEnds[h] then
    lastEnds[h] = ends
  end
  if byte(steps, id + ID - 1) % 16 == 0 and isPart[h] == nil then removeExpired(h) end
  if ends ~= scoreEnds then score, scoreEnds = format(D, ends), ends end
  for slot = 0, unit == 0 and held - 1 or 0 do
    local size = #list
    list[size + 1], list[size + 2] = score, memberOf(steps, id, slot, unit, held, lifetime, full, cost)
  end
end

-- Keeps a set at least until a time; storeHolds() extends its expiry time.
local function keepUntil(h, ends)
  added[h], lastEnds[h] = added[h] or {}, max(lastEnds[h] or 0, ends)
end

-- Stores the holds that were added to a set. The key expires one to two seconds after its last hold. UNTIL changes at most once per second
-- if all holds have the same lifetime. Only then, the expiry time must be set.
local function storeHolds(h)
  local list, ends, key = added[h], lastEnds[h], KEYS[h]
  local size, changes = #list, 0
  added[h] = nil
  if ends < untilFrom or ends >= untilTo then
    untilFrom = ends - ends % 1000000
    untilTo = untilFrom + 1000000
    untilScore = format(D, -untilTo)
    untilLeft = given and floor((untilTo - raw) / 999) + MARGIN or floor((untilTo - raw) / 1000) + 1000
  end
  list[size + 1], list[size + 2] = untilScore, UNTIL
  for first = 1, size + 2, CHUNK do
    changes = changes + call('ZADD', key, 'CH', unpack(list, first, min(first + CHUNK - 1, size + 2)))
  end
  if changes > size / 2 and (isNew[h] or call('PTTL', key) < untilLeft) then
    call('PEXPIRE', key, format(D, untilLeft))
  end
end

local function storeAllHolds()
  for h in pairs(added) do storeHolds(h) end
end

-- Whether a set had no expired members when this call started. Then the scores of its slots need not be read.
local allLive = {}

-- Returns whether a hold has another number of slots.
local function hasOtherSlots(h, id, held)
  local key = KEYS[h]
  if added[h] then storeHolds(h) end
  return call('ZSCORE', key, memberOf(steps, id, held, 0)) or held > 1 and not call('ZSCORE', key, memberOf(steps, id, held - 1, 0))
end

-- Removes a hold. Returns the time at which it was taken, or -1 if there is no such hold, and the number of its slots that were removed.
-- The time is 0 for a limit on concurrent requests. `compares`: whether to compare the number of slots.
local function settle(h, id, unit, held, lifetime, full, cost, compares)
  local key, member, taken, removed = KEYS[h], memberOf(steps, id, 0, unit, held, lifetime, full, cost), 0, 0
  if compares and hasOtherSlots(h, id, held) then return -1, 0 end
  local ends = MAX_COUNT
  if unit == 0 and allLive[h] == nil then allLive[h] = call('ZCOUNT', key, '0', nowText) == 0 end
  if unit ~= 0 or not allLive[h] then
    ends = tonumber(call('ZSCORE', key, member) or 0)
    if unit ~= 0 then taken = ends - lifetime * 1000 end
  end
  if ends > now then removed = call('ZREM', key, member) end
  if removed == 0 and added[h] then
    storeHolds(h)
    return settle(h, id, unit, held, lifetime, full, cost, compares)
  elseif removed == 0 then
    return -1, 0
  end
  for slot = 1, unit == 0 and held - 1 or 0 do
    if call('ZREM', key, memberOf(steps, id, slot, unit)) == 0 then break end
    removed = removed + 1
  end
  return taken, removed
end

-- Second member of a set whose expired holds did not all fit into one call, so that others may still be in the set.
local LATE = 'late'

-- Removes the first expired holds of a set, before `requests` requests that may place as many. Returns each member, followed by its score,
-- and whether takes from the bucket may have been decided, or will be, before other holds of the set that have expired are given back.
local function removeForRefund(h, requests)
  -- As many as the requests place, so that holds never expire faster than they are given back.
  local key, most = KEYS[h], requests + (isPart[h] and 1 or max(1, MAX_REMOVED - freedCount - 1))
  local found = call('ZRANGEBYSCORE', key, '0', nowText, 'WITHSCORES', 'LIMIT', 0, most)
  local count, late = #found / 2, found[1] == LATE
  freedCount, isPart[h] = freedCount + count, count == most
  if count < most then
    if count > 0 then call('ZREMRANGEBYRANK', key, 1, count) end
  else
    if not late then call('ZADD', key, 0, LATE) end
    call('ZREMRANGEBYRANK', key, 2, late and count or count + 1)
  end
  return found, late or count == most
end

-- Returns the time that follows an id, as three numbers.
local function fullTimeAt(id)
  local a, b, c, d, e, f, g, h, i = byte(steps, id + ID, id + ID + 8)
  local high, middle, low = (a * 64 + b) * 64 + c - ZEROS, (d * 64 + e) * 64 + f - ZEROS, (g * 64 + h) * 64 + i - ZEROS
  return (high * 262144 + middle) * 262144 + low
end

-- Removes the hold of a set that expires first. Returns when it was taken, its hits, the time at which the bucket would have been full
-- without it, and its cost; or -1, 0, 0 and 0 without a hold.
local function settleOldest(h)
  if added[h] then storeHolds(h) end
  local found = call('ZRANGEBYSCORE', KEYS[h], liveFrom, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local member = found[1]
  if not member then return -1, 0, 0, 0 end
  call('ZREM', KEYS[h], member)
  local held, lifetime, full, cost = reservationOf(member)
  if not held then return -1, 0, 0, 0 end
  return tonumber(found[2]) - lifetime * 1000, held, full, cost
end
