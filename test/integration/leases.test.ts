import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../src/codec/messages.js';
import { windowRate } from '../../src/limiter/fixed-window.js';
import type { Store } from '../../src/server/store/store.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { takeItem } from '../support/limiter/take-items.js';
import { takeFrom } from '../support/limiter/test-stores.js';
import { httpRequest } from '../support/process/http-client.js';
import { waitFor } from '../support/process/wait-for.js';
import { redisClient } from '../support/redis/redis-client.js';
import { startRedis } from '../support/redis/redis-server.js';
import { openStoreOf } from '../support/weir/settings.js';
import { startWeir } from '../support/weir/weir.js';

const POLICY = `
domain: busy
descriptors:
  - key: tenant
    rate_limit: { unit: year, requests_per_unit: 300 }
`;

describe('a server with LEASE_FOR', () => {
  test('G1: decides most requests of a busy bucket without Redis, and never more than the limit', async () => {
    const redis = await startRedis();
    const env = { REDIS_URL: `127.0.0.1:${redis.port}`, LEASE_FOR: '10s', LEASE_MAX: '50' };
    const server = await startWeir({ policy: POLICY, env });
    const client = new RlsClient(server.grpcPort);
    const admin = redisClient(redis.port);
    const descriptor = {
      entries: [{ key: 'tenant', value: 'acme' }],
      limit: undefined,
      hitsAddend: 1,
      isNegativeHits: false,
    };
    await admin.config('RESETSTAT');
    let allowed = 0;
    for (let i = 0; i < 400; i++) {
      const { response } = await client.ask('busy', [descriptor]);
      if (response?.overallCode === CODE.OK) allowed++;
    }
    // Leases that lapse are lost, but within 10 s they hardly do.
    expect(allowed).toBeLessThanOrEqual(300);
    expect(allowed).toBeGreaterThan(200);
    const calls = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1]);
    expect(calls).toBeLessThan(100);
    const { body } = await httpRequest(server.httpPort, '/metrics');
    expect(Number(/^weir_lease_trips_saved_total (\d+)$/m.exec(body)?.[1])).toBeGreaterThan(150);
  });
});

test('a process ends its leases after a reload, and after an operator filled a bucket in another process', async () => {
  const rate = windowRate('year', 10_000, {
    lease: { forMicros: 10_000_000, max: 100 },
    countsOnlyAllowed: true,
  });
  const redis = await startRedis();
  const open = (): Store => openStoreOf({ REDIS_URL: `127.0.0.1:${redis.port}` });
  const [one, other] = [open(), open()];
  await waitFor('both to be up', () => one.up() && other.up());
  await waitFor('a lease', async () => {
    await takeFrom(other.buckets, takeItem('a', rate));
    return other.leasedTokens('a') > 0;
  });
  expect(await one.announceFilled()).toBeUndefined();
  await waitFor('its end', () => other.leasedTokens('a') === 0);
  expect(other.leaseStats().tokensLapsed).toBeGreaterThan(0);
  await waitFor('another lease', async () => {
    await takeFrom(other.buckets, takeItem('a', rate));
    return other.leasedTokens('a') > 0;
  });
  other.reloaded();
  expect(other.leasedTokens('a')).toBe(0);
  for (const store of [one, other]) await store.close();
});
