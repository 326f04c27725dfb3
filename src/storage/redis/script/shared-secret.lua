-- Returns a secret that all processes with this Redis share. Stores the caller's secret if there is none yet.
--
-- KEYS[1] a string with the secret
-- ARGV[1] a time, which this script does not need
-- ARGV[2] the caller's secret

redis.call('SET', KEYS[1], ARGV[2], 'NX')
return redis.call('MGET', KEYS[1])[1]
