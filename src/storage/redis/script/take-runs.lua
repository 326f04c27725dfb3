-- Fourth part of the script. The header of take.lua describes the whole script.

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

-- Decides a run on a token bucket. Its requests have one item each, so denied requests need no undo.
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
  -- The rounding of the state alone is not stored.
  if changes then unit[k], whole[k], part[k], changed[k] = ask.unit, w, c, true end
  answer(count, passed, foundWhole - now)
  if ask.unit > 1 then
    filled = filled + 1
    reply[filled] = foundCarry
  end
end

-- Returns the count of the window that contains now. A debt is stored as hits of the next window. The second result is nil if the window
-- itself is stored; otherwise, it tells whether the window is in a debt that this ask must not change because its rate has none.
local function inWindow(u, w, c, ask)
  local start = ask.start
  if u == ask.unit and w == start then return c end
  if u < 0 and w == start - ask.unit then
    if ask.owing then return min(ask.fill + math.abs(c), ask.debt), false end
    if c < 0 then return MAX_COUNT, true end
  end
  return 0, false
end

-- Returns whether a time is in the window that contains now.
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
