-- Returns the new entries of the log. Only reads.
--
-- ARGV   2 the mark that the caller knows, or ''
--        3 the version up to which the caller has read the log with that mark
--        4 maximum number of rows in the reply
--        5 maximum bytes of all rows; the last row may exceed it
-- Reply  lines: <time> <latest version> <1 if the caller must discard all known entries, else 0> <version of the last row> <latest mark or ->
--        then the rows, by version

local version, known, at = count('V'), 'L' .. ARGV[2], tonumber(ARGV[3])
local anew = 0
if known ~= (latest or 'L') then
  local seen = ARGV[2] ~= '' and call('ZSCORE', key, 'm' .. ARGV[2])
  if not seen or -tonumber(seen) < count('H') then anew, at = 1, 0 end
end
local lines, bytes = { '' }, 0
while at < version and #lines <= tonumber(ARGV[4]) and bytes < tonumber(ARGV[5]) do
  local rows = call('ZRANGEBYSCORE', key, '(' .. number(at), number(version), 'LIMIT', '0', '20')
  if #rows == 0 then at = version end
  for i = 1, #rows do
    if #lines > tonumber(ARGV[4]) or bytes >= tonumber(ARGV[5]) then break end
    lines[#lines + 1], bytes = rows[i], bytes + #rows[i]
    at = tonumber(string.match(rows[i], '^%d+'))
  end
end
lines[1] = table.concat({ number(now), number(version), anew, number(at), latest and string.sub(latest, 2) or '-' }, ' ')
return table.concat(lines, '\n')
