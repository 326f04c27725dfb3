/*
 * Replays the decision logs of real servers: with the time of each decision in the log, a replay decides as the servers
 * did, also at the edges of windows, and with several servers that share a Redis.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import type { Report } from '../../src/replay/report.js';
import { RlsClient } from '../support/grpc/rls-client.js';
import { seededRandom } from '../support/limiter/seeded-random.js';
import { descriptor } from '../support/policy/decider.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { startRedis } from '../support/redis/redis-server.js';
import { CommandHost } from '../support/weir/commands.js';
import { startWeir } from '../support/weir/weir.js';

const POLICY = `domain: shop
descriptors:
  - { key: window, rate_limit: { unit: second, requests_per_unit: 20 } }
  - { key: bucket, rate_limit: { token_bucket: { max_tokens: 20, tokens_per_fill: 3, fill_interval: 100ms } } }
  - key: both
    rate_limits:
      - { name: window, unit: second, requests_per_unit: 25 }
      - { name: bucket, token_bucket: { max_tokens: 30, tokens_per_fill: 7, fill_interval: 200ms } }
`;
const REQUESTS = 4000;
/** Number of requests at a time. */
const PARALLEL = 20;

const folder = new TempDir();
const host = new CommandHost();
folder.write('policy.yaml', POLICY);

test.each([
  ['in memory', 1],
  ['in a Redis that two servers share', 2],
])('the decisions of buckets %s', async (_, servers) => {
  const redis = servers > 1 ? await startRedis() : undefined;
  const logs = Array.from({ length: servers }, (__, at) => folder.join(`${servers}-${at}.jsonl`));
  const weirs = await Promise.all(
    logs.map((DECISION_LOG_FILE) =>
      startWeir({
        policy: POLICY,
        env: {
          DECISION_LOG_SAMPLE: 'denied=1,ok=1',
          DECISION_LOG_FILE,
          // Cached denials have the time of the process.
          DENY_CACHE_MAX_AGE: '0s',
          ...(redis !== undefined && { REDIS_URL: `redis://127.0.0.1:${redis.port}`, REDIS_TIMEOUT: '20s' }),
        },
      }),
    ),
  );
  const clients = weirs.map(({ grpcPort }) => new RlsClient(grpcPort));
  const random = seededRandom(54);
  const pick = (count: number) => Math.floor(random() * count);
  let asked = 0;
  let denied = 0;
  const send = async (): Promise<void> => {
    while (asked < REQUESTS) {
      asked++;
      const key = ['window', 'bucket', 'both'][pick(3)];
      const descriptors = [descriptor([`${key}=${pick(6)}`])];
      if (random() < 0.3) descriptors.push(descriptor([`window=${pick(6)}`]));
      const { response } = await (clients[pick(servers)] as RlsClient).ask('shop', descriptors);
      if (response?.overallCode === 2) denied++;
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, send));
  for (const client of clients) client.close();
  const lines = () => logs.reduce((sum, log) => sum + readFileSync(log, 'utf8').split('\n').length - 1, 0);
  await waitFor('the decision logs', () => lines() === REQUESTS || undefined);

  const args = ['replay', '--policy', 'policy.yaml', '--json', 'report.json', ...logs];
  expect(await host.run({ args, folder: folder.path })).toMatchObject({ code: 0, stderr: '' });
  const { total, rules, doubt } = JSON.parse(readFileSync(folder.join('report.json'), 'utf8')) as Report;
  expect(denied).toBeGreaterThan(0);
  expect(doubt).toBeNull();
  const same = { newlyDenied: 0, newlyAllowed: 0 };
  expect(total).toEqual({ requests: REQUESTS, before: denied, after: denied, ...same });
  expect(rules).toMatchObject(rules.map(() => same));
});
