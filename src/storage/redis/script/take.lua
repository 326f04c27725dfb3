-- Decides a batch of requests on token buckets and windows. First part of the script: arguments and states; runs follow in
-- take-runs.lua, levels in take-levels.lua, groups in take-groups.lua.
--
-- Why a script: reading the clock, reading the buckets, deciding and writing must be one step, or two servers that share
-- this Redis would both hand out the last token. A request is decided whole or not at all, for the same reason.
--
-- The arithmetic is that of src/limiter/decide.ts, where it is explained; costs are computed there (exactly, beyond 2^53),
-- here they are only added, carried, compared and stored. All numbers are whole and below 2^53.
--
-- KEYS    each bucket of the batch once
-- ARGV    1  '' to go by the clock of this Redis; else the time in microseconds: behind a + that of a caller, whose clock may be up to
--            MAX_STEP from that of others (caller-clock.ts), without one a test's
--         2  the latest time, in microseconds, that the caller has seen from this Redis, or 0
--         3  '1' if windows count the hits of denied requests, '0' if not
--         4  steps, in the order in which they are decided: numbers of three characters, each character a digit from 0 (code 48) to 63
--            (code 111) of a number to the base 64.
--              key ask count   a run: `count` requests, equal and each of this one item; indexes count from 1. 0 stands for a run of one on
--                              a bucket that no other step names
--              0 items count   a group: `count` equal requests of so many items; for each item `key ask` follows
--         then for each ask 7 numbers, and more where `what` says so:
--              what        0 take, 1 peek (hits 0), 2 refund (never in a run), 3 charge (never in a run), 4 refund that undoes a take (never in a run),
--                          5 refund that may go past full (never in a run);
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
--            over, of a refund that may go past full or undoes a take: how far, in whole microseconds; hits below 0 of a window
--            mark, of a refund that undoes a take: TakeOutcome.undoMark
--            calendar, 5 numbers: boundaries of four windows in a row, the second of which holds the caller's idea of the time
-- Reply   the error NOTIME where this Redis does not tell scripts the time; nothing was done then. Else
--         flat list of integers: the time used in microseconds, alone if it is in none of the first three windows sent of a calendar: then
--         nothing was decided, and the caller, who now knows the time, asks again with others. Else in order
--         for a run of one: the state found, as -1 - state if the request was limited
--         for a longer run: how many were not limited, which are the first, then the state that the first one found
--         for each item of a group: the state found, as unit (0: nothing stored), time at which the bucket is full, carry -- or unit, start, count
--         The state found of a run is the microseconds until a token bucket is full, followed by its carry if q > 1; the count of a window.
--         The time of a bucket past full lies before now, the count of a window with more than its limit is below 0. A run of one that
--         found such a state says PAST_FULL less that, and the caller tells whether the request was limited.
--
-- Value   t1:<time at which the bucket is full>:<carry>:<q>   w1:<start of the window>:<count>:<its length>
--         l1:<the same>:<carry>:<q>, then once or more :<when the next deeper level is full>:<depth in microseconds up to which the one before holds>
--         a bucket with levels, see keepAbove; after the depth 2^53-1 no level, but when one that another one has reached would be full
--         d1:<start of the next window>:<hits owed>:<its length>   a window in debt: a negative count here, of a window that has not begun
--         g1:<start of the window>:<hits beyond its limit that may pass>:<its length>   a negative count here, of a window that has begun
--         o1:<when it is full again at the latest>:<time that what is over takes to refill>:<carry>:<q>   a bucket past full, which does not refill:
--         its time lies so long before now here, by which a carry makes that shorter
--         Anything else under a key is treated as absent, so that two versions can share one Redis.
--         A key expires when its bucket is full or its window has ended, never sooner, at most half a second later; on the clock of
--         a caller (a test) a thousandth of the time and three seconds (a minute) later than that.

local call, byte, match, format, floor, min = redis.call, string.byte, string.match, string.format, math.floor, math.min
local tonumber, KEYS, ARGV = tonumber, KEYS, ARGV

local MAX_COUNT = 9007199254740991
-- A clock that stepped back by no more than this is waited for.
local MAX_STEP = 1000000
-- Keys expire at multiples of this many microseconds: a bucket that is in use keeps its time to live most of the time, which makes writing it
-- a quarter cheaper.
local EXPIRY_STEP = 500000
-- '%d' takes half the time of '%.0f', but holds 2^53 only where C's long has 64 bits.
local D = format('%d', MAX_COUNT) == '9007199254740991' and '%d' or '%.0f'
local STATE, WHOLE_TOKENS = '1:' .. D .. ':' .. D .. ':' .. D, 't1:' .. D .. ':0:1'

local given = ARGV[1] ~= ''
-- How far the clocks of callers may be from each other, microseconds; and how much longer than by the time given keys must live, milliseconds:
-- a second for that, one in which a caller's clock may stand still after it stepped back, and one as Redis counts PX from when it looked at
-- its own clock. A test's clock may stand still for long.
local apart, margin = 0, 60000
if byte(ARGV[1]) == 43 then apart, margin = MAX_STEP, 3000 end
local raw
if given then
  raw = tonumber(ARGV[1])
else
  -- The first that is asked, so that nothing was done where it is refused.
  local time = redis.pcall('TIME')
  if time.err then return { err = 'NOTIME ' .. time.err } end
  raw = time[1] * 1000000 + time[2]
end
local now = raw
local seen = tonumber(ARGV[2])
if raw < seen and seen - raw <= MAX_STEP then now = seen end
local countDenied = ARGV[3] == '1'
local steps = ARGV[4]

-- PXAT is exact, where PX would count from whenever Redis last looked at its clock. A time that was given is not Redis's: there keys outlive
-- their buckets, by a thousandth as well, as clocks run differently.
local stepFrom, stepTo, expiry = 0, 0, nil
-- `stored` is when what is stored ends, if it is a bucket or window.
local function store(k, value, ends, stored)
  if ends < stepFrom or ends >= stepTo then
    stepFrom = ends - ends % EXPIRY_STEP
    stepTo = stepFrom + EXPIRY_STEP
    expiry = format(D, given and floor((stepTo - raw) / 999) + margin or stepTo / 1000 + 1)
  end
  if stored and stored >= stepFrom and stored < stepTo then
    call('SET', KEYS[k], value, 'KEEPTTL')
  else
    call('SET', KEYS[k], value, given and 'PX' or 'PXAT', expiry)
  end
end

-- The most frequent steps by far, without tables: `count` equal takes from a token bucket that no other step names. Returns the state found, as in
-- the reply, its carry, and how many passed; nothing where that is left to the general way.
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

-- The same of a window that began at `start`.
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

-- What the zeros (code 48) of a number of three digits add up to.
local ZEROS = 48 * (64 * 64 + 64 + 1)

-- unpack() of more values than this may overflow the Lua stack.
local CHUNK = 1000
local values = call('MGET', unpack(KEYS, 1, min(CHUNK, #KEYS)))
for first = CHUNK + 1, #KEYS, CHUNK do
  local more = call('MGET', unpack(KEYS, first, min(first + CHUNK - 1, #KEYS)))
  for i = 1, #more do values[first + i - 1] = more[i] end
end

local reply, filled, at = { now }, 1, 1

-- The first steps, as long as each is a take that stands alone: most calls hold nothing else. The tables and functions that the rest needs cost
-- more to make than to decide one step. An ask of 7 numbers is a plain take, and so are those before it.
local plain = (apart == 0 or #KEYS == 1) and #ARGV % 7 == 4
for argument = 5, #ARGV, 7 do plain = plain and ARGV[argument] == '0' end
local asked, size, fill, fillCarry, cost, costCarry
while plain and at <= #steps do
  local a, b, c, d, e, f, g, h, i = byte(steps, at, at + 8)
  local k, n, count = (a * 64 + b) * 64 + c - ZEROS, (d * 64 + e) * 64 + f - ZEROS, (g * 64 + h) * 64 + i - ZEROS
  -- A group, or a run on a bucket that another step may name.
  if k == 0 or count > 0 and #steps > 9 then break end
  if n ~= asked then
    local first = 7 * n
    asked, size, fill, fillCarry = n, tonumber(ARGV[first]), tonumber(ARGV[first + 1]), tonumber(ARGV[first + 2])
    cost, costCarry = tonumber(ARGV[first + 3]), tonumber(ARGV[first + 4])
  end
  local found, carry, passed
  if size > 0 then
    found, carry, passed = takeAlone(k, values[k], count > 0 and count or 1, size, fill, fillCarry, cost, costCarry)
    if passed == 0 and count == 0 then found = -1 - found end
  elseif apart == 0 and count == 0 then
    found = countAlone(k, values[k], now - now % -size, -size, fill, cost, countDenied and fillCarry == 0)
  end
  if not found then break end
  if count > 0 then
    filled = filled + 1
    reply[filled] = passed
  end
  reply[filled + 1], reply[filled + 2] = found, carry
  filled = filled + (carry and 2 or 1)
  at = at + 9
end
if at > #steps then return reply end

-- From here on any call.

local NEXT_LEVEL, OVER = ':' .. D .. ':' .. D, 'o' .. STATE .. ':' .. D
-- Levels that a bucket has at most.
local MAX_LEVELS = 8
-- How long a bucket stays past full, microseconds; see TakeItem.over.
local OVER_LASTS = 86400000000
-- More than any state is past full, microseconds, and more hits than any window has left beyond its limit.
local MAX_OVER, MAX_OVER_HITS = 1e15, 4294967296
-- Higher than anything else that a run says.
local PAST_FULL = 4e15

-- A window that has begun by another caller's clock has begun: or the two would write over each other's counts. The same of token buckets
-- stands at load.
if apart > 0 then
  for k = 1, #KEYS do
    local form, start, length = match(values[k] or '', '^([wdg])1:(%d+):%d+:(%d+)$')
    if form then
      start = start - (form == 'd' and length or 0)
      if start > now and start <= raw + apart then now = start end
    end
  end
  reply[1] = now
end

-- The running state of each key that was looked at, and whether it must be stored.
local unit, whole, part, changed = {}, {}, {}, {}
-- When what is stored ends, as a key expires; and a bucket that this call brought past full.
local storedEnds, overEnds = {}, {}
-- Of a bucket with levels: the depth up to which the one in `whole` holds, nil for any; the deeper ones, the next first, as when they are full and up
-- to which depth they hold, nil for any; and those before, the deepest first, as how much earlier than `whole` they are full and up to which
-- depth they hold; and until when one is remembered that another one has reached. See keepAbove.
local upTo, above, beneath, reached = {}, {}, {}, {}

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
  ask.over = 0
  if ask.what > 3 then
    ask.over = tonumber(ARGV[argument])
    argument = argument + 1
    if ask.what == 4 then
      ask.mark = tonumber(ARGV[argument])
      argument = argument + 1
    end
    ask.what = 2
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

-- Of buckets with levels; they stand in take-levels.lua.
local keepAbove, loadLevels, levelsOf

-- Reads what is stored. A number beyond 2^53-1, or a carry of a whole microsecond, was not written by weir, but something was: a bucket is then
-- empty, and the window of the ask used up, where absent would be full; but one past full is no more than full then. No number that goes on to the
-- reply is larger, either.
local function read(k, ask)
  local value = values[k]
  if value then
    local form, a, b, c = match(value, '^([twdg])1:(%d+):(%d+):(%d+)$')
    a, b, c = tonumber(a), tonumber(b), tonumber(c)
    if form == 't' and c > 0 then
      if a > MAX_COUNT or b >= c or c > MAX_COUNT then a, b, c = MAX_COUNT, 0, 1 end
      unit[k], whole[k], part[k], storedEnds[k] = c, a, b, a
      -- Only one past full is full before now.
      if a < now then whole[k], part[k] = now, 0 end
      return
    elseif form == 'g' and (a > now or b > MAX_OVER_HITS) then
      -- It is of no window that holds now, or not of ours.
    elseif form and form ~= 't' and c > 0 then
      local ends = a + c
      if ends > MAX_COUNT or b > MAX_COUNT then
        form, a, b, c, ends = 'w', ask.start or 0, MAX_COUNT, ask.unit < 0 and -ask.unit or 1, nil
        changed[k] = ask.unit < 0 or nil
      end
      -- A debt whose window has begun is hits of it.
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

-- Whether more was taken than a bucket holds. More than a full one holds never fits, be it past full.
local function overdrawn(w, c, ask)
  local empty = now + ask.fill
  return w > empty or (w == empty and c > ask.fillCarry) or ask.cost > ask.fill
end

-- Whether more was taken than the deepest debt allows, which is none for most.
local function tooDeep(w, c, ask)
  local lowest = now + ask.debt
  return w > lowest or (w == lowest and c > ask.debtCarry)
end

-- By how much a bucket is fuller here than what is stored of it, microseconds.
local ahead = {}

-- Reads what is stored. A bucket that was emptied by a clock ahead of the caller's is empty here, too, and what it lacks beyond that is kept. Were it
-- brought to empty instead, the other caller would find room at once, and the two, in turns, any number of tokens.
local function load(k, ask)
  read(k, ask)
  if apart > 0 and unit[k] > 0 and ask.unit > 0 and tooDeep(whole[k], part[k], ask) then
    local more = whole[k] - now - ask.debt + (part[k] > 0 and 1 or 0)
    if more <= apart then whole[k], ahead[k] = whole[k] - more, more end
  end
end

-- A token bucket's state in the terms of an ask: between full (now) and empty or deepest debt (now + time to fill), in parts of 1/q; one past full
-- lies before now. The third result
-- tells that it was below that and must be stored within the bounds even if the request changes nothing, or the bucket would be
-- brought there at each look and stay.
local function inBounds(u, w, c, ask)
  if u <= 0 then return now, 0, false end
  if u ~= ask.unit then
    if c > 0 then w = w + 1 end
    c = 0
  end
  if tooDeep(w, c, ask) then return now + ask.debt, ask.debtCarry, true end
  return w, c, false
end

-- A state once the hits of an ask were taken.
local function taken(w, c, ask)
  w, c = w + ask.cost, c + ask.costCarry
  if c >= ask.unit then return w + 1, c - ask.unit end
  return w, c
end
