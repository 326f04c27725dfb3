-- Second part of the script, after hold-members.lua. The header of take.lua describes the whole script.

-- Maximum number of expired holds that a take removes from a set, or gives back. A set of 100,000 would take 40 ms.
local MAX_REMOVED = 200
-- For each set whose expired holds this call has given back: whether others may be left. Such holds are not removed otherwise.
local isPart = {}
-- Number of holds that this call has given back.
local freedCount = 0
-- Number of slots in each concurrency limit that was counted. The calls of this script keep it up to date.
local slots = {}

-- Holds expire when all callers' clocks have reached their time. Windows of other callers (take-steps.lua) do not change this time.
local expired = now - apart
local expiredText = format(D, expired)
local liveFrom = '(' .. expiredText

-- Returns the number of slots that are held in a concurrency limit.
local function countSlots(h)
  local count = slots[h]
  if not count then
    count = call('ZCOUNT', KEYS[h], liveFrom, '+inf')
    slots[h] = count
  end
  return count
end

-- Removes some of the holds of a set that have expired.
local function removeExpired(h)
  local dead = call('ZCOUNT', KEYS[h], '-inf', expiredText)
  if dead > 0 then call('ZREMRANGEBYRANK', KEYS[h], 0, min(dead, MAX_REMOVED) - 1) end
end

-- Holds that this call has added and not stored yet. For each set: a list of scores and members, the time at which the last of them
-- expires, and whether the set had no other holds.
local added, lastEnds, isNew = {}, {}, {}
local score, scoreEnds

-- Adds a hold, which storeHolds() stores. One in 16 takes removes expired holds, chosen by the last digit of the random id.
local function place(h, id, unit, held, lifetime, full)
  local list, ends = added[h], now + lifetime * 1000
  if not list then
    list = {}
    added[h], lastEnds[h], isNew[h] = list, ends, unit == 0 and slots[h] == 0
  elseif ends > lastEnds[h] then
    lastEnds[h] = ends
  end
  if byte(steps, id + 23) == 48 and isPart[h] == nil then removeExpired(h) end
  if ends ~= scoreEnds then score, scoreEnds = format(D, ends), ends end
  for slot = 0, unit == 0 and held - 1 or 0 do
    local size = #list
    list[size + 1], list[size + 2] = score, memberOf(steps, id, slot, unit, held, lifetime, full)
  end
end

-- Keeps a set at least until a time; storeHolds() extends its expiry time.
local function keepUntil(h, ends)
  added[h], lastEnds[h] = added[h] or {}, max(lastEnds[h] or 0, ends)
end

-- Maximum number of values in a command. More values could overflow the Lua stack.
local CHUNK = 1000

-- Whether PEXPIRE can set the expiry time of new keys only, since Redis 7. Most sets of reservations are new if there are many buckets.
local canExpireNew = (redis.REDIS_VERSION_NUM or 0) >= 458752

-- Stores the holds that were added to a set. A set expires after its last hold; its expiry time is extended at most once per second.
local function storeHolds(h)
  local list, ends, key = added[h], lastEnds[h], KEYS[h]
  for first = 1, #list, CHUNK do call('ZADD', key, unpack(list, first, min(first + CHUNK - 1, #list))) end
  added[h] = nil
  local left = given and floor((ends - raw) / 999) + margin or floor((ends - now) / 1000) + 1000
  local text = format(D, left + 1000)
  if not isNew[h] and canExpireNew and call('PEXPIRE', key, text, 'NX') == 1 then return end
  if isNew[h] or call('PTTL', key) < left then call('PEXPIRE', key, text) end
end

local function storeAllHolds()
  for h in pairs(added) do storeHolds(h) end
end

-- Whether a set had no expired members when this call started. Then the scores of its slots need not be read.
local allLive = {}

-- Removes a hold. Returns the time at which it was taken, or -1 if there is no such hold, and the number of its slots that were removed.
-- The time is 0 for a limit on concurrent requests.
local function settle(h, id, unit, held, lifetime, full)
  local key, member, taken, removed = KEYS[h], memberOf(steps, id, 0, unit, held, lifetime, full), 0, 0
  local ends = MAX_COUNT
  if unit == 0 and allLive[h] == nil then allLive[h] = call('ZCOUNT', key, '-inf', expiredText) == 0 end
  if unit ~= 0 or not allLive[h] then
    ends = tonumber(call('ZSCORE', key, member) or 0)
    if unit ~= 0 then taken = ends - lifetime * 1000 end
  end
  if ends > expired then removed = call('ZREM', key, member) end
  if removed == 0 and added[h] then
    storeHolds(h)
    return settle(h, id, unit, held, lifetime, full)
  elseif removed == 0 then
    return -1, 0
  end
  for slot = 1, unit == 0 and held - 1 or 0 do
    if call('ZREM', key, memberOf(steps, id, slot, unit)) == 0 then break end
    removed = removed + 1
  end
  return taken, removed
end

-- First member of a set whose expired holds did not all fit into one call, so that others may still be in the set.
local LATE = 'late'

-- Removes the first expired holds of a set, before `requests` requests that may place as many. Returns each member, followed by its score,
-- and whether takes from the bucket may have been decided, or will be, before other holds of the set that have expired are given back.
local function removeForRefund(h, requests)
  -- As many as the requests place, so that holds never expire faster than they are given back.
  local key, most = KEYS[h], requests + (isPart[h] and 1 or max(1, MAX_REMOVED - freedCount - 1))
  local found = call('ZRANGEBYSCORE', key, '-inf', expiredText, 'WITHSCORES', 'LIMIT', 0, most)
  local count, late = #found / 2, found[1] == LATE
  freedCount, isPart[h] = freedCount + count, count == most
  if count < most then
    if count > 0 then call('ZREMRANGEBYRANK', key, 0, count - 1) end
  else
    -- The set keeps its expiry time, because it never becomes empty.
    if not late then call('ZADD', key, 0, LATE) end
    call('ZREMRANGEBYRANK', key, 1, late and count - 1 or count)
  end
  return found, late or count == most
end

-- Returns the time that follows the digits of an id, as three numbers.
local function fullTimeAt(id)
  local a, b, c, d, e, f, g, h, i = byte(steps, id + 24, id + 32)
  local high, middle, low = (a * 64 + b) * 64 + c - ZEROS, (d * 64 + e) * 64 + f - ZEROS, (g * 64 + h) * 64 + i - ZEROS
  return (high * 262144 + middle) * 262144 + low
end

-- Removes the hold of a set that expires first. Returns when it was taken, its hits, and the time at which the bucket would have been full
-- without it; or -1, 0 and 0 without a hold.
local function settleOldest(h)
  if added[h] then storeHolds(h) end
  local found = call('ZRANGEBYSCORE', KEYS[h], liveFrom, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local member = found[1]
  if not member then return -1, 0, 0 end
  call('ZREM', KEYS[h], member)
  local held, lifetime, full = reservationOf(member)
  if not held then return -1, 0, 0 end
  return tonumber(found[2]) - lifetime * 1000, held, full
end
