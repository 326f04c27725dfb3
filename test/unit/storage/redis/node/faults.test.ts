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
    ['anything else', 'other', 'count'],
  ])('%s', (message, label, reaction) => {
    expect(nodeFaultOf(message)).toMatchObject({ label, reaction });
  });
});

test('the log contains what to check, and the message', () => {
  expect(nodeFaultText('connect ECONNREFUSED 127.0.0.1:1', 'REDIS_PERSECOND')).toBe(
    'no server listens at this address; start Redis, or correct REDIS_PERSECOND_URL (connect ECONNREFUSED 127.0.0.1:1)',
  );
});
