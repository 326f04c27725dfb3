/*
 * Runs every query of the dashboards of deploy/grafana on a real Prometheus that scrapes real servers under load: one
 * with Redis and two workers, one in memory, and one without its Redis. Each query must return numbers.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import { entriesOf } from '../../support/buckets/admin-bench.js';
import { manualPages, pageText } from '../../support/docs/pages.js';
import { RlsClient } from '../../support/grpc/rls-client.js';
import { descriptor } from '../../support/policy/decider.js';
import { freePorts } from '../../support/process/free-port.js';
import { optionalToolPath } from '../../support/process/tools.js';
import { waitFor } from '../../support/process/wait-for.js';
import { shippedDashboards, withAll } from '../../support/prometheus/dashboard.js';
import { type PrometheusServer, startPrometheus } from '../../support/prometheus/prometheus.js';
import { redisClient } from '../../support/redis/redis-client.js';
import { type RedisServer, startRedis } from '../../support/redis/redis-server.js';
import { askBuckets } from '../../support/weir/buckets.js';
import { startWeir, type WeirServer } from '../../support/weir/weir.js';
import { metric, untilAllServe } from '../../support/weir/workers.js';

const bucket = (tokens: number) => `{ token_bucket: { max_tokens: ${tokens}, fill_interval: 1s } }`;
const policyWith = (source: string) => `domain: d
plans: { by: plan_of, from: "${source}" }
descriptors:
  - { key: tenant, rate_limit: ${bucket(5)} }
  - { key: tried, phase: monitoring, rate_limit: ${bucket(5)} }
  - { key: soft, rate_limit: { unit: day, requests_per_unit: 1, on_over: { allow: true } } }
  - { key: spilling, rate_limits: [{ name: plan, unit: day, requests_per_unit: 1, then: credits }, { name: credits, unit: day, requests_per_unit: 4000000000 }] }
  - { key: plan_of, rate_limit: { unit: day, requests_per_unit: { plan: calls, default: 1 } } }
  - { key: charged, rate_limit: { unit: day, requests_per_unit: 9, allow_debt: true, max_debt: 4 } }
  - { key: lenient, rate_limit: { unit: day, requests_per_unit: 9, on_store_failure: allow } }
  - { key: llm, rate_limit: { token_bucket: { max_tokens: 1000000, fill_interval: 1s }, hold: { amount: 5 } } }
  - { key: path, value_regex: '.*a.{400}b', rate_limit: ${bucket(5)} }
`;
const ENV = { BUCKET_USED_RATIO_TOP: '10', USE_DOG_STATSD: 'true', TOP_BUCKETS: '100' };
const COSTLY = Array.from({ length: 60_000 }, (_, at) =>
  Math.imul(at, 2_654_435_761) & 4096 ? 'a' : 'c',
).join('');
const RATE_INTERVAL = '5s';

const queries = [...shippedDashboards()].flatMap(([file, dashboard]) =>
  dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ refId, expr }) => ({
      what: `${file}: ${title}, ${refId}`,
      // Removes the default value, which would hide missing data.
      text: withAll(expr, dashboard, RATE_INTERVAL).replace(/ or vector\(0\)$/, ''),
    })),
  ),
);

test('the dashboards have queries', () => expect(queries.length).toBeGreaterThan(60));

(optionalToolPath('prometheus') === undefined ? describe.skip : describe)('a real Prometheus', () => {
  let redis: RedisServer;
  let prometheus: PrometheusServer;
  const weirs: WeirServer[] = [];
  const clients: RlsClient[] = [];
  let loaded: Promise<void> | undefined;
  let isOver = false;

  /** Makes one of each kind of call. */
  async function round(client: RlsClient): Promise<void> {
    for (let call = 0; call < 10; call++) {
      await client.ask('d', [descriptor(['tenant=acme']), descriptor(['tried=acme'])]);
    }
    await client.ask('d', [descriptor(['soft=acme'])]);
    await client.ask('d', [descriptor(['spilling=acme'])]);
    await client.ask('d', [descriptor(['charged=acme'])], { hitsAddend: 20 });
    await client.ask('d', [descriptor(['tenant=acme', 'plan=x'])]);
    await client.ask('d', [descriptor(['lenient=acme'])]);
    const { response } = await client.ask('d', [descriptor(['llm=acme'])]);
    const token = String(response?.dynamicMetadata?.['hold']);
    // The second call settles nothing.
    for (let call = 0; call < 2; call++)
      await client.ask('d', [descriptor([`hold=${token}`], { hitsAddend: 8 })]);
    await client.ask('other', [descriptor(['tenant=acme'])]);
    await client.ask('', []);
    await client.ask('d', [descriptor([`path=${COSTLY}`])]);
    await Promise.all(
      Array.from({ length: 100 }, (_, at) => client.ask('d', [descriptor([`tenant=${at}`])])),
    );
  }

  beforeAll(async () => {
    redis = await startRedis();
    const [nobody = 0] = await freePorts(1);
    const withRedis = { REDIS_URL: `127.0.0.1:${redis.port}`, REDIS_MAX_IN_FLIGHT: '10', WORKERS: '2' };
    const rows = redisClient(redis.port);
    await rows.hset('plans', 'acme', '{"calls":1}');
    const plans = { PLANS_POLL_INTERVAL: '200ms' };
    for (const env of [withRedis, {}, { REDIS_URL: `127.0.0.1:${nobody}` }]) {
      const isAway = 'REDIS_URL' in env && env !== withRedis;
      const weir = await startWeir({
        policy: policyWith(`redis://127.0.0.1:${redis.port}/plans`),
        env: { ...ENV, ...plans, ...env },
        untilHealthy: !isAway,
      });
      weirs.push(weir);
      clients.push(new RlsClient(weir.grpcPort));
    }
    await waitFor('rows in each weir', async () => {
      const counts = await Promise.all(weirs.map((weir) => metric(weir, 'weir_plan_rows{domain="d"}')));
      return counts.every((count) => count === 1);
    });
    // From now on, each weir counts failures.
    await rows.del('plans');
    await untilAllServe(weirs[0] as WeirServer);
    prometheus = await startPrometheus({ targets: weirs.map(({ httpPort }) => httpPort), interval: '500ms' });
    loaded = (async () => {
      while (!isOver) {
        for (const client of clients) await round(client);
        await askBuckets(weirs[0] as WeirServer, { action: 'show', entries: entriesOf('tenant=acme') });
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
  });

  afterAll(async () => {
    isOver = true;
    await loaded;
  });

  test.each(queries)('answers $what', async ({ text }) => {
    const values = await waitFor(`numbers from ${text}`, async () => {
      const found = (await prometheus.query(text)).map(({ value }) => value).filter(Number.isFinite);
      return found.length > 0 ? found : undefined;
    });
    expect(values.length).toBeGreaterThan(0);
  });

  test.each(manualPages().filter((page) => /^docs\/(?:runbooks|operate\/metrics)/.test(page)))(
    'accepts the queries of %s',
    async (page) => {
      const blocks = [...pageText(page).matchAll(/^```promql\n(.*?)^```/gms)].map(([, text = '']) => text);
      const lines = blocks.flatMap((text) => text.split('\n').filter((line) => !/^(?:#.*)?$/.test(line)));
      expect(lines.length).toBeGreaterThan(0);
      // The query reports what is wrong with a line that Prometheus does not accept.
      for (const line of lines) await prometheus.query(line);
    },
  );
});
