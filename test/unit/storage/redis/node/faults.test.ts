import { describe, expect, test } from '@jest/globals';
import { nodeFaultOf, nodeFaultText } from '../../../../../src/storage/redis/node/faults.js';

describe('the fault of a message', () => {
  test.each([
    ['connect ECONNREFUSED 127.0.0.1:6379', 'refused', 'count'],
    ['getaddrinfo ENOTFOUND redis', 'refused', 'count'],
    ['All sentinels are unreachable: connect ETIMEDOUT', 'refused', 'count'],
    ['read ECONNRESET', 'lost', 'count'],
    ['connect ETIMEDOUT', 'no_answer', 'count'],
    ['no answer for 500 ms', 'no_answer', 'count'],
    ['WRONGPASS invalid username-password pair', 'wrongpass', 'reconnect'],
    ['NOPERM this user has no permissions', 'wrongpass', 'wait'],
    ['self-signed certificate', 'tls', 'count'],
    ['Client network socket disconnected before secure TLS connection was established', 'tls', 'count'],
    ['MOVED 1 127.0.0.1:7000', 'moved', 'wait'],
    ['CLUSTERDOWN The cluster is down', 'moved', 'soon'],
    ['the Sentinels announced another master', 'moved', 'wait'],
    ["READONLY You can't write against a read only replica.", 'readonly', 'reconnect'],
    ['ERR Error running script: @user_script:1: -READONLY no writes', 'readonly', 'reconnect'],
    ['MASTERDOWN Link with MASTER is down', 'readonly', 'reconnect'],
    ['LOADING Redis is loading the dataset in memory', 'loading', 'wait'],
    ['MISCONF Redis is configured to save RDB snapshots', 'loading', 'wait'],
    ["OOM command not allowed when used memory > 'maxmemory'", 'oom', 'count'],
    ["ERR unknown command 'evalsha'", 'not_redis', 'wait'],
    ['Unknown RESP type 72 "H"', 'not_redis', 'wait'],
    ['the script returned a reply in an unknown format', 'not_redis', 'reconnect'],
    ['ERR max number of clients reached', 'max_clients', 'count'],
    ['BUSY Redis is busy running a script', 'loading', 'wait'],
    ['BUSYKEY Target key name already exists.', 'other', 'count'],
    ['NOREPLICAS Not enough good replicas to write.', 'loading', 'wait'],
    // For a command in a script: Redis 7.0 and 6.2.
    ["ERR The user executing the script can't run this command", 'wrongpass', 'wait'],
    [
      "ERR Error running script: @user_script:81: The user executing the script can't access",
      'wrongpass',
      'wait',
    ],
    ["NOTIME NOPERM this user has no permissions to run the 'time' command", 'not_redis', 'wait'],
    ['ERR Write commands not allowed after non deterministic commands', 'not_redis', 'wait'],
    ['DENIED Redis is running in protected mode', 'wrongpass', 'wait'],
    ['this address belongs to a proxy: ERR NOPERM', 'not_redis', 'wait'],
    ['ERR DB index is out of range', 'not_redis', 'wait'],
    ['ERR This instance has cluster support disabled', 'not_redis', 'wait'],
    ['no node of the Redis Cluster has slots', 'moved', 'soon'],
    ['no node of the Redis Cluster answers: connect ECONNREFUSED 127.0.0.1:1', 'refused', 'count'],
    ['anything else', 'other', 'count'],
  ])('%s', (message, label, reaction) => {
    expect(nodeFaultOf(message)).toMatchObject({ label, reaction });
  });
});

test('the log contains what to check, and the message', () => {
  expect(nodeFaultText('connect ECONNREFUSED 127.0.0.1:1', 'REDIS_PERSECOND')).toBe(
    'no server listens at this address; start Redis, or correct REDIS_PERSECOND_URL (connect ECONNREFUSED 127.0.0.1:1)',
  );
  expect(nodeFaultText('the Sentinels announced another master', 'REDIS')).toBe(
    'a failover has replaced this master, and weir connects to the new master (the Sentinels announced another master)',
  );
  // The text does not depend on the slot.
  expect(nodeFaultText('MOVED 6739 127.0.0.1:15609', 'REDIS')).toBe(
    'if this server is a node of a Redis Cluster, set REDIS_TYPE=CLUSTER (MOVED)',
  );
});
