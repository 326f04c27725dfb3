/*
 * Tests how operators view and change buckets over HTTP, in memory, on Redis, on a cluster, and with workers. Decisions
 * must show the changes.
 */
import { writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { BucketAction, BucketQuestion } from '../../../src/admin/buckets/messages.js';
import { CODE } from '../../../src/codec/messages.js';
import { entriesOf } from '../../support/buckets/admin-bench.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type RedisCluster, startCluster } from '../../support/redis/cluster.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { askBuckets, bucketsAnswer } from '../../support/weir/buckets.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { metric } from '../../support/weir/workers.js';

const policyWith = (mallory: string) => `
domain: d
plans: { by: customer, define: { gold: { max: 9, blocked: false }, mallory: ${mallory} } }
descriptors:
  - key: customer
    rate_limits:
      - { name: slots, concurrency: { max: { plan: max, default: 1 }, expires_after: 1h } }
      - { name: calls, unit: year, requests_per_unit: { plan: max, default: 1 }, max_debt: 0, hold: { amount: 1, expires_after: 1h } }
      - { name: fixed, unit: year, requests_per_unit: 9 }
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 10, fill_interval: 1000h } }
    descriptors:
      - { key: shadow, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: stream, rate_limit: { concurrency: { max: 10 } } }
  - key: llm
    rate_limit:
      token_bucket: { max_tokens: 1000, fill_interval: 100h }
      hold: { amount: 100, expires_after: 10m }
`;
const POLICY = policyWith('{ max: 3 }');

let redis: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [redis, cluster] = await Promise.all([startRedis(), startCluster()]);
});

const STORES = ['memory', 'Redis with two workers', 'Redis Cluster with two workers'];
describe.each(STORES)('%s', (store) => {
  let server: WeirServer;
  let client: RlsClient;
  const env = () => ({
    ...(store !== 'memory' && {
      REDIS_URL: `127.0.0.1:${redis.port}`,
      CACHE_KEY_PREFIX: store.replaceAll(' ', ''),
    }),
    ...(store.includes('Cluster') && { REDIS_TYPE: 'CLUSTER', REDIS_URL: cluster.url }),
    ...(store.includes('two') && { WORKERS: '2' }),
  });
  beforeAll(async () => {
    server = await startWeir({ policy: POLICY, env: env() });
    client = new RlsClient(server.grpcPort);
  });

  const ask = (action: BucketAction, entries: string, more: Partial<BucketQuestion> = {}) =>
    askBuckets(server, { action, entries: entriesOf(entries), ...more });
  const take = async (entries: string, hitsAddend = 1) => {
    const { response } = await client.ask('d', [descriptor(entries.split(','))], { hitsAddend });
    return response?.overallCode;
  };
  const until = (entries: string, code: number) =>
    waitFor(`the answer ${code} for ${entries}`, async () => (await take(entries)) === code);

  test('shows, resets and grants, in all processes', async () => {
    await take('tenant=a', 7);
    expect((await ask('show', 'tenant=a')).buckets).toMatchObject([{ rule: 'tenant', now: { left: 3 } }]);
    const reset = await ask('reset', 'tenant=a');
    expect(reset.buckets).toMatchObject([{ before: { left: 3 }, now: { left: 10 } }]);
    expect(await take('tenant=a', 10)).toBe(CODE.OK);
    expect(await take('tenant=a')).toBe(CODE.OVER_LIMIT);
    const dry = await ask('grant', 'tenant=a', { tokens: 2, dry_run: true });
    expect(dry.buckets).toMatchObject([{ before: { left: 0 }, now: { left: 2 } }]);
    expect(await take('tenant=a')).toBe(CODE.OVER_LIMIT);
    expect((await ask('grant', 'tenant=a', { tokens: 2 })).buckets).toMatchObject([{ now: { left: 2 } }]);
    await until('tenant=a', CODE.OK);
  });

  test('logs who did what, and counts it', async () => {
    await ask('grant', 'tenant=audited', { tokens: 2 });
    const lines = () => server.log().filter(({ msg }) => msg === 'an operator requested a change');
    await waitFor('the line', async () => JSON.stringify(lines()).includes('audited'));
    expect(lines().at(-1)).toMatchObject({
      action: 'grant',
      by: 'loopback',
      peer: '127.0.0.1',
      domain: 'd',
      entries: entriesOf('tenant=audited'),
      buckets: [{ rule: 'tenant', before: { left: 10 }, after: { left: 10 } }],
      result: 'ok',
    });
  });

  test('shows the requests in flight', async () => {
    const inFlight = async () =>
      (await ask('show', 'stream=a')).buckets.map(({ now }) => [now?.in_flight, now?.left, now?.full_in]);
    expect(await inFlight()).toEqual([[0, 10, null]]);
    await take('stream=a', 2);
    const { response } = await client.ask('d', [descriptor(['stream=a'])]);
    expect(await inFlight()).toEqual([[3, 7, null]]);
    await take(`hold=${response?.dynamicMetadata?.['hold']}`);
    expect(await inFlight()).toEqual([[2, 8, null]]);
  });

  test('lists the holds of requests, and releases one or all of them', async () => {
    for (const entries of ['stream=held', 'llm=held']) {
      const bucketOf = async () => (await ask('show', entries)).buckets[0];
      const tokens: unknown[] = [];
      for (let i = 0; i < 3; i++) {
        const { response } = await client.ask('d', [descriptor([entries])]);
        tokens.push(response?.dynamicMetadata?.['hold']);
      }
      const held = await bucketOf();
      const lifetime = entries === 'llm=held' ? 600 : 60;
      const amount = entries === 'llm=held' ? 100 : 1;
      expect(held?.holds?.list).toHaveLength(3);
      for (const hold of held?.holds?.list ?? []) {
        expect(hold.amount).toBe(amount);
        expect(hold.age + hold.ends_in).toBeCloseTo(lifetime);
      }
      const hold = held?.holds?.list[0]?.id ?? '';
      const one = await ask('release', entries, { hold });
      expect(one.buckets).toMatchObject([{ released: 1, now: { left: (held?.now?.left ?? 0) + amount } }]);
      expect(
        await bucketsAnswer(server, { action: 'release', entries: entriesOf(entries), hold }),
      ).toMatchObject({
        status: 404,
        body: { error: expect.stringContaining('these buckets have no hold with this ID') },
      });
      const all = await ask('release', entries, { all: true });
      expect(all.buckets).toMatchObject([{ released: 2, now: { left: held?.limit } }]);
      // The end of a request whose hold was released has no effect.
      for (const token of tokens) await take(`hold=${token}`, 70);
      expect(await bucketOf()).toMatchObject({ now: { left: held?.limit }, holds: { list: [], more: 0 } });
    }
    const released = 'weir_holds_released_total{domain="d",rule="llm"}';
    await waitFor('the metric', async () => (await metric(server, released)) === 3);
  });

  test('changes the buckets of a blocked customer', async () => {
    const write = (mallory: string) => writeFileSync(server.policyPath as string, policyWith(mallory));
    for (let i = 0; i < 3; i++) await take('customer=mallory');
    write('{ max: 3, blocked: true }');
    // Both workers deny 0 hits.
    const isBlocked = async () => {
      const { buckets } = await ask('show', 'customer=mallory');
      return (await take('customer=mallory', 0)) === CODE.OVER_LIMIT && buckets[0]?.limit === 0;
    };
    await waitFor('the block', async () => (await isBlocked()) && (await isBlocked()));
    const released = await ask('release', 'customer=mallory', { all: true });
    expect(released.buckets).toMatchObject([
      { name: 'slots', released: 3, before: { in_flight: 3 }, now: { in_flight: 0, left: 3 } },
      { name: 'calls', released: 3, before: { left: 0 }, now: { left: 3 } },
    ]);
    const granted = await ask('grant', 'customer=mallory', { rule: 'fixed', tokens: 1 });
    expect(granted.buckets).toMatchObject([{ before: { left: 6 }, now: { left: 7 } }]);
    write('{ max: 3 }');
    await waitFor('the free slots', async () => (await take('customer=mallory', 3)) === CODE.OK);
    const { buckets } = await ask('show', 'customer=mallory');
    expect(buckets).toMatchObject([
      { now: { in_flight: 3 } },
      { holds: { list: [{ amount: 1 }] } },
      { now: { left: 4 } },
    ]);
  });
});
