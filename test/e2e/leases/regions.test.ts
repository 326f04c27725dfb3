/*
 * Two regions share the Redis in one of them, with the policy of docs/operate/leases.md. Replies of Redis reach the
 * other region 100 ms late.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { repositoryRoot } from '../../support/process/tools.js';
import { scrape, sumOf } from '../../support/prometheus/metrics-text.js';
import { startPausableProxy } from '../../support/redis/pausable-proxy.js';
import { startRedis } from '../../support/redis/redis-server.js';
import { startWeir } from '../../support/weir/weir.js';
import { largestBurst } from './bounds.js';
import { isAllowed, sendAtRandom } from './poisson.js';

const DELAY_MS = 100;
const SECONDS = 4;
const [CAPACITY, REFILL] = [1000, 400];

jest.setTimeout(120_000);

/** Returns the policy of the recipe. */
function recipe(): string {
  const page = readFileSync(join(repositoryRoot, 'docs/operate/leases.md'), 'utf8');
  return /```yaml\n(# regions\/.*?)```/s.exec(page)?.[1] ?? '';
}

test('G2: a region far from Redis decides most requests without a trip, and the limit holds', async () => {
  const redis = await startRedis();
  const far = await startPausableProxy(redis.port, (to, chunk) => {
    setTimeout(() => to.write(chunk), DELAY_MS);
  });
  const policy = recipe();
  const servers = await Promise.all(
    [redis.port, far.port].map((port) => startWeir({ policy, env: { REDIS_URL: `127.0.0.1:${port}` } })),
  );
  // Half of the limit. The first requests have no lease yet.
  const calm = await sendAtRandom(servers, { perSecond: 200, seconds: SECONDS });
  expect(calm.every(isAllowed)).toBe(true);
  const saved = sumOf((await scrape(servers[1]!))!, 'weir_lease_trips_saved_total');
  expect(saved).toBeGreaterThan(0.8 * (calm.length / 2));

  const flood = await sendAtRandom(servers, { perSecond: 1200, seconds: SECONDS });
  const allowed = [...calm, ...flood]
    .filter(isAllowed)
    .map(({ sentAt, answeredAt }) => ({ sentMs: sentAt, arrivedMs: answeredAt }));
  expect(allowed.length).toBeLessThan(calm.length + flood.length);
  expect(largestBurst(allowed, REFILL)).toBeLessThanOrEqual(CAPACITY);
});
