/* One weir with a real Redis Cluster that loses a master. */
import { waitFor } from '../../../support/process/wait-for.js';
import { type Scrape, sumOf } from '../../../support/prometheus/metrics-text.js';
import type { SnapshotPair } from '../../../support/prometheus/rule-tests.js';
import { type RedisCluster, startCluster } from '../../../support/redis/cluster.js';
import { startWeir } from '../../../support/weir/weir.js';
import { CALM, type Scene, Watched } from './scene.js';

const POLICY = `domain: d\n${CALM}`;

export function clusterScene(): Scene {
  let cluster: RedisCluster;
  let weir: Watched;
  let good: SnapshotPair;
  /** Makes calls to buckets on all masters. */
  const everybody = async (): Promise<void> => {
    for (let caller = 0; caller < 60; caller++) await weir.ask(1, `calm=${caller}`);
  };
  return {
    name: 'a Redis Cluster',
    async open() {
      cluster = await startCluster();
      const env = { REDIS_TYPE: 'CLUSTER', REDIS_URL: cluster.url };
      weir = new Watched(await startWeir({ policy: POLICY, env }));
      good = await waitFor('every node to be up', async () => {
        const pair = await weir.around(everybody);
        return sumOf(pair[0]['weir-0'] as Scrape, 'weir_redis_node_up') === 3 ? pair : undefined;
      });
    },
    scenarios: [
      {
        name: 'one master of three that is dead',
        fires: ['WeirCallsRefused', 'WeirRedisFaults', 'WeirRedisNodeDown', 'WeirStoreFailureAnswers'],
        async observe() {
          await cluster.nodes[0]?.kill();
          const sum = async (metric: string) => sumOf((await weir.shot())['weir-0'] as Scrape, metric);
          await waitFor('the loss', async () => {
            await everybody();
            return (await sum('weir_redis_node_up')) === 2 || undefined;
          });
          const bad = await weir.aroundRefusals(everybody);
          return { good, bad };
        },
      },
    ],
  };
}
