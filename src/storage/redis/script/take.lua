-- Decides a batch of requests on token buckets and windows. This is the first part of the script: arguments, and the
-- functions of the fast path. The other parts are take-holds.lua, take-steps.lua, take-runs.lua and take-groups.lua.
--
-- A script reads the clock and the buckets, decides, and writes in one atomic step. Without it, two servers that share this Redis could
-- both take the last token, and a denied request could keep some of its takes.
--
-- src/limiter/decide.ts implements the same arithmetic and explains it. The caller computes all costs exactly, even above 2^53. This
-- script only adds, carries, compares and stores. All its numbers are integers below 2^53.
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
--                              the 14 characters of the hold's id (hold-members.lua). For the settlement of a reservation, the time at which the bucket
--                              would have been full without the hold follows (0 for a window): 9 characters, base 64 as above. A count of
--                              0 means one request with one item, on a bucket that no other step uses.
--         then the asks. An ask is the rate, the hits and the kind of take of an item: 7 numbers, and more depending on `what`.
--              what        0 take, 1 peek (hits 0), 2 refund, 3 charge, 4 refund that undoes a take, 5 settlement of the oldest hold; runs
--                          contain only 0 and 1. Plus 10 if a debt follows, plus 20 if a calendar follows, plus 40 if a hold follows,
--                          plus 80 if a settlement follows. Plus 160 if expired holds of the set are first given back (freeExpired); a
--                          peek then also names the set and a hold.
--              enforcement 0 enforce, 1 observe, 2 quota, 3 spill (TakeItem in TypeScript); ignored in runs
--              unit        token bucket: q of its rate. Window: minus its length in microseconds (with a calendar, its nominal length).
--                          Limit on concurrent requests: 0.
--              fill        whole microseconds in which an empty bucket fills; limit of a window; maximum number of concurrent requests
--              fillCarry   its carry in 1/q microseconds. Window: 1 if it never counts the hits of denied requests, else 0.
--              cost        whole microseconds that the hits cost, for a peek and `what` 5 those of 1 token; hits on a window
--              costCarry   its carry; 0
--            debt, if the rate has one (never in a run on a window):
--              whole       whole microseconds in which a bucket fills from its maximum debt; maximum count of a window
--              carry       its carry; 0
--            hold: its lifetime in milliseconds, and its hits. For `what` 5: the use, and the maximum number of hits that change the bucket
--            settlement:
--              lifetime    lifetime of the hold, in milliseconds
--              hits        its hits
--              useLasts    time in which the use refills, in whole microseconds; 0 for a window. Limit on concurrent requests: 1 if the
--                          number of slots must be compared, because the id does not depend on it; else 0.
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
--         a longer run: the number of requests that were not limited, which are the first ones, and the state that the first one found
--         a group: for each item the state that the first request found, as three numbers: unit (0 if nothing is stored), time at which the
--         bucket is full, and carry; or unit, start and count. For a limit on concurrent requests, one number: the slots in use, or 0 for a
--         settlement. Then for each request, and for each of its settlements: the time at which the hold was taken (0 for a limit on
--         concurrent requests), or -1 if there is no such hold. For `what` 5, three numbers follow: the hits of the hold, the time at
--         which the bucket would have been full without it, and its `heldCost`.
--         The state that a run finds is the microseconds until a token bucket is full, then its carry if q > 1; or the count of a window.
--
-- Value   t1:<time at which the bucket is full>:<carry>:<q>   w1:<start of the window>:<count>:<its length>
--         d1:<start of the next window>:<hits owed>:<its length>   A window in debt. In this script, a window that has not begun, with a
--         negative count.
--         l1:<time>:<carry>:<q>, then one or more :<time>:<depth>   Only read, because the first edition writes it: a token bucket that
--         is full at the latest of these times. After the depth 2^53-1, <time> does not count.
--         Any other value counts as absent, so that two versions can share one Redis.
--         A key expires at most half a second after its bucket is full or its window ends, and never earlier. If a test sets the time,
--         a key expires later: by a thousandth of its lifetime, and by 1 minute.

local call, byte, match, format = redis.call, string.byte, string.match, string.format
local floor, min, max = math.floor, math.min, math.max
local tonumber, unpack, KEYS, ARGV = tonumber, unpack, KEYS, ARGV

local MAX_COUNT = 9007199254740991
-- Maximum backward step of a clock that is waited out.
local MAX_STEP = 1000000
-- Keys expire at multiples of this many microseconds. A bucket in use then keeps its expiry time in most writes, which makes a write a
-- quarter cheaper.
local EXPIRY_STEP = 500000
-- '%d' takes half the time of '%.0f', but represents 2^53 only if C's long has 64 bits.
local D = format('%d', MAX_COUNT) == '9007199254740991' and '%d' or '%.0f'
local STATE, WHOLE_TOKENS = '1:' .. D .. ':' .. D .. ':' .. D, 't1:' .. D .. ':0:1'

local given = ARGV[2] ~= ''
-- How much longer keys must live if a test sets the time, in milliseconds, because its clock may not advance for a while.
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
-- Whether the clock was set back and has not reached its earlier time again. Stored times may be from before that.
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
    local part = struct.pack('<' .. string.rep('d', last - first + 1), unpack(reply, first, last))
    text = text and text .. part or part
  end
  return text
end

-- PXAT is exact, whereas PX counts from Redis's cached time. The time of a test is not Redis's time, so keys then outlive their
-- buckets by a margin, and by a thousandth because clocks drift.
local stepFrom, stepTo, expiry = 0, 0, nil
-- `stored` is the end of the stored bucket or window, if there is one.
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

-- The fast path for the most frequent steps: `count` equal takes from a token bucket that no other step uses, without tables. Returns
-- the state found, as in the reply, its carry, and the number of allowed takes; nothing if the general code must decide.
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

