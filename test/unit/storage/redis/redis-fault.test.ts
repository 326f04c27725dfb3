import { describe, expect, test } from '@jest/globals';
import { faultSentence, redisFaultOf } from '../../../../src/storage/redis/connection/redis-fault.js';

const PLACE = { prefix: 'REDIS', db: 3, sentinel: false, cluster: false };

describe('the message of Redis, the system or TLS', () => {
  test.each([
    ["READONLY You can't write against a read only replica.", 'readonly', 'reconnect'],
    // Redis 6.2, for a command in a script.
    [
      'ERR Error running script (call to f_1): @user_script:12: -READONLY You cannot write',
      'readonly',
      'reconnect',
    ],
    [
      "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
      'masterdown',
      'reconnect',
    ],
    ['LOADING Redis is loading the dataset in memory', 'loading', 'wait'],
    ['BUSY Redis is busy running a script. You can only call SCRIPT KILL', 'busy', 'wait'],
    ['BUSYKEY Target key name already exists.', 'other', 'count'],
    ['UNKILLABLE Sorry the script already executed write commands', 'unkillable', 'wait'],
    ['NOREPLICAS Not enough good replicas to write.', 'noreplicas', 'wait'],
    ['MISCONF Redis is configured to save RDB snapshots', 'misconf', 'wait'],
    ["OOM command not allowed when used memory > 'maxmemory'.", 'oom', 'count'],
    ['NOAUTH Authentication required.', 'noauth', 'reconnect'],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'wrongpass', 'reconnect'],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'noperm', 'wait'],
    // For a command in a script: Redis 7.0 and 6.2.
    [
      "ERR The user executing the script can't run this command or subcommand script: 60e0, on @user_script:81.",
      'noperm',
      'wait',
    ],
    [
      "ERR Error running script (call to f_6): @user_script:81: The user executing the script can't access at least " +
        'one of the keys mentioned in the command arguments',
      'noperm',
      'wait',
    ],
    ["NOTIME ERR The user executing the script can't run this command or subcommand", 'no_time', 'wait'],
    ["NOTIME NOPERM this user has no permissions to run the 'time' command", 'no_time', 'wait'],
    ['ERR Write commands not allowed after non deterministic commands', 'no_time', 'wait'],
    ['NOSCRIPT No matching script. Please use EVAL.', 'noscript', 'count'],
    ['MOVED 1234 10.0.0.1:6379', 'cluster', 'wait'],
    ['CLUSTERDOWN The cluster is down', 'cluster_down', 'soon'],
    ['no node of the Redis Cluster answers; start the nodes', 'no_cluster', 'count'],
    ['DENIED Redis is running in protected mode', 'protected_mode', 'wait'],
    ['ERR max number of clients reached', 'max_clients', 'count'],
    ["ERR unknown command 'set', with args beginning with: ", 'not_redis', 'wait'],
    ['ERR unknown command `SET`, with args beginning with: ', 'not_redis', 'wait'],
    ["ERR unknown command 'auth'", 'not_redis', 'wait'],
    ['this address belongs to a proxy: ERR NOPERM', 'proxy', 'wait'],
    ['ERR DB index is out of range', 'no_database', 'wait'],
    ['connect ECONNREFUSED 127.0.0.1:6379', 'refused', 'count'],
    ['getaddrinfo ENOTFOUND redis', 'unknown_host', 'count'],
    ['malformed reply: an unknown type', 'protocol', 'count'],
    ['the script returned a reply in an unknown format', 'protocol', 'reconnect'],
    ['self-signed certificate', 'tls', 'count'],
    ["Hostname/IP does not match certificate's altnames", 'tls', 'count'],
    ['connect ETIMEDOUT', 'no_answer', 'count'],
    ['read ECONNRESET', 'lost', 'count'],
    ['the connection was closed', 'lost', 'count'],
    ['an unknown message', 'other', 'count'],
  ])('%j is the fault %s', (text, reason, reaction) => {
    expect(redisFaultOf(text)).toMatchObject({ reason, reaction });
  });
});

test('a sentence contains the remedy and the original message', () => {
  expect(faultSentence(PLACE, 'ERR DB index is out of range')).toBe(
    'it does not have database 3; choose another database in REDIS_URL (ERR DB index is out of range)',
  );
  expect(faultSentence({ ...PLACE, prefix: 'REDIS_PERSECOND' }, 'READONLY no')).toBe(
    'it is a replica and does not accept writes; set REDIS_PERSECOND_URL to the address of its master (READONLY no)',
  );
  expect(faultSentence({ ...PLACE, sentinel: true }, 'READONLY no')).toMatch(/weir queries the Sentinels/);
  expect(faultSentence(PLACE, 'no answer for 250 ms')).toMatch(
    /^it does not answer; check .* \(no answer for 250 ms\)$/,
  );
  expect(faultSentence(PLACE, 'something else')).toBe('something else');
  // The sentence does not depend on the slot.
  expect(faultSentence(PLACE, 'MOVED 6739 127.0.0.1:15609')).toBe(
    'it is a node of a Redis Cluster; set REDIS_TYPE=CLUSTER, or set REDIS_URL to a single Redis server (MOVED)',
  );
});
