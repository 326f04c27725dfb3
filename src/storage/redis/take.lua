-- Decides a batch of requests on token buckets and windows.
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
--         4  steps, in the order in which they are decided, nine characters each: three numbers of three characters, each character a
--            digit from 0 (code 48) to 63 (code 111) of a number to the base 64.
--              key ask count   a run: `count` requests, equal and each of this one item; indexes count from 1. 0 stands for a run of one on
--                              a bucket that no other step names
--              0 items 0       a request of several items; for each item a step `key ask 0` follows
--         then for each ask 7 numbers:
--              what        0 take, 1 peek (hits 0), 2 refund (its runs have a count of 1)
--              enforcement 0 enforce, 1 observe, 2 quota; a request of one item does not look at it
--              unit        q of a token bucket's rate; minus the length in microseconds of a window
--              fill        whole microseconds an empty bucket needs to fill; requests per unit of a window
--              fillCarry   its carry in 1/q microseconds; 0
--              cost        whole microseconds the hits cost, those of one token for a peek; hits on a window
--              costCarry   its carry; 0
-- Reply   flat list of integers: the time used in microseconds, then in order
--         for a run of one: the state found, as -1 - state if the request was limited
--         for a longer run: how many were not limited, which are the first, then the state that the first one found
--         for each item of a request of several: 1 if limited else 0; time at which the bucket is full, carry -- or start of the
--           window, count
--         The state found is the microseconds until a token bucket is full, followed by its carry if q > 1; the count of a window.
--
-- Value   t1:<time at which the bucket is full>:<carry>:<q>   w1:<start of the window>:<count>:<its length>
--         Anything else under a key is treated as absent, so that two versions can share one Redis.
--         A key expires when its bucket is full or its window has ended, never sooner, at most half a second later (a minute later
--         on a test's clock).

local call, byte, match, format, floor = redis.call, string.byte, string.match, string.format, math.floor
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
local WINDOW = 'w1:' .. D .. ':' .. D .. ':' .. D

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

local values
if #KEYS <= CHUNK then
  values = call('MGET', unpack(KEYS))
else
  values = {}
  for first = 1, #KEYS, CHUNK do
    local some = call('MGET', unpack(KEYS, first, math.min(first + CHUNK - 1, #KEYS)))
    for i = 1, #some do values[first + i - 1] = some[i] end
  end
end

-- The running state of each key that was looked at, and whether it must be stored.
local unit, whole, part, changed = {}, {}, {}, {}
-- When what is stored ends, as a key expires.
local storedEnds = {}

local asks = {}
for at = 5, #ARGV, 7 do
  asks[#asks + 1] = {
    what = tonumber(ARGV[at]),
    enforcement = tonumber(ARGV[at + 1]),
    unit = tonumber(ARGV[at + 2]),
    fill = tonumber(ARGV[at + 3]),
    fillCarry = tonumber(ARGV[at + 4]),
    cost = tonumber(ARGV[at + 5]),
    costCarry = tonumber(ARGV[at + 6]),
  }
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

-- Reads what is stored.
local function load(k)
  local value = values[k]
  if value then
    local a = match(value, '^t1:(%d+):0:1$')
    if a then
      a = tonumber(a)
      unit[k], whole[k], part[k], storedEnds[k] = 1, a, 0, a
      return
    end
    local form, b, c
    form, a, b, c = match(value, '^([tw])1:(%d+):(%d+):(%d+)$')
    if form then
      a, b, c = tonumber(a), tonumber(b), tonumber(c)
      if form == 't' then
        unit[k], whole[k], part[k], storedEnds[k] = c, a, b, a
      else
        unit[k], whole[k], part[k], storedEnds[k] = -c, a, b, a + c
      end
      return
    end
  end
  unit[k], whole[k], part[k] = 0, 0, 0
end

-- The state of a token bucket in the terms of an ask: between full (now) and empty (now + time to fill), in parts of 1/q. The third result
-- tells that it was below empty and must be stored within the bounds even if the request changes nothing, or the bucket would be
-- brought to empty at each look and stay there.
local function read(k, ask)
  local u, w, c = unit[k], whole[k], part[k]
  if u <= 0 then return now, 0, false end
  if u ~= ask.unit then
    if c > 0 then w = w + 1 end
    c = 0
  end
  if w < now then return now, 0, false end
  local empty = now + ask.fill
  if w > empty or (w == empty and c > ask.fillCarry) then return empty, ask.fillCarry, true end
  return w, c, false
end

local reply = { now }
local filled = 1

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
  if count == 0 then count = 1 end
  local q, fillCarry, cost, costCarry = ask.unit, ask.fillCarry, ask.cost, ask.costCarry
  local w, c, repaired = read(k, ask)
  local foundWhole, foundCarry = w, c
  local passed, took = 0, repaired
  if ask.what == 2 then
    passed = 1
    if (cost > 0 or costCarry > 0) and (w > now or c > 0) then
      w, c = w - cost, c - costCarry
      if c < 0 then w, c = w - 1, c + q end
      if w < now then w, c = now, 0 end
      took = true
    end
  else
    local empty = now + ask.fill
    local nextWhole, nextCarry = w + cost, c + costCarry
    if nextCarry >= q then nextWhole, nextCarry = nextWhole + 1, nextCarry - q end
    while passed < count and (nextWhole < empty or (nextWhole == empty and nextCarry <= fillCarry)) do
      if ask.what == 1 then
        passed = count
        break
      end
      passed, took = passed + 1, true
      w, c = nextWhole, nextCarry
      nextWhole, nextCarry = w + cost, c + costCarry
      if nextCarry >= q then nextWhole, nextCarry = nextWhole + 1, nextCarry - q end
    end
  end
  -- Where nothing was taken, the rounding of a mere look is forgotten.
  if took then unit[k], whole[k], part[k], changed[k] = q, w, c, true end
  local found = foundWhole - now
  filled = filled + 1
  if count > 1 then
    reply[filled] = passed
    filled = filled + 1
    reply[filled] = found
  else
    reply[filled] = passed == 0 and -1 - found or found
  end
  if q > 1 then
    filled = filled + 1
    reply[filled] = foundCarry
  end
end

local function startWindow(k, ask)
  local start = now - now % -ask.unit
  if unit[k] ~= ask.unit or whole[k] ~= start then return start, 0 end
  return start, part[k]
end

local function runHits(k, ask, count)
  local hits, limit = ask.cost, ask.fill
  local start, found = startWindow(k, ask)
  local counted, passed = found, 0
  if ask.what == 2 then
    counted, passed = math.max(0, found - hits), 1
  else
    for _ = 1, math.max(count, 1) do
      local limited = counted + hits > limit
      if not limited then passed = passed + 1 end
      if countDenied or not limited then counted = math.min(counted + hits, MAX_COUNT) end
    end
  end
  if counted ~= found or (hits > 0 and (countDenied or passed > 0) and ask.what ~= 2) then
    unit[k], whole[k], part[k], changed[k] = ask.unit, start, counted, true
  end
  filled = filled + 1
  if count > 1 then
    reply[filled] = passed
    filled = filled + 1
    reply[filled] = found
  else
    reply[filled] = passed == 0 and -1 - found or found
  end
end

-- Requests of several items. They apply in order on the running state; what a denied request did is taken back.

local dirty, savedUnit, savedWhole, savedPart = {}, {}, {}, {}

local function restore(k)
  unit[k], whole[k], part[k] = savedUnit[k], savedWhole[k], savedPart[k]
  dirty[k] = false
end

local function readTokens(k, ask)
  local w, c, repaired = read(k, ask)
  unit[k], whole[k], part[k] = ask.unit, w, c
  if repaired and not dirty[k] then
    savedUnit[k], savedWhole[k], savedPart[k] = ask.unit, w, c
    changed[k] = true
  end
end

local function takeTokens(k, ask)
  readTokens(k, ask)
  if ask.what == 2 then
    if (ask.cost == 0 and ask.costCarry == 0) or (whole[k] == now and part[k] == 0) then return false end
    local w, c = whole[k] - ask.cost, part[k] - ask.costCarry
    if c < 0 then w, c = w - 1, c + ask.unit end
    if w < now then w, c = now, 0 end
    whole[k], part[k], dirty[k] = w, c, true
    return false
  end
  local w, c = whole[k] + ask.cost, part[k] + ask.costCarry
  if c >= ask.unit then w, c = w + 1, c - ask.unit end
  local empty = now + ask.fill
  if w > empty or (w == empty and c > ask.fillCarry) then return true end
  if ask.what == 0 then whole[k], part[k], dirty[k] = w, c, true end
  return false
end

local function countHits(k, ask, hits, refund)
  whole[k], part[k] = startWindow(k, ask)
  unit[k] = ask.unit
  local before = part[k]
  if refund then
    part[k] = math.max(0, before - hits)
    if part[k] ~= before then dirty[k] = true end
    return false
  end
  local after = before + hits
  local limited = after > ask.fill
  if hits > 0 and (countDenied or not limited) then
    part[k], dirty[k] = math.min(after, MAX_COUNT), true
  end
  return limited
end

local function report(slot, limited, k)
  reply[slot] = limited and 1 or 0
  reply[slot + 1] = whole[k]
  reply[slot + 2] = part[k]
end

local function decide(ks, items)
  local enforceLimited, quotaItems, quotaLimited = false, 0, 0
  for i = 1, #ks do
    local k = ks[i]
    savedUnit[k], savedWhole[k], savedPart[k] = unit[k], whole[k], part[k]
    dirty[k] = false
  end
  local slot = filled + 1
  for i = 1, #ks do
    local k, ask = ks[i], items[i]
    local limited
    if ask.unit < 0 then
      limited = countHits(k, ask, ask.cost, ask.what == 2)
    else
      limited = takeTokens(k, ask)
    end
    report(slot, limited, k)
    slot = slot + 3
    if ask.enforcement == 2 then
      quotaItems = quotaItems + 1
      if limited then quotaLimited = quotaLimited + 1 end
    elseif limited and ask.enforcement == 0 then
      enforceLimited = true
    end
  end
  if enforceLimited or (quotaItems > 0 and quotaItems == quotaLimited) then
    for i = 1, #ks do restore(ks[i]) end
    slot = filled + 1
    for i = 1, #ks do
      local k, ask = ks[i], items[i]
      local limited = reply[slot] == 1
      if ask.unit < 0 then
        local hits = (countDenied and ask.what ~= 2) and ask.cost or 0
        countHits(k, ask, hits, false)
        report(slot, limited, k)
      elseif not limited then
        readTokens(k, ask)
        report(slot, false, k)
      end
      slot = slot + 3
    end
  end
  filled = filled + 3 * #ks
  -- An untouched bucket goes back to how it was stored: the rounding of a mere look is undone.
  for i = 1, #ks do
    local k = ks[i]
    if dirty[k] then changed[k] = true else restore(k) end
  end
end

local function step(at)
  local a, b, c, d, e, f = byte(steps, at, at + 5)
  return (a * 64 + b) * 64 + c - ZEROS, (d * 64 + e) * 64 + f - ZEROS
end

local at = 1
while at <= #steps do
  -- The text of step(), spared a call.
  local a, b, c, d, e, f, g, h, i = byte(steps, at, at + 8)
  local k, n = (a * 64 + b) * 64 + c - ZEROS, (d * 64 + e) * 64 + f - ZEROS
  at = at + 9
  if k > 0 then
    local count = (g * 64 + h) * 64 + i - ZEROS
    local ask = asks[n]
    if count > 0 or not takeAlone(k, ask) then
      if not unit[k] then load(k) end
      if ask.unit > 0 then runTokens(k, ask, count) else runHits(k, ask, count) end
    end
  else
    local ks, items = {}, {}
    for i = 1, n do
      local key, ask = step(at)
      at = at + 9
      if not unit[key] then load(key) end
      ks[i], items[i] = key, asks[ask]
    end
    decide(ks, items)
  end
end

for k in pairs(changed) do
  local u, w, c = unit[k], whole[k], part[k]
  if u < 0 then
    if c > 0 then
      store(k, format(WINDOW, w, c, -u), w - u, storedEnds[k])
    elseif values[k] then
      call('DEL', KEYS[k])
    end
  elseif w > now or c > 0 then
    store(k, u == 1 and format(WHOLE_TOKENS, w) or format(TOKENS, w, c, u), w, storedEnds[k])
  elseif values[k] then
    call('DEL', KEYS[k])
  end
end

return reply
