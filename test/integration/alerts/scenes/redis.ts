/* One weir with a real Redis that fails in several ways. */
import { descriptor } from '../../../support/policy/decider.js';
import { waitFor } from '../../../support/process/wait-for.js';
import { type Scrape, sumOf } from '../../../support/prometheus/metrics-text.js';
import type { SnapshotPair } from '../../../support/prometheus/rule-tests.js';
import { redisCommand } from '../../../support/redis/redis-command.js';
import { type RedisServer, startRedis } from '../../../support/redis/redis-server.js';
import { startWeir } from '../../../support/weir/weir.js';
import { beside, renamed, type Scene, Watched } from './scene.js';

const POLICY = `domain: d
descriptors:
  - { key: calm, rate_limit: { token_bucket: { max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1h } } }
  - { key: kept, rate_limit: { on_store_failure: local, token_bucket: { max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1h } } }
`;
/** Longer than Envoy's default timeout. */
const PAUSE_MS = 40;

export function redisScene(): Scene {
  let redis: RedisServer;
  let weir: Watched;
  let good: SnapshotPair;
  let away: SnapshotPair;
  const grown = ([before, after]: SnapshotPair, metric: string, part = ''): number =>
    sumOf(after['weir-0'] as Scrape, metric, part) - sumOf(before['weir-0'] as Scrape, metric, part);
  return {
    name: 'buckets in Redis',
    async open() {
      redis = await startRedis();
      const env = {
        REDIS_URL: `127.0.0.1:${redis.port}`,
        REDIS_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
        REDIS_MAX_IN_FLIGHT: '10',
        DENY_CACHE_MAX_ENTRIES: '1',
      };
      weir = new Watched(await startWeir({ policy: POLICY, env }));
      good = await waitFor('a moment in which every answer is quick', async () => {
        const pair = await weir.around(() => weir.usual());
        const late =
          grown(pair, 'weir_request_duration_seconds_count') -
          grown(pair, 'weir_request_duration_seconds_bucket', 'le="0.02"');
        return late === 0 ? pair : undefined;
      });
    },
    scenarios: [
      {
        name: 'a Redis that is slow',
        fires: ['WeirSlowAnswers'],
        observe: async () => ({
          good,
          bad: await weir.around(async () => {
            for (let call = 0; call < 10; call++) {
              await redisCommand(redis, 'CLIENT', 'PAUSE', String(PAUSE_MS), 'ALL');
              await weir.ask(1, 'calm=x');
            }
          }),
        }),
      },
      {
        name: 'more requests at once than may wait for Redis',
        fires: ['WeirRequestsGivenUp'],
        observe: async () => ({
          good,
          bad: await waitFor('requests that find no room', async () => {
            const pair = await weir.around(async () => {
              await weir.usual();
              await Promise.all(
                Array.from({ length: 100 }, (_, at) => weir.client.ask('d', [descriptor([`calm=${at}`])])),
              );
            });
            return grown(pair, 'weir_requests_given_up_total') > 0 ? pair : undefined;
          }),
        }),
      },
      {
        name: 'a user of Redis that may not read buckets',
        fires: [
          ...['WeirCallsRefused', 'WeirNotServing', 'WeirRedisLoginRefused', 'WeirStoreDown'],
          'WeirStoreFailureAnswers',
        ],
        async observe() {
          await redisCommand(redis, 'ACL', 'SETUSER', 'default', '-mget');
          const bad = await waitFor('refusals', async () => {
            const pair = await weir.around(() => weir.usual());
            const isDown = sumOf(pair[0]['weir-0'] as Scrape, 'weir_store_up') === 0;
            return isDown && grown(pair, 'weir_redis_faults_total', 'reason="wrongpass"') > 0
              ? pair
              : undefined;
          });
          await redisCommand(redis, 'ACL', 'SETUSER', 'default', '+mget');
          await waitFor('Redis to decide again', async () => {
            const { 'weir-0': seen } = await weir.shot();
            return sumOf(seen as Scrape, 'weir_store_up') === 1 || undefined;
          });
          return { good, bad };
        },
      },
      {
        name: 'a Redis that is unavailable',
        fires: [
          ...['WeirCallsRefused', 'WeirNotServing', 'WeirRedisFaults', 'WeirStoreDown'],
          'WeirStoreFailureAnswers',
        ],
        async observe() {
          await redis.kill();
          const sum = async (metric: string) => sumOf((await weir.shot())['weir-0'] as Scrape, metric);
          await waitFor('the loss', async () => {
            await weir.usual();
            return (await sum('weir_store_up')) === 0 || undefined;
          });
          away = await weir.aroundRefusals(async () => {
            await weir.usual();
            await weir.ask(10, 'kept=x');
          });
          return { good, bad: away };
        },
      },
      {
        name: 'a Redis that one of two servers cannot reach',
        fires: [
          ...['WeirCallsRefused', 'WeirInstanceNotServing', 'WeirRedisFaults'],
          ...['WeirStoreDown', 'WeirStoreFailureAnswers'],
        ],
        observe: async () => ({
          good: beside(good, renamed(good, 'weir-1')),
          bad: beside(away, renamed(good, 'weir-1')),
        }),
      },
    ],
  };
}
