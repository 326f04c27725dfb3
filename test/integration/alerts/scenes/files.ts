/*
 * A weir that starts with an invalid file, reads a table of plans in Redis, and sends traces to a collector, and a
 * second weir whose statistics cannot be sent.
 */
import { type OtlpReceiver, startOtlpReceiver } from '../../../support/otlp/otlp-receiver.js';
import { TempDir } from '../../../support/process/temp-dir.js';
import { waitFor } from '../../../support/process/wait-for.js';
import { type Scrape, sumOf } from '../../../support/prometheus/metrics-text.js';
import type { SnapshotPair } from '../../../support/prometheus/rule-tests.js';
import { type RedisServer, startRedis } from '../../../support/redis/redis-server.js';
import { startWeir } from '../../../support/weir/weir.js';
import { beside, CALM, changed, renamed, type Scene, Watched } from './scene.js';

export function filesScene(): Scene {
  const folder = new TempDir();
  let weir: Watched;
  let collector: OtlpReceiver;
  let redis: RedisServer;
  let policies: NodeJS.ProcessEnv;
  let good: SnapshotPair;
  let atStart: SnapshotPair;
  const usual = (of = weir): Promise<SnapshotPair> => of.around(() => of.usual());
  /** Returns a pair of moments between which a counter has increased. */
  const untilGrown = (of: Watched, metric: string, part: string): Promise<SnapshotPair> =>
    waitFor(`${metric} to grow`, async () => {
      const pair = await usual(of);
      const [before = 0, after = 0] = pair.map((shot) => sumOf(shot['weir-0'] as Scrape, metric, part));
      return after > before ? pair : undefined;
    });
  return {
    name: 'files and receivers',
    async open() {
      collector = await startOtlpReceiver('http');
      folder.write('policies/d.yaml', `domain: d\n${CALM}`);
      folder.write('policies/shop.yaml', 'domain: shop\ndescripters: []\n');
      redis = await startRedis();
      folder.write(
        'policies/plans.yaml',
        `domain: plans\nplans: { by: tenant, from: "redis://127.0.0.1:${redis.port}/plans" }\n` +
          'descriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: { plan: calls, default: 1 } } }]\n',
      );
      policies = { CONFIG_PATH: folder.join('policies') };
      const env = {
        ...policies,
        TRACING_ENABLED: 'true',
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
      };
      weir = new Watched(await startWeir({ env }));
      atStart = await usual();
      folder.write('policies/shop.yaml', `domain: shop\n${CALM}`);
      await waitFor('the reload', async () => {
        const { 'weir-0': seen } = await weir.shot();
        return seen?.values.get('weir_config_last_reload_successful') === 1;
      });
      good = await usual();
    },
    scenarios: [
      {
        name: 'a domain that was bad at the start',
        fires: ['WeirDomainAbsent', 'WeirPolicyReloadFailed'],
        observe: async () => ({ good, bad: atStart }),
      },
      {
        name: 'replicas that have loaded different policies',
        fires: ['WeirDomainAbsent', 'WeirPoliciesDiffer', 'WeirPolicyReloadFailed'],
        observe: async () => ({
          good: beside(good, renamed(good, 'weir-1')),
          bad: beside(good, renamed(atStart, 'weir-1')),
        }),
      },
      {
        name: 'a table of plans that cannot be read for a long time',
        fires: ['WeirPlanSourceStale'],
        // The test does not wait for minutes: the series comes from a real weir, and its value is invented.
        observe: async () => {
          const series = `weir_plan_source_age_seconds{source="redis://127.0.0.1:${redis.port}/plans"}`;
          return { good, bad: changed(good, series, 600) };
        },
      },
      {
        name: 'a collector that refuses spans',
        fires: ['WeirTraceSpansDropped'],
        async observe() {
          collector.behaviour = 'refuse';
          const bad = await untilGrown(weir, 'weir_trace_spans_dropped_total', 'reason="export"');
          collector.behaviour = 'take';
          return { good, bad };
        },
      },
      {
        name: 'statistics that cannot be sent',
        fires: ['WeirStatsDropped'],
        async observe() {
          // Packets to this broadcast address need a permission, so the kernel refuses each of them.
          const env = {
            USE_DOG_STATSD: 'true',
            STATSD_HOST: '255.255.255.255',
            STATS_FLUSH_INTERVAL: '50ms',
          };
          const other = new Watched(await startWeir({ env: { ...env, ...policies } }));
          return { good, bad: await untilGrown(other, 'weir_stats_dropped_total', 'sink="dogstatsd"') };
        },
      },
    ],
  };
}
