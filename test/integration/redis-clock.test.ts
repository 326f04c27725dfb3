/* Tests Redis servers that hide the time from scripts, which need it. */
import { describe, expect, test } from '@jest/globals';

import type { StorageError } from '../../src/limiter/bucket-store.js';
import { parseRedisUrl } from '../../src/storage/redis/connection/redis-address.js';
import { REDIS } from '../support/limiter/store-options.js';
import { HUNDRED, takeItem } from '../support/limiter/take-items.js';
import { toolPath } from '../support/process/tools.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { startRedis } from '../support/redis/redis-server.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';

const USER = { username: 'weir', password: 'pw' };
const LOGIN = `${USER.username}:${USER.password}@`;

describe.each(['redis-server', 'redis-server-old', 'valkey-server'] as const)('%s', (tool) => {
  test.each([
    ['whose user may not ask for the time', ['+@all', '-time'], LOGIN, []],
    ['that has no TIME', ['+@all'], '', ['--rename-command', 'TIME', '']],
  ])('%s: fails with an error that says what to do', async (_, rights, login, args) => {
    const server = await startRedis({ args, binary: toolPath(tool) });
    const admin = redisClient(server.port);
    await admin.call('ACL', 'SETUSER', USER.username, 'on', `>${USER.password}`, '~*', ...rights);
    const log: string[] = [];
    const faults: string[] = [];
    const store = new SingleRedisStore({
      ...REDIS,
      address: parseRedisUrl(`redis://${login}127.0.0.1:${server.port}`),
      log: (level, message) => log.push(`${level}: ${message}`),
      observeFault: (fault) => faults.push(fault),
    });
    await waitFor('the fault', () => faults.includes('not_redis'));
    const result = await store.take([takeItem('a', HUNDRED)], Infinity);
    expect((result as StorageError).reason).toMatch(/breaker_open|disconnected/);
    expect(log[0]).toMatch(/does not allow scripts to read the time \(TIME\).*; grant \+time/);
  });
});
