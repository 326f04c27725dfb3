-- Applies changes to the log of controls, one after the other.
--
-- ARGV   2 a new mark
--        3 maximum number of controls
--        4 maximum bytes of all rows
--        5 maximum number of members of the set
--        6 how long the log keeps entries that are not controls, in microseconds
--        then 5 arguments for each change:
--          what      c adds a control, or replaces the one with this name; g ends the control with this name, if it has this id; t lists
--                    touched buckets
--          name      '' for t
--          lifetime  of a control, in microseconds; 0 for g and t
--          id        - for t
--          text      '' for g
-- Reply  <time>, then the new version for each change; 0 if the log is full, or if there is no control to end

local version, kept, bytes, dropped = count('V'), count('N'), count('S'), count('H')
local before = version
local keeps = tonumber(ARGV[6])

-- Removes an entry. Returns its version.
local function drop(name)
  local at = call('ZSCORE', key, 'n' .. name)
  if not at then return end
  at = -tonumber(at)
  local row = rowOf(at) or ''
  call('ZREM', key, row, 'n' .. name, 'xn' .. name)
  bytes = bytes - #row
  if string.match(row, '^%d+ %d+ (%a)') == 'c' then kept = kept - 1 end
  return at
end

-- Removes some expired entries, oldest first: more than the changes below add, so that the set stays bounded.
local over = call('ZRANGEBYSCORE', key, '3000000000000000', number(3e15 + now), 'LIMIT', '0', '60')
for i = 1, #over do
  local name = string.sub(over[i], 3)
  if string.sub(over[i], 2, 2) == 'm' then
    call('ZREM', key, over[i], 'm' .. name)
  else
    dropped = math.max(dropped, drop(name) or 0)
  end
end

local function add(what, name, lasts, id, text)
  version = version + 1
  local row = table.concat({ number(version), number(now + lasts), what, name, id, text }, ' ')
  bytes = bytes + #row
  call('ZADD', key, number(version), row, number(-version), 'n' .. name, number(3e15 + now + lasts), 'xn' .. name)
  return number(version)
end

local isFull = call('ZCARD', key) > tonumber(ARGV[5])
local longest = keeps
local reply = { number(now) }
for i = 7, #ARGV, 5 do
  local what, name, lasts, id, text = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3], ARGV[i + 4]
  local result = '0'
  if what == 'g' then
    local at = call('ZSCORE', key, 'n' .. name)
    local row = at and rowOf(-tonumber(at))
    if row and string.match(row, '^%d+ %d+ (%a %S+ %S+)') == 'c ' .. name .. ' ' .. id then
      drop(name)
      result = add('g', name, keeps, id, '')
    end
  elseif what == 't' then
    if not isFull then result = add('t', 't' .. number(version + 1), keeps, '-', text) end
  else
    local at = call('ZSCORE', key, 'n' .. name)
    local row = at and rowOf(-tonumber(at))
    local replaces = row and string.match(row, '^%d+ %d+ (%a)') == 'c'
    local grows = #text - (replaces and #row or 0)
    if (replaces or (kept < tonumber(ARGV[3]) and not isFull)) and bytes + grows <= tonumber(ARGV[4]) then
      drop(name)
      result = add('c', name, lasts, id, text)
      kept = kept + 1
      longest = math.max(longest, lasts)
    end
  end
  reply[#reply + 1] = result
end

if version > before then
  if latest then
    call('ZREM', key, latest)
    call('ZADD', key, number(3e15 + now + keeps), 'xm' .. string.sub(latest, 2))
  end
  call('ZADD', key, '2000000000000000', 'L' .. ARGV[2], number(-version), 'm' .. ARGV[2])
end
if version > before or #over > 0 then
  call('ZADD', key, number(1e15 + version), 'V', number(1e15 + kept), 'N', number(1e15 + bytes), 'S', number(1e15 + dropped), 'H')
  -- The key expires by itself, but later than its entries, so that a late reader still finds its mark.
  local lives = math.max(call('PTTL', key), math.ceil((longest + keeps) / 1000) + 60000)
  call('PEXPIRE', key, number(lives))
end
return table.concat(reply, ' ')
