-- Fifth part of the script. The header of take.lua describes the whole script.

-- Groups: `count` equal requests with the same items, one or more. The items apply in order to the running state. A denied request gives
-- back what it took. The caller uses the same arithmetic to compute each outcome from the states found.

-- The state of each key during the decision of a request: unit, time or start, and carry or count. `dirty` tells whether it changed, and
-- `nowOwes` whether a debt must stay unchanged. For each item, `limitedAt` is whether it was limited, and `fullAt` is the time at which
-- the bucket would have been full without it. For a settlement, `takenAt` is the time at which the hold was taken, and `removed` is the
-- number of slots that it gave back. `fullAfter` is the time at which the bucket would have been full if the take had been only the use.
local nowUnit, nowWhole, nowPart, dirty, nowOwes, limitedAt = {}, {}, {}, {}, {}, {}
local fullAt, takenAt, removed, fullAfter = {}, {}, {}, {}
-- Whether the request changed anything that must be stored.
local moved

local function begin(k)
  nowUnit[k], nowWhole[k], nowPart[k], dirty[k], nowOwes[k] = unit[k], whole[k], part[k], false, false
end

-- Takes the cost of an ask. Returns whether the item was limited.
local function takeTokens(k, ask, i)
  -- Without its hold, a settlement changes nothing.
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
      -- An undo has no effect if the bucket has reached its maximum debt since the take, because other charges may have been forgiven.
      if ask.owing and tooDeep(w + now - mark, c + 1, ask) then return false end
      if now > from then cost = cost - now + from end
    end
    if cost * ask.unit + ask.costCarry <= 0 or (w == now and c == 0) then return false end
    w, c = w - cost, c - ask.costCarry
    if c < 0 then w, c = w - 1, c + ask.unit end
    if w < now then w, c = now, 0 end
  else
    -- A charge is forgiven if another limit has left the bucket below the maximum debt of this one.
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

-- Returns the cost of `hits`, at most 2^33, in whole microseconds and a carry, given the cost of 1 hit. Multiplies in two parts, so that
-- all products stay below 2^53: the carry of 1 hit is less than the unit, which is less than 2^32.
local function costOf(ask, hits)
  local high = floor(hits / 65536) * ask.hitCarry
  local low = high % ask.unit * 65536 + hits % 65536 * ask.hitCarry
  return hits * ask.hitCost + floor(high / ask.unit) * 65536 + floor(low / ask.unit), low % ask.unit
end

-- Turns an ask into the refund or the charge that settles a hold of `held` hits; settlementOf and correctionOf in TypeScript.
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
      -- At a slower rate, the hold gives back no more time than it took.
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
    -- Another limit, or the count of denied hits, may have raised the count. Stored as a debt, the window is used up for every limit.
    if ask.owing then after = min(after, ask.debt) end
  else
    after, limited, changes = counted(before, ask, hits, nowOwes[k] and not ask.owing)
  end
  nowUnit[k], nowWhole[k], nowPart[k] = ask.unit, ask.start, after
  if changes then dirty[k] = true end
  return limited
end

-- Takes slots of a limit on concurrent requests, or gives them back. Returns whether the item was limited.
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

-- Applies an item to the running state of its key. Returns whether it was limited. An item is skipped if `before`, the
-- item before it, has the enforcement 3 and was not limited.
local function apply(k, ask, i, before)
  if before and before.enforcement == 3 and not limitedAt[i - 1] then return false end
  if ask.unit > 0 then return takeTokens(k, ask, i) end
  if ask.unit < 0 then return countHits(k, ask, ask.cost, i) end
  return takeSlots(k, ask, i)
end

-- Stores a window in debt as the next window, with the excess hits, so that the debt lasts until that window ends. A count above the
-- maximum debt is not a debt.
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
    -- Refunds and charges of a denied request have no effect. A cost of 0 hits is a peek.
    if ask.unit == 0 then
      -- Nothing more to undo.
    elseif ask.unit < 0 then
      countHits(k, ask, (ask.countsDenied and ask.what < 2) and ask.cost or 0, i)
    end
  end
end

-- Makes the changes of a request to a bucket final.
local function keepChanges(k, ask)
  -- Rounding alone is not stored.
  if not dirty[k] then return end
  foldDebt(k, ask)
  unit[k], whole[k], part[k] = nowUnit[k], nowWhole[k], nowPart[k]
  changed[k], moved = true, true
end

-- Gives back holds of a set that have expired, as if each was settled with a use of 0 when it expired, before any other take. If not
-- all of them fit into one call, each is settled now, and the bucket gets less back.
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

-- Places the holds of an allowed request. `sets` has the key of the set for each item with a hold, and the first id starts at `id`.
local function placeHolds(ks, items, sets, id)
  for i = 1, #ks do
    local ask = items[i]
    if sets[i] then
      if not ask.settles and ask.held and (ask.unit == 0 or not limitedAt[i]) then
        place(sets[i], id, ask.unit, ask.held, ask.lifetime, fullAt[i], ask.unit > 0 and max(1, ask.cost) or 0)
        -- Expired holds are kept until the bucket is full or the window ends.
        if ask.freed then keepUntil(sets[i], ask.unit > 0 and whole[ks[i]] or ask.start - ask.unit) end
      elseif ask.freed and ask.unit > 0 and ask.what == 3 and takenAt[i] >= 0 then
        -- A charge makes the bucket full later.
        keepUntil(sets[i], whole[ks[i]])
      end
      id = id + ask.idLength
    end
    if ask.unit == 0 then slots[ks[i]] = part[ks[i]] end
  end
end

-- Settles the holds of a request, and appends the times at which they were taken. Returns whether the request settles any.
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

-- Returns how many of `count` requests certainly pass and can be taken in one operation. Only for plain takes on different keys.
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
      -- Each take may carry 1 more microsecond.
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
  -- Several items may use one bucket, and any of them may have given holds back.
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
  -- If one request has no effect, the next one finds the same state and has no effect, either, unless it settles another hold.
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
