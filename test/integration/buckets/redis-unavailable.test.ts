/*
 * Tests the answers to operators if Redis becomes unavailable, or the policy changes, while they view or change
 * buckets.
 */

import { writeFileSync } from 'node:fs';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import type { BucketQuestion } from '../../../src/admin/buckets/messages.js';
import { entriesOf } from '../../support/buckets/admin-bench.js';
import { waitFor } from '../../support/process/wait-for.js';
import { type PausableProxy, startPausableProxy } from '../../support/redis/pausable-proxy.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { askBuckets, bucketsAnswer } from '../../support/weir/buckets.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';

const POLICY = `
domain: d
descriptors:
  - { key: tenant, rate_limit: { token_bucket: { max_tokens: 10, fill_interval: 1000h } } }
`;
const tenant = { entries: entriesOf('tenant=acme') };
const QUESTIONS: readonly BucketQuestion[] = [
  { action: 'show', ...tenant },
  { action: 'reset', ...tenant },
  { action: 'grant', ...tenant, tokens: 5 },
];

let redis: RedisServer;
let proxy: PausableProxy;
let server: WeirServer;
beforeAll(async () => {
  redis = await startRedis();
  proxy = await startPausableProxy(redis.port);
  server = await startWeir({
    policy: POLICY,
    env: { REDIS_URL: `127.0.0.1:${proxy.port}`, REDIS_TIMEOUT: '300ms' },
  });
});
afterEach(async () => {
  proxy.resume();
  await waitFor('Redis to be back', async () => (await bucketsAnswer(server, QUESTIONS[0])).status === 200);
});

test.each(QUESTIONS)('a connection that ends during $action', async (question) => {
  proxy.pause('replies');
  const asked = bucketsAnswer(server, question);
  await waitFor('Redis to have been asked', async () => proxy.received > 0);
  proxy.disconnect();
  const { status, body } = await asked;
  expect(status).toBe(503);
  expect(body.error).toMatch(question.action === 'show' ? /could not be read/ : /the result is unknown/);
});

test('a reload during a change does not affect the change', async () => {
  proxy.pause('replies');
  const asked = bucketsAnswer(server, { action: 'grant', ...tenant, tokens: 5 });
  await waitFor('Redis to have been asked', async () => proxy.received > 0);
  writeFileSync(server.policyPath ?? '', POLICY.replace('key: tenant', 'key: customer'));
  proxy.resume();
  expect(await asked).toMatchObject({
    status: 200,
    body: { buckets: [{ rule: 'tenant', now: { left: 10 } }] },
  });
  const meets = async (entries: string) =>
    (await askBuckets(server, { action: 'show', entries: entriesOf(entries) })).meets;
  await waitFor('the new policy', async () => (await meets('customer=acme')) === 'descriptor');
  expect(await meets('tenant=acme')).toBe('nothing');
  writeFileSync(server.policyPath ?? '', POLICY);
  await waitFor('the old policy', async () => (await meets('tenant=acme')) === 'descriptor');
});
