/* One weir with two workers, one of which first crashes and later hangs. */
import { waitFor } from '../../../support/process/wait-for.js';
import { type Scrape, sumOf } from '../../../support/prometheus/metrics-text.js';
import type { SnapshotPair } from '../../../support/prometheus/rule-tests.js';
import { type RedisServer, startRedis } from '../../../support/redis/redis-server.js';
import { startWeir } from '../../../support/weir/weir.js';
import { untilAllServe, workersOf } from '../../../support/weir/workers.js';
import { CALM, type Scene, Watched } from './scene.js';

const POLICY = `domain: d\n${CALM}`;

export function workersScene(): Scene {
  let redis: RedisServer;
  let weir: Watched;
  let good: SnapshotPair;
  /** Sends `signal` to a worker, and waits until `metric` has counted the event and another worker serves. */
  const untilReplaced = async (signal: NodeJS.Signals, metric: string): Promise<SnapshotPair> => {
    const before = await weir.shot();
    const [{ pid } = { pid: 0 }] = await workersOf(weir.server);
    process.kill(pid, signal);
    const after = await waitFor('the worker to be replaced', async () => {
      const shot = await weir.shot();
      const [was, is] = [before, shot].map((one) => sumOf(one['weir-0'] as Scrape, metric));
      const serving = sumOf(shot['weir-0'] as Scrape, 'weir_worker_states', 'state="serving"');
      // A new worker serves before its first report about Redis is in the metrics.
      const [wereUp, areUp] = [before, shot].map((one) => sumOf(one['weir-0'] as Scrape, 'weir_store_up'));
      return is !== was && serving === 2 && areUp === wereUp ? shot : undefined;
    });
    return [before, after];
  };
  return {
    name: 'workers',
    async open() {
      redis = await startRedis();
      const env = { REDIS_URL: `127.0.0.1:${redis.port}`, WORKERS: '2' };
      weir = new Watched(await startWeir({ policy: POLICY, env }));
      await untilAllServe(weir.server);
      good = await weir.around(() => weir.usual());
    },
    scenarios: [
      {
        name: 'a worker that crashes',
        fires: ['WeirWorkerRestarts'],
        observe: async () => ({
          good,
          bad: await untilReplaced('SIGKILL', 'weir_worker_restarts_total'),
          once: true,
        }),
      },
      {
        name: 'a worker that hangs',
        fires: ['WeirSilentWorkersKilled', 'WeirWorkerRestarts'],
        observe: async () => ({
          good,
          bad: await untilReplaced('SIGSTOP', 'weir_silent_workers_killed_total'),
          once: true,
        }),
      },
    ],
  };
}
