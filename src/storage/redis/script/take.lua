-- Decides a batch of requests on token buckets and windows. holds.lua precedes it in the script. Its sections are arguments and
-- reply, holds, the fast path, the states of buckets, runs, and groups.
--
-- The script reads the clock and the buckets, decides, and writes in one atomic step. Without a script, two servers that share this Redis
-- could both take the last token, and some buckets could keep the hits of a denied request.
--
-- src/limiter/decide.ts implements and explains the same arithmetic. The caller computes all costs exactly, even above 2^53. This script
-- only adds, carries, compares and stores. All its numbers are integers below 2^53.
--
-- KEYS    the buckets of the batch, each once
-- ARGV    1  the number of the call, which the reply repeats, so that the caller notices the reply to another call
--         2  '' to use the clock of this Redis, or a time in microseconds, which only tests set
--         3  the latest time, in microseconds, that the caller has received from this Redis, or 0
--         4  the same, but without the times after the clock of this Redis was set back; at least the third argument
--         5  '1' if windows count the hits of denied requests, else '0'
--         6  steps, in the order of the decisions. All numbers have three characters: base 64 with the digits 0 (code 48) to 63 (code 111).
--              key ask count   A run: `count` equal requests with this item only. Indexes start at 1. A count of 0 means one request on a
--                              bucket that no other step uses.
--              0 items count   A group: `count` equal requests with this number of items. Then `key ask` for each item, and the key of the
--                              set of holds if the item has a hold or a settlement. Then for each request, and for each of these items:
--                              the 14 characters of the hold's id (holds.lua). For the settlement of a reservation, the time at which the bucket
--                              would have been full without the hold follows (0 for a window): 9 characters, base 64 as above. A count of
--                              0 means one request with one item, on a bucket that no other step uses.
--         then the asks. An ask is the rate, the hits and the kind of take of an item: 7 numbers, and more depending on `what`.
--              what        0 take, 1 peek (hits 0), 2 refund, 3 charge, 4 refund that undoes a take, 5 settlement of the oldest hold; runs
--                          contain only 0 and 1. Plus 10 if a debt follows, plus 20 if a calendar follows, plus 40 if a hold follows,
--                          plus 80 if a settlement follows. Plus 160 if the hits of expired holds of the set are returned first
--                          (freeExpired); the step of a peek then also contains the set and a hold.
--              enforcement 0 enforce, 1 observe, 2 quota, 3 spill (TakeItem in TypeScript); ignored in runs
--              unit        token bucket: q of its rate. Window: minus its length in microseconds (with a calendar, its nominal length).
--                          Concurrency limit: 0.
--              fill        whole microseconds in which an empty bucket fills; limit of a window; maximum number of concurrent requests
--              fillCarry   its carry in 1/q microseconds. Window: 1 if it never counts the hits of denied requests, else 0.
--              cost        whole microseconds that the hits cost (for a peek and `what` 5, that 1 token costs); for a window, the hits
--              costCarry   its carry; 0
--            debt, if the rate has one (never in a run on a window):
--              whole       whole microseconds in which a bucket fills from its maximum debt; maximum count of a window
--              carry       its carry; 0
--            hold: its lifetime in milliseconds, and its hits. For `what` 5: the use, and the maximum number of hits that change the bucket
--            settlement:
--              lifetime    lifetime of the hold, in milliseconds
--              hits        its hits
--              useLasts    time in which the use refills, in whole microseconds; 0 for a window. Concurrency limit: 1 if the number of
--                          slots must be compared, because the id does not depend on it; else 0.
--              heldCost    time in which the hits refilled at the rate of the take, in whole microseconds; 0 if unknown, and for a window
--            freed, for `what` above 160: whole microseconds and carry that 1 hit costs (0 and 0 for a window), and the maximum number of
--                        hits that change the bucket
--            mark, for `what` 4 without a settlement: TakeOutcome.undoMark
--            calendar, 5 numbers: the boundaries of four successive windows; the second window contains the caller's estimated time
-- Reply   The error NOTIME if this Redis does not let scripts read the time; the script has then changed nothing. Otherwise a string of
--         integers, each as a double in 8 bytes, little-endian: clients read one string faster than a list. It starts with the number of
--         the call and the time used, in microseconds. It ends there if that time is in none of the first three
--         windows of a calendar. Nothing is then decided, and the caller repeats the call with the windows of that time. Otherwise, for
--         each step:
--         a run of one request: the state found, or -1 - state if the request was limited
--         a longer run: the number of requests that were not limited, which are the first ones of the run, and the state that the first
--         request found
--         a group: for each item the state that the first request found, as three numbers: unit (0 if nothing is stored), time at which the
--         bucket is full, and carry; or unit, start and count. For a concurrency limit, one number: the slots in use, or 0 for a
--         settlement. Then for each request, and for each of its settlements: the time at which the hold was placed (0 for a concurrency
--         limit), or -1 if there is no such hold. For `what` 5, three numbers follow: the hits of the hold, the time at
--         which the bucket would have been full without it, and its `heldCost`.
--         The state that a run finds is the microseconds until a token bucket is full, then its carry if q > 1; or the count of a window.
--
-- Value   t1:<time at which the bucket is full>:<carry>:<q>   w1:<start of the window>:<count>:<its length>
--         d1:<start of the next window>:<hits owed>:<its length>   A window in debt. In this script, a window that has not begun, with a
--         negative count.
--         l1:<time>:<carry>:<q>, then one or more :<time>:<depth>   Only the first edition writes this form: a token bucket that is full
--         at the latest of these times. If the depth is 2^53-1, <time> does not count.
--         Any other value counts as absent, so that two versions can share one Redis.
--         A key expires at most half a second after its bucket is full or its window ends, and never earlier. If a test sets the time,
--         a key expires later: by a thousandth of its lifetime, and by 1 minute.

local match = string.match
local floor, min, max = math.floor, math.min, math.max
local tonumber, unpack, KEYS, ARGV = tonumber, unpack, KEYS, ARGV

local MAX_COUNT = 9007199254740991
-- If the clock is set back by at most this many microseconds, the script uses the latest earlier time until the clock has reached it again.
local MAX_STEP = 1000000
-- Keys expire at multiples of this many microseconds. Most writes to a bucket then do not change its expiry time, which makes them a
-- quarter cheaper.
local EXPIRY_STEP = 500000
-- '%d' needs half the time of '%.0f', but can represent 2^53 only if C's long has 64 bits.
local D = format('%d', MAX_COUNT) == '9007199254740991' and '%d' or '%.0f'
local STATE, WHOLE_TOKENS = '1:' .. D .. ':' .. D .. ':' .. D, 't1:' .. D .. ':0:1'

local given = ARGV[2] ~= ''
-- Additional lifetime of keys if a test sets the time, in milliseconds, because the clock of the test may stand still for a while.
local MARGIN = 60000
local raw
if given then
  raw = tonumber(ARGV[2])
else
  -- The first command, so that nothing has changed if Redis rejects it.
  local time = redis.pcall('TIME')
  if time.err then return { err = 'NOTIME ' .. time.err } end
  raw = time[1] * 1000000 + time[2]
end
local now = raw
local seen = tonumber(ARGV[3])
if raw < seen and seen - raw <= MAX_STEP then now = seen end
-- Whether the clock was set back and has not yet reached its earlier time again. Stored times may then be later than the clock.
local isSetBack = tonumber(ARGV[4]) - raw > MAX_STEP
local countDenied = ARGV[5] == '1'
local steps = ARGV[6]

-- Maximum number of values in a command or a list of arguments, an even number. More values could overflow the Lua stack.
local CHUNK = 1000
-- The reply so far.
local reply, filled = { tonumber(ARGV[1]), now }, 2

local function encodedReply()
  local text
  for first = 1, filled, CHUNK do
    local last = min(first + CHUNK - 1, filled)
    local part = pack('<' .. string.rep('d', last - first + 1), unpack(reply, first, last))
    text = text and text .. part or part
  end
  return text
end

-- PXAT is exact, whereas PX counts from Redis's cached time. If a test sets the time, it differs from Redis's time, so keys outlive their
-- buckets by a margin, and by a thousandth because clocks drift.
local stepFrom, stepTo, expiry = 0, 0, nil
-- `stored` is the time at which the stored bucket is full or the stored window ends, if there is one.
local function store(k, value, ends, stored)
  if ends < stepFrom or ends >= stepTo then
    stepFrom = ends - ends % EXPIRY_STEP
    stepTo = stepFrom + EXPIRY_STEP
    expiry = format(D, given and floor((stepTo - raw) / 999) + MARGIN or stepTo / 1000 + 1)
  end
  if stored and stored >= stepFrom and stored < stepTo then
    call('SET', KEYS[k], value, 'KEEPTTL')
  else
    call('SET', KEYS[k], value, given and 'PX' or 'PXAT', expiry)
  end
end

-- The fast path for the most frequent steps: `count` equal takes from a token bucket that no other step uses. It creates no tables. Returns
-- the state found, as in the reply, its carry, and the number of allowed takes. Returns nothing if the general code must decide.
local function takeAlone(k, value, count, q, fill, fillCarry, cost, costCarry)
  local w, c, ends = now, 0, nil
  if value then
    if q == 1 then
      ends = tonumber(match(value, '^t1:(%d+):0:1$'))
    else
      local a, b, unitOf = match(value, '^t1:(%d+):(%d+):(%d+)$')
      if tonumber(unitOf) ~= q then return end
      ends, c = tonumber(a), tonumber(b)
      if c >= q then return end
    end
    if not ends then return end
    if ends < now then c = 0 else w = ends end
  end
  local empty = now + fill
  if w > empty or (w == empty and c > fillCarry) then return end
  local nextWhole, nextCarry, passed = w, c, 0
  if q == 1 then
    passed = min(count, floor((empty - w) / cost))
    nextWhole = w + passed * cost
  else
    while passed < count do
      local whole, part = nextWhole + cost, nextCarry + costCarry
      if part >= q then whole, part = whole + 1, part - q end
      if whole > empty or (whole == empty and part > fillCarry) then break end
      nextWhole, nextCarry, passed = whole, part, passed + 1
    end
  end
  local carry = q > 1 and c or nil
  if passed > 0 then
    store(k, carry and 't' .. format(STATE, nextWhole, nextCarry, q) or format(WHOLE_TOKENS, nextWhole), nextWhole, ends)
  end
  return w - now, carry, passed
end

-- The same fast path for a window that began at `start`.
local function countAlone(k, value, start, length, limit, hits, countsDenied)
  local count, ends = 0, nil
  if value then
    local from, found, lengthOf = match(value, '^w1:(%d+):(%d+):(%d+)$')
    from, found, lengthOf = tonumber(from), tonumber(found), tonumber(lengthOf)
    if not from or lengthOf == 0 or found > MAX_COUNT then return end
    ends = from + lengthOf
    if ends > MAX_COUNT then return end
    if from == start and lengthOf == length then count = found end
  end
  local after = count + hits
  local limited = after > limit
  if not limited or countsDenied then
    store(k, 'w' .. format(STATE, start, min(after, MAX_COUNT), length), start + length, ends)
  end
  return limited and -1 - count or count
end

-- Sum of the character codes of '000', each times the value of its digit.
local ZEROS = 48 * (64 * 64 + 64 + 1)

-- Section: holds.

-- Maximum number of expired holds that a take removes from a set, or whose hits it returns. For 100,000 holds, this would take 40 ms.
local MAX_REMOVED = 200
-- For each set for whose expired holds this call has returned the hits: whether expired holds may be left. Expired holds of such a set are
-- not removed in any other way.
local isPart = {}
-- Number of holds whose hits this call has returned.
local freedCount = 0
-- Number of occupied slots in each concurrency limit that was counted. The functions of this script keep it up to date.
local slots = {}

local nowText = format(D, now)
local liveFrom = '(' .. nowText

-- Returns the number of occupied slots in a concurrency limit.
local function countSlots(h)
  local count = slots[h]
  if not count then
    count = call('ZCOUNT', KEYS[h], liveFrom, '+inf')
    slots[h] = count
  end
  return count
end

-- First member of each set. Its score is the negative of a time until which the key certainly exists, in microseconds. This member also
-- keeps the key when the set has no holds, so that the next request does not have to create the key again.
local UNTIL = 'until'

-- Removes some of the expired holds of a set.
local function removeExpired(h)
  local dead = call('ZCOUNT', KEYS[h], '0', nowText)
  if dead > 0 then call('ZREMRANGEBYRANK', KEYS[h], 1, min(dead, MAX_REMOVED)) end
end

-- Holds that this call has added but not yet stored. For each set: a list of scores and members, the time at which the last of these holds
-- expires, and whether the set had no other holds.
local added, lastEnds, isNew = {}, {}, {}
local score, scoreEnds
-- The score of UNTIL for holds that expire between two times, and the remaining lifetime of the key in this case, in milliseconds.
local untilFrom, untilTo, untilScore, untilLeft = 0, 0, nil, nil

-- Adds a hold, which storeHolds() stores. One in 16 takes also removes expired holds. The last digit of the random id, which is its last
-- four bits, selects these takes.
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

-- Makes storeHolds() keep the key of a set at least until a time.
local function keepUntil(h, ends)
  added[h], lastEnds[h] = added[h] or {}, max(lastEnds[h] or 0, ends)
end

-- Stores the holds that were added to a set. The key expires one to two seconds after its last hold. If all holds have the same lifetime,
-- UNTIL changes at most once per second. The expiry time must be set only if UNTIL changes.
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

-- Whether a set had no expired members when this call started. If so, the scores of its slots do not have to be read.
local allLive = {}

-- Returns whether a hold has a different number of slots.
local function hasOtherSlots(h, id, held)
  local key = KEYS[h]
  if added[h] then storeHolds(h) end
  return call('ZSCORE', key, memberOf(steps, id, held, 0)) or held > 1 and not call('ZSCORE', key, memberOf(steps, id, held - 1, 0))
end

-- Removes a hold. Returns the time at which it was placed (-1 if it does not exist), and the number of slots that were removed. The time is
-- 0 for a concurrency limit. `compares`: whether to compare the number of slots.
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

-- Second member of a set that had too many expired holds for one call, so that some of them may still be in the set.
local LATE = 'late'

-- Removes the first expired holds of a set, before `requests` requests that may place as many new holds. Returns a list of each member
-- followed by its score. Also returns whether some takes from the bucket were or will be decided before the hits of all expired holds of
-- the set have been returned.
local function removeForRefund(h, requests)
  -- Removes at least as many holds as the requests place, so that expired holds cannot pile up.
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

-- Removes the hold of a set that expires first. Returns the time at which it was placed, its hits, the time at which the bucket would have
-- been full without it, and its cost. Returns -1, 0, 0 and 0 if the set has no hold.
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

-- Section: the fast path.

-- isPlain: whether each ask has 7 numbers and `what` 0, so that all asks are plain takes. Otherwise, `askAt` contains the index of each
-- ask. If a call has a calendar, the fast path does not decide any of its steps, because a call that lacks the current window must not
-- change anything.
local isFast, isPlain, hasBuckets, askAt = true, #ARGV % 7 == 6, true, nil
for argument = 7, #ARGV, 7 do isPlain = isPlain and ARGV[argument] == '0' end
if not isPlain then
  hasBuckets, askAt = false, {}
  local argument = 7
  while argument <= #ARGV do
    local what = tonumber(ARGV[argument])
    local kind, flags, frees = what % 10, floor(what / 10) % 16, what >= 160
    askAt[#askAt + 1] = argument
    hasBuckets = hasBuckets or ARGV[argument + 2] ~= '0'
    isFast = isFast and flags % 4 < 2
    argument = argument + 7 + (flags % 2 == 1 and 2 or 0) + (flags >= 4 and 2 or 0) + (flags >= 8 and 2 or 0)
      + (frees and 3 or 0) + (kind == 4 and flags < 8 and 1 or 0) + (flags % 4 >= 2 and 5 or 0)
  end
end

local values = {}
if hasBuckets then
  values = call('MGET', unpack(KEYS, 1, min(CHUNK, #KEYS)))
  for first = CHUNK + 1, #KEYS, CHUNK do
    local more = call('MGET', unpack(KEYS, first, min(first + CHUNK - 1, #KEYS)))
    for i = 1, #more do values[first + i - 1] = more[i] end
  end
end

local at = 1

-- Fast path: decides the leading steps of a call as long as they are takes or settlements on a bucket that no other step uses, or start or
-- end concurrent requests. Most calls contain only such steps. For them, the tables and functions of the general code would cost more than
-- the decision itself.
local asked, size, fill, fillCarry, cost, costCarry, what, enforces, lifetime, held
-- Whether the fast path decides a settlement, or a take with a hold. For settlements, also `debt`, `useLasts` and `heldCost` as in the
-- arguments.
local settles, isFastGroup, owing, debt, debtCarry, useLasts, heldCost

-- Settles a hold in a token bucket that no other step uses. Returns the state found and the time at which the hold was placed, as in the
-- reply. Returns nothing if the general code must decide.
local function settleAlone(k, value, set, id)
  local w, c, ends = now, 0, nil
  if value then
    local a, b, q = match(value, '^t1:(%d+):(%d+):(%d+)$')
    ends, c = tonumber(a), tonumber(b)
    if tonumber(q) ~= size or c >= size then return end
    if ends < now then c = 0 else w = ends end
  end
  local lowest = now + debt
  if w > lowest or (w == lowest and c > debtCarry) then return end
  local found, carry, full = w, c, fullTimeAt(id)
  local taken = settle(set, id, size, held, lifetime, full, heldCost)
  if taken < 0 then return found, carry, taken end
  if what == '83' or what == '93' then
    w, c = w + cost, c + costCarry
    if c >= size then w, c = w + 1, c - size end
    if w > lowest or (w == lowest and c > debtCarry) then w, c = lowest, debtCarry end
  else
    local back, depth = cost + min(0, full + useLasts - now), w + now - taken
    -- takeTokens explains the case in which the maximum has cut off a debt.
    local isCutOff = owing and (depth > lowest or (depth == lowest and c + 1 > debtCarry))
    if isCutOff or back * size + costCarry <= 0 or (w == now and c == 0) then return found, carry, taken end
    w, c = w - back, c - costCarry
    if c < 0 then w, c = w - 1, c + size end
    if w < now then w, c = now, 0 end
  end
  if w > now or c > 0 then
    store(k, size == 1 and format(WHOLE_TOKENS, w) or 't' .. format(STATE, w, c, size), w, ends)
  elseif value then
    call('DEL', KEYS[k])
  end
  return found, carry, taken
end

-- Asks that the fast path has already parsed, because requests often start and end in turn.
local parsed = {}

local function parseAsk(n)
  local first = isPlain and 7 * n or askAt[n]
  local what, size = ARGV[first], tonumber(ARGV[first + 2])
  local owing = what == '94' or what == '93'
  local settles = what == '84' or what == '94' or size > 0 and (what == '83' or what == '93')
  local debt = owing and 7 or 3
  local hold = (owing or what == '50') and 9 or 7
  local ask = {
    what, size, tonumber(ARGV[first + 3]), tonumber(ARGV[first + 4]), tonumber(ARGV[first + 5]), tonumber(ARGV[first + 6]),
    ARGV[first + 1] == '0' or ARGV[first + 1] == '2', settles, size >= 0 and (settles or what == '40' or what == '50'), owing,
    tonumber(ARGV[first + debt]), tonumber(ARGV[first + debt + 1]),
    tonumber(ARGV[first + hold]), tonumber(ARGV[first + hold + 1]), tonumber(ARGV[first + hold + 2]), tonumber(ARGV[first + hold + 3]),
  }
  parsed[n] = ask
  return ask
end

while isFast and at <= #steps do
  local a, b, c, d, e, f, g, h, i = byte(steps, at, at + 8)
  local k, n, count = (a * 64 + b) * 64 + c - ZEROS, (d * 64 + e) * 64 + f - ZEROS, (g * 64 + h) * 64 + i - ZEROS
  local isGroup, after, set, ids = k == 0, at + 9, nil, nil
  if isGroup then
    if n > 1 then break end
    a, b, c, d, e, f = byte(steps, after, after + 5)
    k, n = (a * 64 + b) * 64 + c - ZEROS, (d * 64 + e) * 64 + f - ZEROS
  end
  if n ~= asked then
    asked = n
    local ask = parsed[n] or parseAsk(n)
    what, size, fill, fillCarry, cost, costCarry, enforces, settles, isFastGroup, owing, debt, debtCarry, lifetime, held, useLasts, heldCost =
      unpack(ask, 1, 16)
  end
  local many = max(count, 1)
  if isGroup then
    if not isFastGroup or settles and size > 0 and count > 0 then break end
    a, b, c = byte(steps, at + 15, at + 17)
    set, ids = (a * 64 + b) * 64 + c - ZEROS, at + 18
    after = ids + (settles and size > 0 and ID + 9 or ID) * many
  elseif what ~= '0' then
    break
  end
  -- Stop at a bucket that another step may use.
  if size ~= 0 and count > 0 and (at > 1 or after <= #steps) then break end
  local found, carry, passed
  if isGroup and settles and size > 0 then
    found, carry, passed = settleAlone(k, values[k], set, ids)
  elseif size > 0 then
    found, carry, passed = takeAlone(k, values[k], many, size, fill, fillCarry, cost, costCarry)
  elseif size < 0 and count == 0 then
    found = countAlone(k, values[k], now - now % -size, -size, fill, cost, countDenied and fillCarry == 0)
  elseif size == 0 then
    -- To end a request, the number of occupied slots is not needed.
    found = settles and 0 or countSlots(k)
  end
  if not found then break end
  if not isGroup then
    if passed == 0 and count == 0 then found = -1 - found end
    if count > 0 then
      filled = filled + 1
      reply[filled] = passed
    end
    reply[filled + 1], reply[filled + 2] = found, carry
    filled = filled + (carry and 2 or 1)
  elseif size > 0 and settles then
    reply[filled + 1], reply[filled + 2], reply[filled + 3], reply[filled + 4] = size, found, carry, passed
    filled = filled + 4
  elseif size > 0 then
    found, carry = now + found, carry or 0
    reply[filled + 1], reply[filled + 2], reply[filled + 3] = size, found, carry
    filled = filled + 3
    for earlier = 0, passed - 1 do
      local full = found + earlier * cost + floor((carry + earlier * costCarry) / size)
      place(set, ids + ID * earlier, size, held, lifetime, full, max(1, cost))
    end
  else
    filled = filled + 1
    reply[filled] = found
    for id = ids, after - 1, ID do
      if settles then
        filled = filled + 1
        reply[filled], passed = settle(set, id, 0, held, lifetime, 0, 0, useLasts == 1)
        if slots[k] then slots[k] = max(0, slots[k] - passed) end
      elseif not enforces or found + held <= fill then
        place(set, id, 0, held, lifetime)
        found = found + held
        slots[k] = found
      end
    end
  end
  at = after
end
if at > #steps then
  storeAllHolds()
  return encodedReply()
end

-- Section: the states of buckets. The code from here on handles all calls.

-- Maximum time in which a bucket of any limit fills, in microseconds; MAX_FILL_MICROS in TypeScript.
local MAX_FILL = 3153600000000000

-- The running state of each key that was read, whether this state must be stored, and the time at which the stored state ends.
local unit, whole, part, changed, storedEnds = {}, {}, {}, {}, {}

-- Selects the calendar window that contains the current time, and the end of the next window. Returns false if the caller did not send this
-- window.
local function pickWindow(ask, at)
  local first = at
  while first < at + 3 and now >= tonumber(ARGV[first + 1]) do first = first + 1 end
  local start = tonumber(ARGV[first])
  if first == at + 3 or now < start then return false end
  ask.start, ask.unit, ask.nextEnds = start, start - tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])
  return true
end

local asks = {}
local argument = 7
while argument <= #ARGV do
  local at = argument
  local what = tonumber(ARGV[at])
  local ask = {
    what = what % 10, enforcement = tonumber(ARGV[at + 1]), unit = tonumber(ARGV[at + 2]),
    fill = tonumber(ARGV[at + 3]), fillCarry = tonumber(ARGV[at + 4]),
    cost = tonumber(ARGV[at + 5]), costCarry = tonumber(ARGV[at + 6]),
  }
  asks[#asks + 1] = ask
  argument = at + 7
  local flags = floor(what / 10) % 16
  ask.debt, ask.debtCarry = ask.fill, ask.fillCarry
  if flags % 2 == 1 then
    ask.debt, ask.debtCarry = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
    argument = argument + 2
    ask.owing = true
  end
  if flags >= 4 then
    ask.lifetime, ask.held = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
    ask.hasHold, ask.isOldest = true, ask.what == 5
    ask.settles = flags >= 8 or ask.isOldest
    ask.hitCost, ask.hitCarry = ask.cost, ask.costCarry
    argument = argument + 2
  end
  if flags >= 8 then
    ask.useLasts, ask.heldCost = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
    argument = argument + 2
  end
  if what >= 160 then
    ask.hasHold, ask.freed = true, {
      what = 2, settles = true, owing = ask.owing, unit = ask.unit, fill = ask.fill, fillCarry = ask.fillCarry,
      debt = ask.debt, debtCarry = ask.debtCarry, lifetime = 0, held = tonumber(ARGV[argument + 2]),
      hitCost = tonumber(ARGV[argument]), hitCarry = tonumber(ARGV[argument + 1]),
    }
    argument = argument + 3
  end
  ask.idLength = flags >= 8 and ask.unit ~= 0 and ID + 9 or ID
  if ask.what > 3 then
    if ask.what == 4 and not ask.settles then
      ask.mark = tonumber(ARGV[argument])
      argument = argument + 1
    end
    ask.what = 2
  end
  ask.countsDenied = countDenied and ask.unit < 0 and not ask.owing and ask.fillCarry == 0
  if flags % 4 >= 2 then
    if not pickWindow(ask, argument) then
      filled = 2
      return encodedReply()
    end
    argument = argument + 5
  elseif ask.unit < 0 then
    ask.start = now - now % -ask.unit
    ask.nextEnds = ask.start - 2 * ask.unit
  end
end

-- Returns whether a state exceeds the maximum debt, or the capacity if the rate has no debt.
local function tooDeep(w, c, ask)
  local lowest = now + ask.debt
  return w > lowest or (w == lowest and c > ask.debtCarry)
end

-- Returns whether a take exceeds the tokens of a bucket.
local function overdrawn(w, c, ask)
  local empty = now + ask.fill
  return w > empty or (w == empty and c > ask.fillCarry)
end

-- Returns the state of a token bucket in the units of an ask (1/q). If a limit changes, servers get the new limit one after another, so the
-- state may be deeper than this ask allows. Such a bucket has no tokens for this ask, but its state does not change. Otherwise, the server
-- with the deeper limit would find new tokens. Only refunds make the time of a bucket earlier.
local function inUnits(u, w, c, ask)
  if u <= 0 then return now, 0 end
  if u == ask.unit then return w, c end
  return c > 0 and w + 1 or w, 0
end

-- Reads a bucket with levels, which the first edition of weir stored. Returns the time at which its deepest level is full, the carry, and
-- q; nothing for any other value.
local function deepestLevel(value)
  local full, c, q, rest = match(value, '^l1:(%d+):(%d+):(%d+)(:[%d:]+)$')
  if not full then return end
  local w, read = tonumber(full), 0
  for text, time, depth in string.gmatch(rest, '(:(%d+):(%d+))') do
    read, time, depth = read + #text, tonumber(time), tonumber(depth)
    if depth > MAX_COUNT then
      w = depth
    elseif depth < MAX_COUNT then
      w = max(w, time)
    end
  end
  if read == #rest then return w, tonumber(c), tonumber(q) end
end

-- Reads the stored state. weir never writes a number above 2^53-1, or a carry of a whole microsecond. An absent value means a full bucket,
-- but such an invalid value must not: the bucket counts as empty, or the window as used up. This also bounds all numbers in the reply.
local function load(k, ask)
  local value = values[k] or ''
  local form, a, b, c = match(value, '^([twd])1:(%d+):(%d+):(%d+)$')
  a, b, c = tonumber(a), tonumber(b), tonumber(c)
  if not form then
    a, b, c = deepestLevel(value)
    form = a and 't'
  end
  if not form or c == 0 then
    unit[k], whole[k], part[k] = 0, 0, 0
  elseif form == 't' then
    if a > MAX_COUNT or b >= c or c > MAX_COUNT then a, b, c = MAX_COUNT, 0, 1 end
    unit[k], whole[k], part[k], storedEnds[k] = c, a, b, a
    if a < now then
      whole[k], part[k] = now, 0
    elseif ask.unit > 0 and (isSetBack or a > now + MAX_FILL) then
      -- No limit can have written this time, or the clock was set back since then. The bucket is empty, or has its maximum debt, and
      -- refills from now on.
      local w, carry = inUnits(c, a, b, ask)
      if tooDeep(w, carry, ask) then
        unit[k], whole[k], part[k], changed[k] = ask.unit, now + ask.debt, ask.debtCarry, true
      end
    end
  else
    local ends = a + c
    if ends > MAX_COUNT or b > MAX_COUNT then
      form, a, b, c, ends = 'w', ask.start or 0, MAX_COUNT, ask.unit < 0 and -ask.unit or 1, nil
      changed[k] = ask.unit < 0 or nil
    end
    -- Once the window has begun, its debt counts as hits of this window.
    if form == 'd' and a > now then b = -b end
    unit[k], whole[k], part[k], storedEnds[k] = -c, a, b, ends
  end
end

-- Returns the state after the hits of an ask were taken.
local function taken(w, c, ask)
  w, c = w + ask.cost, c + ask.costCarry
  if c >= ask.unit then return w + 1, c - ask.unit end
  return w, c
end

-- Section: runs.

-- Appends the reply to a run of `count` requests.
local function answer(count, passed, found)
  if count > 1 then
    reply[filled + 1], reply[filled + 2] = passed, found
    filled = filled + 2
  else
    filled = filled + 1
    reply[filled] = passed == 0 and -1 - found or found
  end
end

-- Decides a run on a token bucket. Each request has only one item, so nothing has to be undone after a denial.
local function runTokens(k, ask, count)
  local w, c = inUnits(unit[k], whole[k], part[k], ask)
  local changes = false
  local foundWhole, foundCarry = w, c
  local passed = 0
  local nextWhole, nextCarry = taken(w, c, ask)
  while passed < count and not overdrawn(nextWhole, nextCarry, ask) do
    if ask.what == 1 then
      passed = count
    else
      passed, changes, w, c = passed + 1, true, nextWhole, nextCarry
      nextWhole, nextCarry = taken(w, c, ask)
    end
  end
  -- If only rounding has changed the state, it is not stored.
  if changes then unit[k], whole[k], part[k], changed[k] = ask.unit, w, c, true end
  answer(count, passed, foundWhole - now)
  if ask.unit > 1 then
    filled = filled + 1
    reply[filled] = foundCarry
  end
end

-- Returns the count of the window that contains the current time. A debt is stored as hits of the next window. The second result is nil if
-- the window itself is stored. Otherwise, it is true if the window has a debt that this ask must not change, because its own rate has no
-- debt.
local function inWindow(u, w, c, ask)
  local start = ask.start
  if u == ask.unit and w == start then return c end
  if u < 0 and w == start - ask.unit then
    if ask.owing then return min(ask.fill + math.abs(c), ask.debt), false end
    if c < 0 then return MAX_COUNT, true end
  end
  return 0, false
end

-- Returns whether a time is in the window that contains the current time.
local function inSameWindow(time, ask)
  return time >= ask.start and time < ask.start - ask.unit
end

-- Returns the count after the hits of an ask, whether they exceed the limit, and whether the stored count changes.
local function counted(count, ask, hits, owes)
  if ask.what == 2 then
    if owes or (ask.mark and ask.mark ~= ask.start) then return count, false, false end
    local left = max(0, count - hits)
    return left, false, left ~= count
  end
  local asked = (hits == 0 and (ask.owing or ask.fill == 0 or ask.enforcement == 4)) and 1 or hits
  local limited = count + asked > ask.fill or asked > ask.fill
  if hits > 0 and (not limited or ask.countsDenied) then
    return min(count + hits, MAX_COUNT), limited, not owes
  end
  return count, limited, false
end

local function runHits(k, ask, count)
  local found, owes = inWindow(unit[k], whole[k], part[k], ask)
  local running, passed, changes = found, 0, false
  for _ = 1, count do
    local limited, differs
    running, limited, differs = counted(running, ask, ask.cost, owes)
    if not limited then passed = passed + 1 end
    changes = changes or differs
  end
  if changes then unit[k], whole[k], part[k], changed[k] = ask.unit, ask.start, running, true end
  answer(count, passed, found)
end

-- Section: groups.

-- A group is `count` equal requests, each with the same items. The items are applied to the running state in order. If a request is denied,
-- its changes are undone. The caller uses the same arithmetic to compute each outcome from the states found.

-- The state of each key while a request is decided: unit, time or start, and carry or count. `dirty` is whether the state has changed, and
-- `nowOwes` is whether a debt must not change. For each item, `limitedAt` is whether the request exceeds its limit, and `fullAt` is the
-- time at which the bucket would have been full without the item. For a settlement, `takenAt` is the time at which the hold was placed,
-- `removed` is the number of slots that were freed, and `fullAfter` is the time at which the bucket would have been full if only the use
-- had been deducted.
local nowUnit, nowWhole, nowPart, dirty, nowOwes, limitedAt = {}, {}, {}, {}, {}, {}
local fullAt, takenAt, removed, fullAfter = {}, {}, {}, {}
-- Whether the request changed anything that must be stored.
local moved

local function begin(k)
  nowUnit[k], nowWhole[k], nowPart[k], dirty[k], nowOwes[k] = unit[k], whole[k], part[k], false, false
end

-- Deducts the cost of an ask. Returns whether the cost exceeds the limit.
local function takeTokens(k, ask, i)
  -- If the hold does not exist, the settlement has no effect.
  if ask.settles and takenAt[i] < 0 then return false end
  local w, c = inUnits(nowUnit[k], nowWhole[k], nowPart[k], ask)
  nowUnit[k], nowWhole[k], nowPart[k] = ask.unit, w, c
  local what = ask.what
  fullAt[i] = w
  if what == 2 then
    local cost = ask.cost
    local mark = ask.settles and takenAt[i] or ask.mark
    local from = ask.settles and fullAfter[i] or mark
    if mark then
      -- If the bucket has reached its maximum debt since the take, undoing the take has no effect, because other charges may have been
      -- forgiven.
      if ask.owing and tooDeep(w + now - mark, c + 1, ask) then return false end
      if now > from then cost = cost - now + from end
    end
    if cost * ask.unit + ask.costCarry <= 0 or (w == now and c == 0) then return false end
    w, c = w - cost, c - ask.costCarry
    if c < 0 then w, c = w - 1, c + ask.unit end
    if w < now then w, c = now, 0 end
  else
    -- If another limit has left the bucket with more than this limit's maximum debt, the charge is forgiven.
    if what == 3 and tooDeep(w, c, ask) then return false end
    w, c = taken(w, c, ask)
    if what == 3 then
      if tooDeep(w, c, ask) then w, c = now + ask.debt, ask.debtCarry end
    elseif overdrawn(w, c, ask) then
      return true
    elseif what == 1 then
      return false
    end
  end
  nowWhole[k], nowPart[k], dirty[k] = w, c, true
  return false
end

-- Computes the cost of `hits`, at most 2^33, from the cost of 1 hit. Returns whole microseconds and a carry. Multiplies in two parts, so
-- that all products stay below 2^53: the carry of 1 hit is less than the unit, which is less than 2^32.
local function costOf(ask, hits)
  local high = floor(hits / 65536) * ask.hitCarry
  local low = high % ask.unit * 65536 + hits % 65536 * ask.hitCarry
  return hits * ask.hitCost + floor(high / ask.unit) * 65536 + floor(low / ask.unit), low % ask.unit
end

-- Turns an ask into the refund or the charge that settles a hold of `held` hits. This corresponds to settlementOf and correctionOf in
-- TypeScript.
local function correct(ask, held, full, heldCost)
  local used, most = ask.lifetime, ask.held
  ask.what = used > held and 3 or 2
  local hits = min(math.abs(used - held), most)
  if ask.unit < 0 then
    ask.cost = hits
  else
    ask.cost, ask.costCarry = costOf(ask, hits)
    if used <= held then
      local useCost, useCarry = costOf(ask, used)
      fullAfter[1] = full + useCost
      -- At a slower rate, the settlement returns no more time than the hold has cost.
      if heldCost > 0 and heldCost < max(1, (costOf(ask, held))) then
        ask.cost, ask.costCarry = heldCost - useCost - (useCarry > 0 and 1 or 0), 0
      end
    end
  end
end

local function countHits(k, ask, hits, i)
  fullAt[i] = 0
  if ask.settles then ask.mark = inSameWindow(takenAt[i], ask) and ask.start or -1 end
  local before, owes = inWindow(nowUnit[k], nowWhole[k], nowPart[k], ask)
  if owes ~= nil then nowOwes[k] = owes end
  local after, limited, changes
  if ask.what == 3 and ask.settles and ask.mark ~= ask.start then
    after, limited, changes = before, false, false
  elseif ask.what == 3 and hits > 0 then
    after, limited, changes = before + min(hits, max(0, ask.debt - before)), false, ask.owing or not nowOwes[k]
    -- Another limit, or the counting of denied hits, may have raised the count. A window that is stored as a debt is used up for every
    -- limit.
    if ask.owing then after = min(after, ask.debt) end
  else
    after, limited, changes = counted(before, ask, hits, nowOwes[k] and not ask.owing)
  end
  nowUnit[k], nowWhole[k], nowPart[k] = ask.unit, ask.start, after
  if changes then dirty[k] = true end
  return limited
end

-- Occupies or frees slots of a concurrency limit. Returns whether the item exceeds the limit.
local function takeSlots(k, ask, i)
  fullAt[i] = 0
  local count = nowPart[k]
  if ask.what == 2 then
    if ask.settles and removed[i] > 0 then nowPart[k], dirty[k] = max(0, count - removed[i]), true end
    return false
  end
  if ask.cost > 0 then nowPart[k], dirty[k] = count + ask.cost, true end
  return count + max(1, ask.cost) > ask.fill
end

-- Applies an item to the running state of its key. Returns whether the item exceeds its limit. If the item before it, `before`, has the
-- enforcement 3 and did not exceed its limit, the item is skipped.
local function apply(k, ask, i, before)
  if before and before.enforcement == 3 and not limitedAt[i - 1] then return false end
  if ask.unit > 0 then return takeTokens(k, ask, i) end
  if ask.unit < 0 then return countHits(k, ask, ask.cost, i) end
  return takeSlots(k, ask, i)
end

-- Turns a window in debt into the form in which it is stored: the next window with the excess hits, so that the debt lasts until that
-- window ends. A count above the maximum debt is not a debt.
local function foldDebt(k, ask)
  if not ask.owing or nowUnit[k] ~= ask.unit or nowWhole[k] ~= ask.start then return end
  if nowPart[k] <= ask.fill or nowPart[k] > ask.debt then return end
  local ends = ask.start - ask.unit
  nowUnit[k], nowWhole[k], nowPart[k] = ends - ask.nextEnds, ends, ask.fill - nowPart[k]
end

-- Applies a denied request: windows count its hits.
local function deny(ks, items)
  for i = 1, #ks do begin(ks[i]) end
  for i = 1, #ks do
    local k, ask = ks[i], items[i]
    -- Refunds and charges in a denied request have no effect. An item with 0 hits is a peek.
    if ask.unit == 0 then
      -- Nothing more to undo.
    elseif ask.unit < 0 then
      countHits(k, ask, (ask.countsDenied and ask.what < 2) and ask.cost or 0, i)
    end
  end
end

-- Makes the changes of a request to a bucket final.
local function keepChanges(k, ask)
  -- If only rounding has changed the state, it is not stored.
  if not dirty[k] then return end
  foldDebt(k, ask)
  unit[k], whole[k], part[k] = nowUnit[k], nowWhole[k], nowPart[k]
  changed[k], moved = true, true
end

-- Returns the hits of expired holds of a set, as if each hold had been settled with a use of 0 when it expired, before any other take. If
-- one call cannot settle all of them, each hold is settled at the current time, and the bucket gets less back.
local function freeExpired(k, h, ask, requests)
  if isPart[h] == false then return end
  local found, late = removeForRefund(h, requests)
  local refund = ask.freed
  refund.start, refund.nextEnds = ask.start, ask.nextEnds
  begin(k)
  for i = 1, #found, 2 do
    local held, lifetime, full, cost = reservationOf(found[i])
    if held then
      local ends = tonumber(found[i + 1])
      takenAt[1] = ends - lifetime * 1000
      correct(refund, held, full + (late and 0 or now - ends), cost)
      apply(k, refund, 1)
    end
  end
  keepChanges(k, refund)
end

-- Decides one request. Returns whether it is denied.
local function decide(ks, items)
  local enforceLimited, quotaItems, quotaLimited = false, 0, 0
  moved = false
  for i = 1, #ks do begin(ks[i]) end
  for i = 1, #ks do
    local k, ask = ks[i], items[i]
    local limited = apply(k, ask, i, items[i - 1])
    limitedAt[i] = limited
    if ask.enforcement == 2 then
      quotaItems = quotaItems + 1
      if limited then quotaLimited = quotaLimited + 1 end
    elseif limited and ask.enforcement == 0 then
      enforceLimited = true
    end
  end
  local denied = enforceLimited or (quotaItems > 0 and quotaItems == quotaLimited)
  if denied then deny(ks, items) end
  for i = 1, #ks do keepChanges(ks[i], items[i]) end
  return denied
end

-- Places the holds of an allowed request. `sets` contains the key of the set for each item with a hold. The first id starts at `id`.
local function placeHolds(ks, items, sets, id)
  for i = 1, #ks do
    local ask = items[i]
    if sets[i] then
      if not ask.settles and ask.held and (ask.unit == 0 or not limitedAt[i]) then
        place(sets[i], id, ask.unit, ask.held, ask.lifetime, fullAt[i], ask.unit > 0 and max(1, ask.cost) or 0)
        -- Expired holds must be kept until the bucket is full or the window ends.
        if ask.freed then keepUntil(sets[i], ask.unit > 0 and whole[ks[i]] or ask.start - ask.unit) end
      elseif ask.freed and ask.unit > 0 and ask.what == 3 and takenAt[i] >= 0 then
        -- After a charge, the bucket is full at a later time.
        keepUntil(sets[i], whole[ks[i]])
      end
      id = id + ask.idLength
    end
    if ask.unit == 0 then slots[ks[i]] = part[ks[i]] end
  end
end

-- Settles the holds of a request, and appends the times at which they were placed to the reply. Returns whether the request settles any
-- holds.
local function settleHolds(items, sets, id)
  local settles = false
  for i = 1, #items do
    local ask = items[i]
    if ask.isOldest then
      local taken, held, full, cost = settleOldest(sets[i])
      correct(ask, held, full, cost)
      takenAt[i], settles = taken, true
      reply[filled + 1], reply[filled + 2], reply[filled + 3], reply[filled + 4] = taken, held, full, cost
      filled = filled + 4
    elseif ask.settles then
      local full = ask.idLength > ID and fullTimeAt(id) or 0
      fullAfter[i] = full + ask.useLasts
      local compares = ask.unit == 0 and ask.useLasts == 1
      takenAt[i], removed[i] = settle(sets[i], id, ask.unit, ask.held, ask.lifetime, full, ask.heldCost, compares)
      filled, settles = filled + 1, true
      reply[filled] = takenAt[i]
    end
    if sets[i] then id = id + ask.idLength end
  end
  return settles
end

-- Returns how many of `count` requests are certainly allowed, so that their hits can be deducted in one operation. Returns 0 unless all
-- items are plain takes on different keys.
local function passing(ks, items, count)
  local seen = {}
  for i = 1, #ks do
    local k, ask = ks[i], items[i]
    if ask.what ~= 0 or ask.enforcement == 3 or seen[k] then return 0 end
    seen[k] = true
    local room, cost
    if ask.unit < 0 then
      room, cost = ask.fill - inWindow(unit[k], whole[k], part[k], ask), ask.cost
    else
      -- The carry may add 1 microsecond to each take.
      room, cost = now + ask.fill - inUnits(unit[k], whole[k], part[k], ask), ask.cost + 1
    end
    count = min(count, floor(room / cost))
  end
  return count
end

local function takeAtOnce(ks, items, count)
  for i = 1, #ks do
    local k, ask = ks[i], items[i]
    if ask.unit < 0 then
      whole[k], part[k] = ask.start, inWindow(unit[k], whole[k], part[k], ask) + count * ask.cost
    else
      local w, c = inUnits(unit[k], whole[k], part[k], ask)
      c = c + count * ask.costCarry
      whole[k], part[k] = w + count * ask.cost + floor(c / ask.unit), c % ask.unit
    end
    unit[k], changed[k] = ask.unit, true
  end
end

-- Decides a group. The ids of its holds start at `id`, `idLength` characters for each request.
local function group(ks, items, count, sets, id, idLength)
  for i = 1, #ks do
    local k, ask = ks[i], items[i]
    if ask.unit == 0 then
      unit[k], whole[k], part[k] = 0, 0, countSlots(k)
    else
      if not unit[k] then load(k, ask) end
      if ask.freed then freeExpired(k, sets[i], ask, count) end
    end
  end
  -- Several items may use the same bucket, and each of them may have returned the hits of expired holds.
  for i = 1, #ks do
    local k = ks[i]
    if items[i].unit ~= 0 then
      reply[filled + 1], reply[filled + 2] = unit[k], whole[k]
      filled = filled + 2
    end
    filled = filled + 1
    reply[filled] = part[k]
  end
  local left = count
  if count > 1 and idLength == 0 then
    local first = passing(ks, items, count)
    if first > 0 then
      takeAtOnce(ks, items, first)
      left = count - first
    end
  end
  -- If a request has no effect, the next one finds the same state, so it has no effect either, unless it settles another hold.
  local settles
  moved = true
  while left > 0 and (moved or settles) do
    settles = settleHolds(items, sets, id)
    local denied = decide(ks, items)
    if idLength > 0 and not denied then placeHolds(ks, items, sets, id) end
    left, id = left - 1, id + idLength
  end
end

while at <= #steps do
  local a, b, c, d, e, f, g, h, i = byte(steps, at, at + 8)
  local k, n = (a * 64 + b) * 64 + c - ZEROS, (d * 64 + e) * 64 + f - ZEROS
  at = at + 9
  if k > 0 then
    local count = (g * 64 + h) * 64 + i - ZEROS
    local ask = asks[n]
    local found, carry, passed
    if count > 0 or ask.what ~= 0 then
      -- Not a run on a bucket that no other step uses.
    elseif ask.unit > 0 then
      found, carry, passed = takeAlone(k, values[k], 1, ask.unit, ask.fill, ask.fillCarry, ask.cost, ask.costCarry)
      if passed == 0 then found = -1 - found end
    else
      found = countAlone(k, values[k], ask.start, -ask.unit, ask.fill, ask.cost, ask.countsDenied)
    end
    if found then
      reply[filled + 1], reply[filled + 2] = found, carry
      filled = filled + (carry and 2 or 1)
    else
      if not unit[k] then load(k, ask) end
      local run = ask.unit > 0 and runTokens or runHits
      run(k, ask, count > 0 and count or 1)
    end
  else
    local count = max(1, (g * 64 + h) * 64 + i - ZEROS)
    local ks, items, sets, idLength = {}, {}, {}, 0
    for item = 1, n do
      a, b, c, d, e, f = byte(steps, at, at + 5)
      ks[item], items[item], at = (a * 64 + b) * 64 + c - ZEROS, asks[(d * 64 + e) * 64 + f - ZEROS], at + 6
      if items[item].hasHold then
        a, b, c = byte(steps, at, at + 2)
        sets[item], idLength, at = (a * 64 + b) * 64 + c - ZEROS, idLength + items[item].idLength, at + 3
      end
    end
    group(ks, items, count, sets, at, idLength)
    at = at + count * idLength
  end
end
storeAllHolds()

for k in pairs(changed) do
  local u, w, c = unit[k], whole[k], part[k]
  if u < 0 and c ~= 0 then
    store(k, (c > 0 and 'w' or 'd') .. format(STATE, w, math.abs(c), -u), w - u, storedEnds[k])
  elseif u > 0 and (w > now or c > 0) then
    store(k, u == 1 and format(WHOLE_TOKENS, w) or 't' .. format(STATE, w, c, u), w, storedEnds[k])
  elseif values[k] then
    call('DEL', KEYS[k])
  end
end

return encodedReply()
