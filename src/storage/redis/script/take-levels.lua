-- Fifth part of the script: levels of a bucket. The header of take.lua describes the whole script.

-- Keeps the part of a state that is deeper than an ask allows, as a level.
--
-- The depth of a bucket is the time in which it fills from empty, or from its maximum debt. A changed limit reaches one server after
-- another, so servers may use different depths for a while. A server with a smaller depth cuts the state off at that depth. Otherwise,
-- its callers would wait longer than their limit requires. Without levels, the server with the larger depth would find new tokens after
-- each such cut.
--
-- Therefore, the stored value has levels. Each level applies to asks up to its depth, and the last level to all deeper asks. A take
-- changes the level of its ask and all shallower levels. A level ends when it is full, or when the level before it is as deep. After
-- that, only its time is kept until that time has passed, with a depth that no ask reaches. As long as this time is kept, an undo
-- does not change the bucket, because other callers may have taken what is missing. Numbers are rounded against the caller. A time
-- that weir cannot have stored is not kept.
function keepAbove(k, w, c, ask)
  if c > 0 then w = w + 1 end
  local deeper, depth = above[k] or {}, ask.debt
  above[k] = deeper
  if w < MAX_COUNT then
    if upTo[k] == depth then
      deeper[1].full = math.max(deeper[1].full, w)
    else
      table.insert(deeper, 1, { full = w, upTo = upTo[k] })
    end
  end
  upTo[k] = deeper[1] and depth
  local cut = now + depth
  for _, level in ipairs(beneath[k] or {}) do level.early = math.max(0, level.early - (w - cut)) end
end

-- Reads a bucket with levels. Returns whether the value is one.
function loadLevels(k, value, ask)
  local first, c, q, rest = match(value, '^l1:(%d+):(%d+):(%d+)(:[%d:]+)$')
  first, c, q = tonumber(first), tonumber(c), tonumber(q)
  if not q or q == 0 then return false end
  local bad, ends = first > MAX_COUNT or c >= q or q > MAX_COUNT, first
  local levels, read = { { full = first } }, 0
  for text, full, depth in string.gmatch(rest, '(:(%d+):(%d+))') do
    read, full, depth = read + #text, tonumber(full), tonumber(depth)
    bad = bad or full > MAX_COUNT or depth > MAX_COUNT
    ends = math.max(ends, full)
    -- A level is no longer needed if it is full, or not deeper than the level before it.
    local last = levels[#levels]
    if depth == MAX_COUNT then
      if full > now then reached[k] = full end
    elseif full > last.full and full > now then
      last.upTo = depth
      levels[#levels + 1] = { full = full }
    end
  end
  if read ~= #rest then return false end
  if bad then levels, c, q, ends = { { full = MAX_COUNT } }, 0, 1, MAX_COUNT end
  local at = 1
  while levels[at].upTo and ask.unit > 0 and ask.debt > levels[at].upTo do at = at + 1 end
  local w = levels[at].full
  unit[k], whole[k], part[k], storedEnds[k], upTo[k] = q, w, c, ends, levels[at].upTo
  if w < now then whole[k], part[k] = now, 0 end
  above[k], beneath[k] = {}, {}
  for i = at + 1, #levels do
    local level = levels[i]
    if c > 0 then level.full = level.full + 1 end
    table.insert(above[k], level)
  end
  for i = at - 1, 1, -1 do
    local level = levels[i]
    level.early = w - math.max(level.full, now)
    table.insert(beneath[k], level)
  end
  return true
end

-- Returns the value of a bucket with levels, and the time at which the last of them is full. Returns nil if one level is enough.
function levelsOf(k, u, w, c)
  local fulls, depths, reachedEnds = {}, {}, reached[k] or now
  local function add(full, depth)
    if fulls[1] and (full <= now or full <= fulls[#fulls]) then
      depths[#fulls] = depth
      reachedEnds = math.max(reachedEnds, full)
    else
      fulls[#fulls + 1], depths[#fulls + 1] = full, depth
    end
  end
  local before = beneath[k] or {}
  for i = #before, 1, -1 do add(math.max(0, w - before[i].early), before[i].upTo) end
  add(w, upTo[k])
  for _, level in ipairs(above[k] or {}) do add(level.full, level.upTo) end
  if #fulls == 1 and reachedEnds <= now then return nil end
  local text = 'l' .. format(STATE, fulls[1], c, u)
  -- Above the maximum, the levels in the middle are left out, and their asks use the last level.
  for i = 2, #fulls do
    if i < MAX_LEVELS or i == #fulls then text = text .. format(NEXT_LEVEL, fulls[i], depths[min(i, MAX_LEVELS) - 1]) end
  end
  if reachedEnds > now then text = text .. format(NEXT_LEVEL, reachedEnds, MAX_COUNT) end
  return text, math.max(fulls[#fulls], reachedEnds)
end
