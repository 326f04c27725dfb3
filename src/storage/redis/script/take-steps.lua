-- Third part of the script: the fast path, and the states of buckets. The header of take.lua describes the whole script.

-- Whether each ask has 7 numbers and `what` 0, so that all are plain takes. If not, `askAt` has the index of each ask. The fast path
-- decides no step of a call with a calendar, because a call that lacks the current window must not change anything.
local isFast, isPlain, hasBuckets, askAt = true, #ARGV % 7 == 4, true, nil
for argument = 5, #ARGV, 7 do isPlain = isPlain and ARGV[argument] == '0' end
if not isPlain then
  hasBuckets, askAt = false, {}
  local argument = 5
  while argument <= #ARGV do
    local what = tonumber(ARGV[argument])
    local kind, flags, frees = what % 10, floor(what / 10) % 16, what >= 160
    askAt[#askAt + 1] = argument
    hasBuckets = hasBuckets or ARGV[argument + 2] ~= '0'
    isFast = isFast and flags % 4 < 2
    argument = argument + 7 + (flags % 2 == 1 and 2 or 0) + (flags >= 4 and 2 or 0) + (flags >= 8 and 1 or 0)
      + (frees and 4 or 0) + (kind > 3 and 1 or 0) + (kind == 4 and flags < 8 and 1 or 0) + (flags % 4 >= 2 and 5 or 0)
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

local reply, filled, at = { now }, 1, 1

-- Fast path: decides the leading steps that are takes or settlements on a bucket that no other step uses, and the starts and ends of
-- concurrent requests.
-- Most calls contain only such steps. The tables and functions of the general code cost more than the decision of one step.
local asked, size, fill, fillCarry, cost, costCarry, what, enforces, lifetime, held
-- Whether a settlement or a take with a hold is decided here; for settlements, `debt` and `useLasts` as in the arguments.
local settles, isFastGroup, owing, debt, debtCarry, useLasts

-- Settles a hold in a token bucket that no other step uses. Returns the state found, and the time at which the hold was taken, as in the
-- reply; nothing if the general code must decide.
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
  local taken = settle(set, id, size, held, lifetime, full)
  if taken < 0 then return found, carry, taken end
  if what == '83' or what == '93' then
    w, c = w + cost, c + costCarry
    if c >= size then w, c = w + 1, c - size end
    if w > lowest or (w == lowest and c > debtCarry) then w, c = lowest, debtCarry end
  else
    local back, depth = cost + min(0, full + useLasts - now), w + now - taken
    -- See takeTokens about a debt that the maximum has cut off.
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

-- Asks that the fast path has read, because starts and ends of requests often take turns.
local parsed = {}

local function parseAsk(n)
  local first = isPlain and 7 * n - 2 or askAt[n]
  local what, size = ARGV[first], tonumber(ARGV[first + 2])
  local owing = what == '94' or what == '93'
  local settles = what == '84' or what == '94' or size > 0 and (what == '83' or what == '93')
  local debt = owing and 7 or 3
  local hold = (owing or what == '50') and 9 or 7
  local ask = {
    what, size, tonumber(ARGV[first + 3]), tonumber(ARGV[first + 4]), tonumber(ARGV[first + 5]), tonumber(ARGV[first + 6]),
    ARGV[first + 1] == '0' or ARGV[first + 1] == '2', settles, size >= 0 and (settles or what == '40' or what == '50'), owing,
    tonumber(ARGV[first + debt]), tonumber(ARGV[first + debt + 1]),
    tonumber(ARGV[first + hold]), tonumber(ARGV[first + hold + 1]), tonumber(ARGV[first + hold + 2]),
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
    what, size, fill, fillCarry, cost, costCarry, enforces, settles, isFastGroup, owing, debt, debtCarry, lifetime, held, useLasts =
      unpack(ask, 1, 15)
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
    -- The end of a request does not need the number of slots.
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
      place(set, ids + ID * earlier, size, held, lifetime, full)
    end
  else
    filled = filled + 1
    reply[filled] = found
    for id = ids, after - 1, ID do
      if settles then
        filled = filled + 1
        reply[filled], passed = settle(set, id, 0, held, lifetime)
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
  return reply
end

-- The code below handles all calls.

local NEXT_LEVEL, OVER = ':' .. D .. ':' .. D, 'o' .. STATE .. ':' .. D
-- Maximum number of levels of a bucket.
local MAX_LEVELS = 8
-- Lifetime of a surplus, in microseconds; SURPLUS_LIFETIME_MICROS in TypeScript.
local OVER_LASTS = 86400000000
-- Upper bounds of any surplus: microseconds of a token bucket, and hits of a window.
local MAX_OVER, MAX_OVER_HITS = 1e15, 4294967296
-- Larger than any other number that a run returns.
local PAST_FULL = 4e15

-- The running state of each key that was read, and whether it must be stored.
local unit, whole, part, changed = {}, {}, {}, {}
-- The time at which the stored state ends, and the expiry of a surplus that this call created.
local storedEnds, overEnds = {}, {}
-- For a bucket with levels, see keepAbove. `upTo`: maximum depth of the level in `whole`, nil for any depth. `above`: the deeper levels,
-- nearest first, each with the time at which it is full and its maximum depth (nil for any). `beneath`: the shallower levels, deepest
-- first, each with the time by which it is full earlier than `whole`, and its maximum depth. `reached`: the time at which levels that
-- are no longer needed would be full.
local upTo, above, beneath, reached = {}, {}, {}, {}

-- Selects the calendar window that contains now, and the end of the next window. Returns false if the caller did not send that window.
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
  local flags = floor(what / 10) % 16
  ask.debt, ask.debtCarry = ask.fill, ask.fillCarry
  if flags % 2 == 1 then
    ask.debt, ask.debtCarry = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
    argument = argument + 2
    ask.owing = true
  end
  if flags >= 4 then
    ask.lifetime, ask.held = tonumber(ARGV[argument]), tonumber(ARGV[argument + 1])
    ask.hasHold, ask.isOldest = true, ask.what == 6
    ask.settles = flags >= 8 or ask.isOldest
    ask.hitCost, ask.hitCarry = ask.cost, ask.costCarry
    argument = argument + 2
  end
  if flags >= 8 then
    ask.useLasts = tonumber(ARGV[argument])
    argument = argument + 1
  end
  if what >= 160 then
    ask.hasHold, ask.freed = true, {
      what = 2, settles = true, owing = ask.owing, unit = ask.unit, fill = ask.fill, fillCarry = ask.fillCarry,
      debt = ask.debt, debtCarry = ask.debtCarry, lifetime = 0, held = tonumber(ARGV[argument + 2]), over = tonumber(ARGV[argument + 3]),
      hitCost = tonumber(ARGV[argument]), hitCarry = tonumber(ARGV[argument + 1]),
    }
    argument = argument + 4
  end
  ask.idLength = flags >= 8 and ask.unit ~= 0 and ID + 9 or ID
  ask.over = 0
  if ask.what > 3 then
    ask.over = tonumber(ARGV[argument])
    argument = argument + 1
    if ask.what == 4 and not ask.settles then
      ask.mark = tonumber(ARGV[argument])
      argument = argument + 1
    end
    ask.what = 2
  end
  ask.countsDenied = countDenied and ask.unit < 0 and not ask.owing and ask.fillCarry == 0
  if flags % 4 >= 2 then
    if not pickWindow(ask, argument) then return { now } end
    argument = argument + 5
  elseif ask.unit < 0 then
    ask.start = now - now % -ask.unit
    ask.nextEnds = ask.start - 2 * ask.unit
  end
end

-- Functions for buckets with levels, defined in take-levels.lua.
local keepAbove, loadLevels, levelsOf

-- Reads the stored state. weir never writes a number above 2^53-1 or a carry of a whole microsecond. Such a value must not make the
-- bucket full, as an absent value does. A bucket then counts as empty, a window as used up, and a surplus as none. This also bounds all
-- numbers in the reply.
local function load(k, ask)
  local value = values[k]
  if value then
    local form, a, b, c = match(value, '^([twdg])1:(%d+):(%d+):(%d+)$')
    a, b, c = tonumber(a), tonumber(b), tonumber(c)
    if form == 't' and c > 0 then
      if a > MAX_COUNT or b >= c or c > MAX_COUNT then a, b, c = MAX_COUNT, 0, 1 end
      unit[k], whole[k], part[k], storedEnds[k] = c, a, b, a
      -- Only a bucket with a surplus may be full before now.
      if a < now then whole[k], part[k] = now, 0 end
      return
    elseif form == 'g' and (a > now or b > MAX_OVER_HITS) then
      -- Ignored: the window has not begun, or weir did not write this value.
    elseif form and form ~= 't' and c > 0 then
      local ends = a + c
      if ends > MAX_COUNT or b > MAX_COUNT then
        form, a, b, c, ends = 'w', ask.start or 0, MAX_COUNT, ask.unit < 0 and -ask.unit or 1, nil
        changed[k] = ask.unit < 0 or nil
      end
      -- Once the window has begun, a debt is hits of that window.
      if form == 'g' or form == 'd' and a > now then b = -b end
      unit[k], whole[k], part[k], storedEnds[k] = -c, a, b, ends
      return
    elseif not form then
      local ends, over, carry, q = match(value, '^o1:(%d+):(%d+):(%d+):(%d+)$')
      ends, over, carry, q = tonumber(ends), tonumber(over), tonumber(carry), tonumber(q)
      if q and over < MAX_OVER and carry < q and q <= MAX_COUNT and ends > now and ends <= MAX_COUNT then
        unit[k], whole[k], part[k], storedEnds[k] = q, now - over, carry, ends
        return
      elseif loadLevels(k, value, ask) then
        return
      end
    end
  end
  unit[k], whole[k], part[k] = 0, 0, 0
end

-- Returns whether a take exceeds the tokens of a bucket. Hits above the capacity never fit, even into a surplus.
local function overdrawn(w, c, ask)
  local empty = now + ask.fill
  return w > empty or (w == empty and c > ask.fillCarry) or ask.cost > ask.fill
end

-- Returns whether a state exceeds the maximum debt, or the capacity if the rate has no debt.
local function tooDeep(w, c, ask)
  local lowest = now + ask.debt
  return w > lowest or (w == lowest and c > ask.debtCarry)
end

-- Returns a token bucket's state in the units of an ask (1/q), at most empty or at the maximum debt. A surplus is a time before now.
-- The third result is true if the state was beyond that bound. It must then be stored even if the request has no effect. Otherwise,
-- each call would limit it to the bound again, and the bucket would never refill.
local function inBounds(u, w, c, ask)
  if u <= 0 then return now, 0, false end
  if u ~= ask.unit then
    if c > 0 then w = w + 1 end
    c = 0
  end
  if tooDeep(w, c, ask) then return now + ask.debt, ask.debtCarry, true end
  return w, c, false
end

-- Returns the state after the hits of an ask were taken.
local function taken(w, c, ask)
  w, c = w + ask.cost, c + ask.costCarry
  if c >= ask.unit then return w + 1, c - ask.unit end
  return w, c
end
