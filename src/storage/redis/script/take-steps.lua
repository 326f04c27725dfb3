-- Third part of the script: the fast path, and the states of buckets. The header of take.lua describes the whole script.

-- Whether each ask has 7 numbers and `what` 0, so that all are plain takes. If not, `askAt` has the index of each ask. The fast path
-- decides no step of a call with a calendar, because a call that lacks the current window must not change anything.
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

-- Fast path: decides the leading steps that are takes or settlements on a bucket that no other step uses, and the starts and ends of
-- concurrent requests.
-- Most calls contain only such steps. The tables and functions of the general code cost more than the decision of one step.
local asked, size, fill, fillCarry, cost, costCarry, what, enforces, lifetime, held
-- Whether a settlement or a take with a hold is decided here; for settlements, `debt`, `useLasts` and `heldCost` as in the arguments.
local settles, isFastGroup, owing, debt, debtCarry, useLasts, heldCost

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
  local taken = settle(set, id, size, held, lifetime, full, heldCost)
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

-- The code below handles all calls.

-- Maximum time in which a bucket of any limit fills, in microseconds; MAX_FILL_MICROS in TypeScript.
local MAX_FILL = 3153600000000000

-- The running state of each key that was read, whether it must be stored, and the time at which the stored state ends.
local unit, whole, part, changed, storedEnds = {}, {}, {}, {}, {}

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

-- Returns a token bucket's state in the units of an ask (1/q). The state of another limit may be deeper than this ask allows, because a
-- changed limit reaches one server after another. Such a bucket has no tokens for this ask, but its state stays as it is: otherwise, the
-- server with the deeper limit would find new tokens. Only refunds make the time of a bucket earlier.
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

-- Reads the stored state. weir never writes a number above 2^53-1 or a carry of a whole microsecond. Such a value must not make the
-- bucket full, as an absent value does. A bucket then counts as empty, and a window as used up. This also bounds all numbers in the
-- reply.
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
      -- No limit has left this time, or the clock has. The bucket is empty, or at its maximum debt, and refills from now on.
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
    -- Once the window has begun, a debt is hits of that window.
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

