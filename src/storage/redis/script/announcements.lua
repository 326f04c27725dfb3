-- Announces filled buckets to all processes that share this Redis, or returns the announcements.
--
-- KEYS[1] a string with the latest announcements, one in each line, oldest first
-- ARGV[1] a time, which this script does not need
-- ARGV[2] the announcement to add; '' returns all announcements instead
-- ARGV[3] maximum bytes of the string: older announcements are dropped
-- ARGV[4] how long the string is kept after the latest announcement, in milliseconds

local text = redis.call('MGET', KEYS[1])[1] or ''
if ARGV[2] == '' then return text end
text = text .. ARGV[2] .. '\n'
while #text > tonumber(ARGV[3]) do
  local _, stop = string.find(text, '\n', 1, true)
  text = string.sub(text, stop + 1)
end
redis.call('SET', KEYS[1], text, 'PX', ARGV[4])
return ''
