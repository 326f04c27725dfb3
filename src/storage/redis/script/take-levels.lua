-- Third part of the script: buckets whose depth servers disagree about. take.lua is the first, whose header says what the script does.

-- Servers may disagree for a while about how deep a bucket is: a changed limit reaches one after the other. What is missing beyond the depth of the
-- one is cut off by it, or its callers would wait for a time that their limit does not know; were that all, the other one would find room again
-- at each call. So the value keeps levels: each holds for asks up to its depth, the last for all others. Takes move the level of their ask and
-- those before it. One lasts until its time has come, or the one before is as deep. Then its time alone is kept until it has come, as a level that no
-- ask is deep enough for: an undo would not see otherwise that something was cut off, and that what is missing by now was taken by others. Numbers
-- are rounded against the caller. A time that nobody could have stored is not kept.
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
    -- One that is over, or no deeper than the one before, holds no more.
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

-- The value of a bucket with levels, and when the last of them is full; nil if one is enough.
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
  -- Of too many, those in the middle are as deep as the last.
  for i = 2, #fulls do
    if i < MAX_LEVELS or i == #fulls then text = text .. format(NEXT_LEVEL, fulls[i], depths[min(i, MAX_LEVELS) - 1]) end
  end
  if reachedEnds > now then text = text .. format(NEXT_LEVEL, reachedEnds, MAX_COUNT) end
  return text, math.max(fulls[#fulls], reachedEnds)
end
