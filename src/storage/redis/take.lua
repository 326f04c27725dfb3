-- Decides a batch of requests on token buckets and windows. First part of the script: arguments, states, runs; levels
-- follow in take-levels.lua, groups in take-groups.lua.
--
-- Why a script: reading the clock, reading the buckets, deciding and writing must be one step, or two servers that share
-- this Redis would both hand out the last token. A request is decided whole or not at all, for the same reason.
--
-- The arithmetic is that of src/limiter/decide.ts, where it is explained; costs are computed there (exactly, beyond 2^53),
-- here they are only added, carried, compared and stored. All numbers are whole and below 2^53.
--
-- KEYS    each bucket of the batch once
-- ARGV    1  '' to go by the clock of this Redis; a test's clock in microseconds otherwise
--         2  the latest time, in microseconds, that the caller has seen from this Redis, or 0
--         3  '1' if windows count the hits of denied requests, '0' if not
--         4  steps, in the order in which they are decided: numbers of three characters, each character a digit from 0 (code 48) to 63
--            (code 111) of a number to the base 64.
--              key ask count   a run: `count` requests, equal and each of this one item; indexes count from 1. 0 stands for a run of one on
--                              a bucket that no other step names
--              0 items count   a group: `count` equal requests of so many items; for each item `key ask` follows
--         then for each ask 7 numbers, and more where `what` says so:
--              what        0 take, 1 peek (hits 0), 2 refund (never in a run), 3 charge (never in a run), 4 refund that is for one window only;
--                          + 10 if debt follows, + 20 if a calendar does, + 30 if both
--              enforcement 0 enforce, 1 observe, 2 quota, 3 candidate; a request of one item does not look at it
--              unit        q of a token bucket's rate; minus the length in microseconds of a window, the nominal one with a calendar
--              fill        whole microseconds an empty bucket needs to fill; requests per unit of a window
--              fillCarry   its carry in 1/q microseconds; of a window 1 if it counts no hits of denied requests whatever others do, else 0
--              cost        whole microseconds the hits cost, those of one token for a peek; hits on a window
--              costCarry   its carry; 0
--            debt, of rates that have one (never in a run on a window):
--              whole       whole microseconds a bucket needs to fill from its deepest debt; the most hits that a window counts
--              carry       its carry; 0
--            start, of a refund for one window: when that began
--            calendar, 5 numbers: boundaries of four windows in a row, the second of which holds the caller's idea of the time
-- Reply   flat list of integers: the time used in microseconds, alone if it is in none of the first three windows sent of a calendar: then
--         nothing was decided, and the caller, who now knows the time, asks again with others. Else in order
--         for a run of one: the state found, as -1 - state if the request was limited
--         for a longer run: how many were not limited, which are the first, then the state that the first one found
--         for each item of a group: the state found, as unit (0: nothing stored), time at which the bucket is full, carry -- or unit, start, count
--         The state found of a run is the microseconds until a token bucket is full, followed by its carry if q > 1; the count of a window.
--
-- Value   t1:<time at which the bucket is full>:<carry>:<q>   w1:<start of the window>:<count>:<its length>
--         l1:<the same>:<carry>:<q>, then once or more :<when the next deeper level is full>:<depth in microseconds up to which the one before holds>
--         a bucket with levels, see keepAbove
--         d1:<start of the next window>:<hits owed>:<its length>   a window in debt, which is a negative count here
--         Anything else under a key is treated as absent, so that two versions can share one Redis.
--         A key expires when its bucket is full or its window has ended, never sooner, at most half a second later (a minute later
--         on a test's clock).

local call, byte, match, format, floor, min = redis.call, string.byte, string.match, string.format, math.floor, math.min
local tonumber, KEYS, ARGV = tonumber, KEYS, ARGV

local MAX_COUNT = 9007199254740991
-- unpack() of more values than this may overflow the Lua stack.
local CHUNK = 1000
-- A clock that stepped back by no more than this is waited for.
local MAX_STEP = 1000000
-- Keys expire at multiples of this many microseconds: a bucket that is in use keeps its time to live most of the time, which makes writing it
-- a quarter cheaper.
local EXPIRY_STEP = 500000
-- What the zeros (code 48) of a number of three digits add up to.
local ZEROS = 48 * (64 * 64 + 64 + 1)
-- '%d' takes half the time of '%.0f', but holds 2^53 only where C's long has 64 bits.
local D = format('%d', MAX_COUNT) == '9007199254740991' and '%d' or '%.0f'
local TOKENS, WHOLE_TOKENS = 't1:' .. D .. ':' .. D .. ':' .. D, 't1:' .. D .. ':0:1'
local FIRST_LEVEL, NEXT_LEVEL = 'l1:' .. D .. ':' .. D .. ':' .. D, ':' .. D .. ':' .. D
-- Levels that a bucket has at most.
local MAX_LEVELS = 8
local WINDOW = '1:' .. D .. ':' .. D .. ':' .. D

local raw
if ARGV[1] == '' then
  local time = call('TIME')
  raw = time[1] * 1000000 + time[2]
else
  raw = tonumber(ARGV[1])
end
local now = raw
local seen = tonumber(ARGV[2])
if raw < seen and seen - raw <= MAX_STEP then now = seen end
local countDenied = ARGV[3] == '1'
local steps = ARGV[4]

local values = call('MGET', unpack(KEYS, 1, min(CHUNK, #KEYS)))
for first = CHUNK + 1, #KEYS, CHUNK do
  local more = call('MGET', unpack(KEYS, first, min(first + CHUNK - 1, #KEYS)))
  for i = 1, #more do values[first + i - 1] = more[i] end
end

-- The running state of each key that was looked at, and whether it must be stored.
local unit, whole, part, changed = {}, {}, {}, {}
-- When what is stored ends, as a key expires.
local storedEnds = {}
-- Of a bucket with levels: the depth up to which the one in `whole` holds, nil for any; the deeper ones, the next first, as when they are full and up
-- to which depth they hold, nil for any; and those before, the deepest first, as how much earlier than `whole` they are full and up to which
-- depth they hold. See keepAbove.
local upTo, above, beneath = {}, {}, {}

-- The window of a calendar that holds now, and the end of the next one. Returns whether it was sent.
local function pickWindow(ask, at)
  local first = at
  while first < at + 3 and now >= tonumber(ARGV[first + 1]) do first = first + 1 end
  local start = tonumber(ARGV[first])
  if first == at + 3 or now < start then return false end
  ask.start, ask.unit, ask.nextEnds = start, start - tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])
  return true
end

local asks = {}
local argument = 5
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
  ask.debt, ask.debtCarry = ask.fill, ask.fillCarry
  if what % 20 >= 10 then
    ask.debt, ask.debtCarry = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
    argument = argument + 2
    ask.owing = true
  end
  if ask.what == 4 then
    ask.what, ask.ofWindow = 2, tonumber(ARGV[argument])
    argument = argument + 1
  end
  ask.countsDenied = countDenied and ask.unit < 0 and not ask.owing and ask.fillCarry == 0
  if what >= 20 then
    if not pickWindow(ask, argument) then return { now } end
    argument = argument + 5
  elseif ask.unit < 0 then
    ask.start = now - now % -ask.unit
    ask.nextEnds = ask.start - 2 * ask.unit
  end
end

-- PXAT is exact, where PX would count from whenever Redis last looked at its clock. A test's clock is not Redis's and may stand
-- still: there keys outlive their buckets.
local stepFrom, stepTo, expiry = 0, 0, nil
-- `stored` is when what is stored ends, if it is a bucket or window.
local function store(k, value, ends, stored)
  if ARGV[1] ~= '' then
    call('SET', KEYS[k], value, 'PX', format(D, floor((ends - raw) / 1000) + 60000))
    return
  end
  if ends < stepFrom or ends >= stepTo then
    stepFrom = ends - ends % EXPIRY_STEP
    stepTo = stepFrom + EXPIRY_STEP
    expiry = format(D, stepTo / 1000 + 1)
  end
  if stored and stored >= stepFrom and stored < stepTo then
    call('SET', KEYS[k], value, 'KEEPTTL')
  else
    call('SET', KEYS[k], value, 'PXAT', expiry)
  end
end

-- Of buckets with levels; they stand in take-levels.lua.
local keepAbove, loadLevels, levelsOf

-- Reads what is stored. A number beyond 2^53-1, or a carry of a whole microsecond, was not written by weir, but something was: a bucket is then
-- empty, and the window of the ask used up, where absent would be full. No number that goes on to the reply is larger, either.
local function load(k, ask)
  local value = values[k]
  if value then
    local form, a, b, c = match(value, '^([twd])1:(%d+):(%d+):(%d+)$')
    a, b, c = tonumber(a), tonumber(b), tonumber(c)
    if form == 't' and c > 0 then
      if a > MAX_COUNT or b >= c or c > MAX_COUNT then a, b, c = MAX_COUNT, 0, 1 end
      unit[k], whole[k], part[k], storedEnds[k] = c, a, b, a
      return
    elseif form and form ~= 't' and c > 0 then
      local ends = a + c
      if ends > MAX_COUNT or b > MAX_COUNT then
        form, a, b, c, ends = 'w', ask.start or 0, MAX_COUNT, ask.unit < 0 and -ask.unit or 1, nil
        changed[k] = ask.unit < 0 or nil
      end
      unit[k], whole[k], part[k], storedEnds[k] = -c, a, form == 'd' and -b or b, ends
      return
    elseif not form and loadLevels(k, value, ask) then
      return
    end
  end
  unit[k], whole[k], part[k] = 0, 0, 0
end

-- Whether more was taken than a bucket holds.
local function overdrawn(w, c, ask)
  local empty = now + ask.fill
  return w > empty or (w == empty and c > ask.fillCarry)
end

-- Whether more was taken than the deepest debt allows, which is none for most.
local function tooDeep(w, c, ask)
  local lowest = now + ask.debt
  return w > lowest or (w == lowest and c > ask.debtCarry)
end

-- A token bucket's state in the terms of an ask: between full (now) and empty or deepest debt (now + time to fill), in parts of 1/q. The third result
-- tells that it was below that and must be stored within the bounds even if the request changes nothing, or the bucket would be
-- brought there at each look and stay.
local function inBounds(u, w, c, ask)
  if u <= 0 then return now, 0, false end
  if u ~= ask.unit then
    if c > 0 then w = w + 1 end
    c = 0
  end
  if w < now then return now, 0, false end
  if tooDeep(w, c, ask) then return now + ask.debt, ask.debtCarry, true end
  return w, c, false
end

-- A state once the hits of an ask were taken.
local function taken(w, c, ask)
  w, c = w + ask.cost, c + ask.costCarry
  if c >= ask.unit then return w + 1, c - ask.unit end
  return w, c
end

local reply = { now }
local filled = 1

-- The reply to a run of `count`.
local function answer(count, passed, found)
  if count > 1 then
    reply[filled + 1], reply[filled + 2] = passed, found
    filled = filled + 2
  else
    filled = filled + 1
    reply[filled] = passed == 0 and -1 - found or found
  end
end

-- The most frequent step by far, without the tables: one take from a token bucket that no other step names. Returns whether it was one; false
-- leaves it to the general way.
local function takeAlone(k, ask)
  local q = ask.unit
  if q <= 0 or ask.what ~= 0 then return false end
  local value, w, c, ends = values[k], now, 0, nil
  if value then
    if q == 1 then
      ends = tonumber(match(value, '^t1:(%d+):0:1$'))
    else
      local a, b, unitOf = match(value, '^t1:(%d+):(%d+):(%d+)$')
      if tonumber(unitOf) ~= q then return false end
      ends, c = tonumber(a), tonumber(b)
      if c >= q then return false end
    end
    if not ends then return false end
    if ends < now then c = 0 else w = ends end
  end
  local empty = now + ask.fill
  if w > empty or (w == empty and c > ask.fillCarry) then return false end
  local nextWhole, nextCarry = w + ask.cost, c + ask.costCarry
  if nextCarry >= q then nextWhole, nextCarry = nextWhole + 1, nextCarry - q end
  filled = filled + 1
  if nextWhole > empty or (nextWhole == empty and nextCarry > ask.fillCarry) then
    reply[filled] = now - w - 1
  else
    reply[filled] = w - now
    if q == 1 then
      store(k, format(WHOLE_TOKENS, nextWhole), nextWhole, ends)
    else
      store(k, format(TOKENS, nextWhole, nextCarry, q), nextWhole, ends)
    end
  end
  if q > 1 then
    filled = filled + 1
    reply[filled] = c
  end
  return true
end

-- A run on a token bucket: requests of one item, so that nothing need be taken back.
local function runTokens(k, ask, count)
  local w, c, changes = inBounds(unit[k], whole[k], part[k], ask)
  if changes then keepAbove(k, whole[k], part[k], ask) end
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
  -- Where nothing was taken, the rounding of a mere look is forgotten.
  if changes then unit[k], whole[k], part[k], changed[k] = ask.unit, w, c, true end
  answer(count, passed, foundWhole - now)
  if ask.unit > 1 then
    filled = filled + 1
    reply[filled] = foundCarry
  end
end

-- The count of the window that holds now; a debt is stored as hits of the next window. Then, unless the window itself was stored, whether it is in a
-- debt that this ask, which has none, may not change.
local function inWindow(u, w, c, ask)
  local start, hits = ask.start, math.abs(c)
  if u == ask.unit and w == start then
    -- Another limit may have been in force, or denied hits counted: none of it makes a deeper debt.
    return ask.owing and min(hits, ask.debt) or hits
  end
  if u < 0 and w == start - ask.unit then
    if ask.owing then return min(ask.fill + hits, ask.debt), false end
    if c < 0 then return MAX_COUNT, true end
  end
  return 0, false
end

-- The count after the hits of an ask, whether they are over the limit, and whether that changes what is stored.
local function counted(count, ask, hits, owes)
  if ask.what == 2 then
    if owes or (ask.ofWindow and ask.ofWindow ~= ask.start) then return count, false, false end
    local left = math.max(0, count - hits)
    return left, false, left ~= count
  end
  local limited = count + ((ask.owing and hits == 0) and 1 or hits) > ask.fill
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
