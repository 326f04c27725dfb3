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
--         4  number of asks, then for each ask 7 numbers:
--              what        0 take, 1 peek (hits 0), 2 refund
--              enforcement 0 enforce, 1 observe, 2 quota
--              unit        q of a token bucket's rate; minus the length in microseconds of a window
--              fill        whole microseconds an empty bucket needs to fill; requests per unit of a window
--              fillCarry   its carry in 1/q microseconds; 0
--              cost        whole microseconds the hits cost, those of one token for a peek; hits on a window
--              costCarry   its carry; 0
--         then for each request: its number of items, then for each item: index of its key, index of its ask (from 1)
-- Reply   flat list of integers: the time used in microseconds, then for each item of each request in order:
--         1 if limited else 0; time at which the bucket is full, carry -- or start of the window, count
--
-- Value   t1:<time at which the bucket is full>:<carry>:<q>   w1:<start of the window>:<count>:<its length>
--         Anything else under a key is treated as absent, so that two versions can share one Redis.
--         A key expires when its bucket is full or its window has ended, never sooner (a minute later on a test's clock).

local MAX_COUNT = 9007199254740991
-- unpack() of more values than this may overflow the Lua stack.
local CHUNK = 1000
-- A clock that stepped back by no more than this is waited for.
local MAX_STEP = 1000000

local raw
if ARGV[1] == '' then
  local time = redis.call('TIME')
  raw = time[1] * 1000000 + time[2]
else
  raw = tonumber(ARGV[1])
end
local now = raw
local seen = tonumber(ARGV[2])
if raw < seen and seen - raw <= MAX_STEP then now = seen end
local countDenied = ARGV[3] == '1'

-- The running state of each key, and what it was before the request at hand.
local unit, whole, part, stored, dirty, changed = {}, {}, {}, {}, {}, {}
local savedUnit, savedWhole, savedPart = {}, {}, {}

for first = 1, #KEYS, CHUNK do
  local last = math.min(first + CHUNK - 1, #KEYS)
  local values = redis.call('MGET', unpack(KEYS, first, last))
  for i = first, last do
    unit[i], whole[i], part[i] = 0, 0, 0
    local value = values[i - first + 1]
    if value then
      stored[i] = true
      local form, a, b, c = string.match(value, '^([tw])1:(%d+):(%d+):(%d+)$')
      if form then
        whole[i], part[i] = tonumber(a), tonumber(b)
        unit[i] = form == 't' and tonumber(c) or -tonumber(c)
      end
    end
  end
end

local asks = {}
local at = 5
for i = 1, tonumber(ARGV[4]) do
  asks[i] = {
    what = tonumber(ARGV[at]),
    enforcement = tonumber(ARGV[at + 1]),
    unit = tonumber(ARGV[at + 2]),
    fill = tonumber(ARGV[at + 3]),
    fillCarry = tonumber(ARGV[at + 4]),
    cost = tonumber(ARGV[at + 5]),
    costCarry = tonumber(ARGV[at + 6]),
  }
  at = at + 7
end

local function restore(k)
  unit[k], whole[k], part[k] = savedUnit[k], savedWhole[k], savedPart[k]
  dirty[k] = false
end

-- Brings a state into the terms of the ask: between full (now) and empty (now + time to fill).
local function readTokens(k, ask)
  if unit[k] <= 0 then
    unit[k], whole[k], part[k] = ask.unit, now, 0
    return
  end
  if unit[k] ~= ask.unit then
    if part[k] > 0 then whole[k] = whole[k] + 1 end
    part[k], unit[k] = 0, ask.unit
  end
  local empty = now + ask.fill
  if whole[k] > empty or (whole[k] == empty and part[k] > ask.fillCarry) then
    whole[k], part[k] = empty, ask.fillCarry
    -- Stored even if the request changes nothing, or the bucket would be brought to empty at each look and stay there.
    if not dirty[k] then
      savedUnit[k], savedWhole[k], savedPart[k] = unit[k], whole[k], part[k]
      changed[k] = true
    end
  elseif whole[k] < now then
    whole[k], part[k] = now, 0
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
  local start = now - now % -ask.unit
  if unit[k] ~= ask.unit or whole[k] ~= start then
    unit[k], whole[k], part[k] = ask.unit, start, 0
  end
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

local reply = { now }
local filled = 1
local function report(slot, limited, k)
  reply[slot] = limited and 1 or 0
  reply[slot + 1] = whole[k]
  reply[slot + 2] = part[k]
end

local function decide(first, count)
  local last = first + 2 * (count - 1)
  local enforceLimited, quotaItems, quotaLimited = false, 0, 0
  for i = first, last, 2 do
    local k = tonumber(ARGV[i])
    savedUnit[k], savedWhole[k], savedPart[k] = unit[k], whole[k], part[k]
    dirty[k] = false
  end
  local slot = filled + 1
  for i = first, last, 2 do
    local k, ask = tonumber(ARGV[i]), asks[tonumber(ARGV[i + 1])]
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
    for i = first, last, 2 do restore(tonumber(ARGV[i])) end
    slot = filled + 1
    for i = first, last, 2 do
      local k, ask = tonumber(ARGV[i]), asks[tonumber(ARGV[i + 1])]
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
  filled = filled + 3 * count
  -- An untouched bucket goes back to how it was stored: the rounding of a mere look is undone.
  for i = first, last, 2 do
    local k = tonumber(ARGV[i])
    if dirty[k] then changed[k] = true else restore(k) end
  end
end

while at <= #ARGV do
  local count = tonumber(ARGV[at])
  decide(at + 1, count)
  at = at + 1 + 2 * count
end

-- PXAT is exact, where PX would count from whenever Redis last looked at its clock. A test's clock is not Redis's and may stand
-- still: there keys outlive their buckets.
local function store(k, value, expiry)
  if ARGV[1] == '' then
    redis.call('SET', KEYS[k], value, 'PXAT', string.format('%.0f', math.floor(expiry / 1000) + 2))
  else
    redis.call('SET', KEYS[k], value, 'PX', string.format('%.0f', math.floor((expiry - raw) / 1000) + 60000))
  end
end

for k in pairs(changed) do
  if unit[k] < 0 then
    if part[k] > 0 then
      store(k, string.format('w1:%.0f:%.0f:%.0f', whole[k], part[k], -unit[k]), whole[k] - unit[k])
    elseif stored[k] then
      redis.call('DEL', KEYS[k])
    end
  elseif whole[k] > now or part[k] > 0 then
    store(k, string.format('t1:%.0f:%.0f:%.0f', whole[k], part[k], unit[k]), whole[k])
  elseif stored[k] then
    redis.call('DEL', KEYS[k])
  end
end

return reply
