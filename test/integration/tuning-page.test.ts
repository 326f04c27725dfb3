/*
 * Tests the figures of docs/operate/tuning.md about Redis: the memory of a bucket, and the calls per decision. Figures
 * depend on the version of Redis and the number of keys, so a quarter of deviation is allowed.
 */
import { expect, test } from '@jest/globals';

import { pageText } from '../support/docs/pages.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { descriptor } from '../support/policy/decider.js';
import { toolPath } from '../support/process/tools.js';
import { redisClient } from '../support/redis/redis-client.js';
import { measureBucketMemory } from '../support/redis/redis-memory.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startWeir } from '../support/weir/weir.js';

/** Rows of the page's table: kind, length of the name, bytes of a key, bytes of growth. */
const rows = [
  ...pageText('docs/operate/tuning.md').matchAll(
    /^\| (token bucket|window) \| (\d+) \| (\d+) \| (\d+) \|$/gm,
  ),
].map(([, kind = '', ...numbers]) => ({ kind, numbers: numbers.map(Number) }));

test('a bucket uses as much memory of Redis as the page says', async () => {
  expect(rows.length).toBe(4);
  const nameLengths = [...new Set(rows.map(({ numbers }) => numbers[0] as number))];
  const measured = await measureBucketMemory(toolPath('redis-server'), 3000, nameLengths);
  const beyond = rows.flatMap(({ kind, numbers: [nameLength, usage = 0, growth = 0] }) => {
    const found = measured.find((one) => one.kind === kind && one.nameLength === nameLength);
    const isNear = (real: number | undefined, shown: number) =>
      real !== undefined && Math.abs(real - shown) <= shown / 4;
    return isNear(found?.usageBytes, usage) && isNear(found?.grownBytes, growth) ? [] : [{ kind, found }];
  });
  expect(beyond).toEqual([]);
});

test('a request is one call, and requests that wait together share one', async () => {
  const server = await startRedis();
  const redis = redisClient(server.port);
  const weir = await startWeir({
    policy: `domain: d
descriptors:
  - { key: k, rate_limits: [{ name: a, unit: day, requests_per_unit: 9000 }, { name: b, unit: hour, requests_per_unit: 9000 }] }
`,
    env: { REDIS_URL: `127.0.0.1:${server.port}` },
  });
  const client = new RlsClient(weir.grpcPort);
  const ask = () => client.ask('d', [descriptor(['k=v'])]);
  const calls = async () =>
    Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1]);
  await ask();
  const first = await calls();
  for (let i = 0; i < 20; i++) await ask();
  expect((await calls()) - first).toBe(20);
  await Promise.all(Array.from({ length: 100 }, ask));
  expect((await calls()) - first - 20).toBeLessThan(50);
});
