/* Tests connections to Sentinels: what the log and the console show, and how often weir connects. */

import { beforeEach, expect, test } from '@jest/globals';
import { mainRedis } from '../../src/server/store/redis-options.js';
import { waitFor } from '../support/process/wait-for.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { startSentinel } from '../support/redis/sentinels.js';
import { SingleRedisStore } from '../support/redis/single-stores.js';
import { settingsOf } from '../support/weir/settings.js';

let redis: RedisServer;
let log: string[];
beforeEach(async () => {
  log = [];
  redis = await startRedis();
});

async function sentinel(lines: readonly string[] = []): Promise<RedisServer> {
  return startSentinel({ masterName: 'mymaster', masterPort: redis.port, quorum: 1, lines });
}

function open(sentinelPort: number, environment: Record<string, string> = {}): SingleRedisStore {
  const settings = settingsOf({
    REDIS_TYPE: 'SENTINEL',
    REDIS_URL: `mymaster,127.0.0.1:${sentinelPort}`,
    ...environment,
  });
  return new SingleRedisStore({
    ...mainRedis(settings)!,
    log: (level, message) => log.push(`${level}: ${message}`),
  });
}

test('the log does not show the password that a Sentinel without AUTH repeats', async () => {
  const { port } = await sentinel(['rename-command AUTH ANOTHER']);
  open(port, { REDIS_SENTINEL_AUTH: 'hunter2' });
  await waitFor('the log', () => log.length > 0);
  expect(log).toEqual([expect.stringMatching(/ REDIS_SENTINEL_AUTH \(.*ERR unknown command 'AUTH'\)$/i)]);
});
