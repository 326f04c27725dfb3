import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge } from 'prom-client';
import { removeStaleSocket } from '../../h2/listen.js';
import { MAX_TIMER_MS, systemClock, timerMs } from '../../limiter/clock.js';
import { TurnQueue } from '../../service/turn-queue.js';
import { familiesText } from '../../telemetry/family.js';
import { Metrics } from '../../telemetry/metrics.js';
import type { Closers } from '../closers.js';
import type { HealthDetail, HealthVerdict } from '../http/endpoints.js';
import { openHttpFront } from '../http/http-front.js';
import { measurePolicies } from '../metrics/policy-metrics.js';
import { exposeReference } from '../metrics/prometheus.js';
import { openStatsSinks } from '../metrics/stats-sinks.js';
import { statFamilies, statsText } from '../metrics/stats-text.js';
import { openPolicies } from '../policies/open-policies.js';
import { createServerLogger, logServing } from '../server-logger.js';
import { policySource } from '../settings/policy-place.js';
import type { Settings } from '../settings/settings-table.js';
import type { RunningServer, StartContext } from '../start.js';
import { StartError } from '../start-error.js';
import { openTlsFiles } from '../tls-files.js';
import { ViewSlices } from '../views/view-slices.js';
import { PolicyFeed } from './policy-feed.js';
import { WorkerPool } from './worker-pool.js';

const NO_BUCKETS = { size: 0, bytes: 0, evictions: 0 };

/** What forbids several workers with these settings; throws {@link StartError}. */
function checkWorkers(settings: Settings): void {
  if (settings.redisUrl === '') {
    throw new StartError([
      `WORKERS: ${settings.workers} workers need Redis: buckets in memory belong to one process, so each worker would let every limit ` +
        'through once; set REDIS_URL, or WORKERS=1',
    ]);
  }
  if (settings.workerScheduling !== 'reuse-port') return;
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 22 || (major === 22 && minor < 12)) {
    throw new StartError([
      `WORKER_SCHEDULING: reuse-port needs Node.js 22.12 or later, this is ${process.versions.node}; choose round-robin`,
    ]);
  }
  if (settings.grpcPort === 0) {
    throw new StartError([
      'WORKER_SCHEDULING: reuse-port needs a GRPC_PORT, as 0 gives each worker another one',
    ]);
  }
}

/**
 * Starts weir as one primary process and WORKERS workers. The primary owns signals, HTTP and debug ports and policy files; workers own
 * gRPC, Redis connections and what goes with them. Like {@link startServer} otherwise.
 */
export async function openPrimary(
  settings: Settings,
  context: StartContext,
  closers: Closers,
): Promise<RunningServer> {
  checkWorkers(settings);
  const clock = systemClock;
  const { version, terminal } = context;
  const { log, output } = createServerLogger(settings, terminal);
  for (const note of context.notes) log.warn(note);
  const policies = await openPolicies(settings, log, context.stopping);
  closers.add(async () => policies.close());
  const tls = openTlsFiles(settings, log);
  closers.add(async () => tls?.close());
  let tlsInForce = tls?.options;
  const metrics = new Metrics({
    maxSeries: settings.metricsMaxSeries,
    version,
    memoryStats: () => NO_BUCKETS,
  });
  metrics.policyInForce(policies.current()?.version ?? 'none');
  // The workers know about Redis; the smallest of all values is shown.
  metrics.storeUp(true);

  const slices = new ViewSlices();
  let giveUp: (error: StartError) => void = () => {};
  const failed = new Promise<StartError>((resolve) => {
    giveUp = resolve;
  });
  let draining = false;
  const feed = new PolicyFeed(
    () => policies.current(),
    (message) => pool.broadcast(message),
  );
  const pool = new WorkerPool({
    count: settings.workers,
    entry: context.entry,
    scheduling: settings.workerScheduling,
    log,
    slices,
    onGivenUp: (error) => giveUp(error),
    decisionTimeoutMs: settings.redisTimeout / 1000,
    start: () => ({
      kind: 'start',
      settings,
      version,
      terminal,
      policies: feed.whole(),
      tls: tlsInForce,
    }),
  });
  closers.add(() => pool.close());
  addPoolMetrics(metrics, pool);
  let inForce = policies.current();
  measurePolicies(metrics, policies);
  metrics.logOutput(output);
  // Only loads of the policy: each worker sends what it decides.
  exposeReference(settings, metrics, log);
  openStatsSinks({ settings, metrics, log, slices }, closers);
  policies.onReload(() => {
    if (policies.current() === inForce) return;
    inForce = policies.current();
    metrics.policyInForce(inForce?.version ?? 'none');
    void feed.send();
  });

  tls?.follow((material) => {
    tlsInForce = { ...tls.options, material };
    pool.broadcast({ kind: 'tls', material });
  });

  const startedMicros = clock.monotonicMicros();
  const health = (): HealthVerdict => {
    const known = pool.workers.flatMap((worker) => worker.health ?? []);
    if (!draining && known.some(({ reason }) => reason === undefined)) return { status: 'SERVING' };
    const reason = draining ? 'draining' : (known[0]?.reason ?? 'no worker process serves');
    return { status: 'NOT_SERVING', reason };
  };
  const detail = (): HealthDetail => {
    const { workers } = pool;
    const known = workers.flatMap((worker) => worker.health ?? []);
    return {
      ...health(),
      version,
      uptimeSeconds: Math.floor((clock.monotonicMicros() - startedMicros) / 1e6),
      store: known[0]?.store ?? 'unknown',
      storeUp: known.some(({ storeUp }) => storeUp),
      workers: workers.map((worker) => ({
        id: worker.id,
        pid: worker.pid,
        status: worker.health !== undefined && worker.health.reason === undefined ? 'SERVING' : 'NOT_SERVING',
        storeUp: worker.health?.storeUp ?? false,
      })),
    };
  };
  const front = await openHttpFront(
    {
      settings,
      clock,
      policies,
      slices,
      turns: new TurnQueue(clock),
      *metrics() {
        const own = yield* metrics.registry.read();
        yield* familiesText(yield* pool.metrics(own));
      },
      *stats() {
        yield* statsText(yield* pool.stats(statFamilies(metrics.reference)));
      },
      health,
      detail,
      decide: (message, patienceMicros, waiter) => pool.decide(message, patienceMicros, waiter?.connection),
      onError: (error) => log.error({ err: error }, 'unexpected error'),
    },
    closers,
  );
  const { http, debug, prometheus } = front;
  // Workers listen through this process, which would hold on to the failure that the file of a killed process gives the first of them.
  if (settings.grpcUds !== '') await removeStaleSocket(settings.grpcUds);
  const grpc = await pool.start();
  const { workers } = settings;
  const addresses = { grpc, http, debug, ...(prometheus !== undefined && { prometheus }) };
  const about = { version, ...addresses, store: detail().store, workers };
  logServing(log, about, policySource(settings), policies.current(), clock);
  return {
    reload: () => policies.reload('signal'),
    failed,
    async drain(why) {
      draining = true;
      const delayMs = settings.shutdownDrainDelay / 1000;
      const graceMs = timerMs(settings.shutdownGrace);
      const ended = pool.drain(why, Math.min(delayMs + graceMs, MAX_TIMER_MS / 2));
      const delay = new AbortController();
      void ended.then(() => delay.abort());
      await sleep(Math.min(delayMs, MAX_TIMER_MS), undefined, delay).catch(() => {});
      // Workers stay until they have decided for those who asked this process.
      await front.drain(graceMs);
      pool.broadcast({ kind: 'last-decided' });
      await ended;
      await closers.close();
      log.info('drained');
    },
  };
}

function addPoolMetrics(metrics: Metrics, pool: WorkerPool): void {
  const registers = [metrics.registry];
  new Gauge({
    name: 'weir_workers',
    help: 'Worker processes that are alive.',
    registers,
    collect() {
      this.set(pool.workers.length);
    },
  });
  new Counter({
    name: 'weir_worker_restarts_total',
    help: 'Worker processes that ended unasked and were replaced.',
    registers,
    collect() {
      this.reset();
      this.inc(pool.restarts);
    },
  });
}
