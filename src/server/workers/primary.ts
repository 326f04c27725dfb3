import { setTimeout as sleep } from 'node:timers/promises';
import { auditUnanswered } from '../../admin/buckets/audit.js';
import { type CoreHealthDetail, type HealthVerdict, redisDetail } from '../../admin/health-detail.js';
import { removeStaleSocket } from '../../h2/serving/listen.js';
import { MAX_TIMER_MS, timerMs } from '../../limiter/clock.js';
import { familiesText } from '../../telemetry/family.js';
import { sumOfFailures } from '../../telemetry/history/failure-counts.js';
import { Metrics } from '../../telemetry/metrics.js';
import { traceHeaders } from '../calls/trace-id.js';
import { exposeReference } from '../metrics/prometheus.js';
import { openStatsSinks } from '../metrics/stats-sinks.js';
import { statFamilies, statsText } from '../metrics/stats-text.js';
import { exposeWorkers, workerState } from '../metrics/worker-gauges.js';
import type { ServerCore, ServerParts } from '../server-core.js';
import { logBrokenInvariants } from '../server-logger.js';
import type { Settings } from '../settings/settings-table.js';
import type { StartError } from '../start-error.js';
import type { WorkerHealth } from './messages.js';
import { PolicyFeed } from './policy-feed.js';
import { WorkerPool } from './worker-pool.js';
import type { WorkerState } from './worker-slot.js';

/** Returns whether workers need request names and trace IDs. */
function wantsHeaders({ tracingEnabled, decisionLogSample, logLevel }: Settings): boolean {
  return tracingEnabled || decisionLogSample !== undefined || logLevel === 'debug' || logLevel === 'trace';
}

const NO_MEMORY_STATS = { size: 0, bytes: 0, evictions: 0, holdCount: 0, refusedHolds: 0 };

/**
 * Opens the primary process of WORKERS workers. It owns signals, the HTTP and debug ports, and the policy files.
 * `listen` starts the workers, which own the gRPC port and the connections to Redis.
 */
export function openPrimary(parts: ServerParts): ServerCore {
  const { settings, version, log, closers } = parts;
  const metrics = new Metrics({
    maxSeries: settings.metricsMaxSeries,
    version,
    memoryStats: () => NO_MEMORY_STATS,
  });
  const stopReports = logBrokenInvariants(log, metrics);
  closers.add(async () => stopReports());
  // The metric shows the minimum of all processes, so this process, which has no store, reports 1.
  metrics.storeUp(true);
  let giveUp: (error: StartError) => void = () => {};
  const failed = new Promise<StartError>((resolve) => {
    giveUp = resolve;
  });
  const pool = openWorkers(parts, (error) => giveUp(error), metrics);
  exposeWorkers(metrics.registry, pool);
  // This process counts policy loads only. Each worker sends the statistics of its decisions.
  exposeReference(settings, metrics, log);
  openStatsSinks({ settings, metrics, log }, closers);
  let draining = false;
  return {
    metrics,
    failed,
    metricsText: async () => familiesText(await pool.metrics(await metrics.registry.read())),
    statsText: async () => statsText(await pool.stats(statFamilies(metrics.reference))),
    health: () => healthOf(pool, draining),
    nodes: () => knownHealth(pool.workers).map(({ redis }) => redis),
    detail: () => detailOf(pool),
    decide(request, timeoutMicros, caller) {
      const headers = wantsHeaders(settings) ? traceHeaders(caller.headers) : undefined;
      return pool.decide(request, timeoutMicros, caller.connection, headers);
    },
    administer: (question, caller) => pool.administer(question, caller),
    top: (ask) => pool.top(ask),
    async rates(take) {
      const collected = await pool.rates();
      for (const { rows } of collected) for (const row of rows) take(row);
      // This process counts the refusals of `/json`.
      return sumOfFailures([...collected.map(({ about }) => about), metrics.takeNewFailures()]);
    },
    async listen() {
      // Workers listen through this process. A socket file of a killed process would make the first worker fail, and
      // node:cluster would return the same error to all others.
      if (settings.grpcUds !== '') await removeStaleSocket(settings.grpcUds);
      return pool.start();
    },
    async drain(why, drainHttp) {
      draining = true;
      const delayMs = settings.shutdownDrainDelay / 1000;
      const graceMs = timerMs(settings.shutdownGrace);
      const ended = pool.drain(why, Math.min(delayMs + graceMs, MAX_TIMER_MS / 2));
      const delay = new AbortController();
      void ended.then(() => delay.abort());
      await sleep(Math.min(delayMs, MAX_TIMER_MS), undefined, delay).catch(() => {});
      // Workers keep running until they have answered the calls of this process.
      await drainHttp(graceMs);
      pool.broadcast({ kind: 'last-decided' });
      await ended;
    },
  };
}

/** Opens the workers, which get changed policies and certificates from now on. */
function openWorkers(
  { settings, version, terminal, entry, log, policies, tls, closers }: ServerParts,
  onGivenUp: (error: StartError) => void,
  metrics: Metrics,
): WorkerPool {
  let tlsInForce = tls?.options;
  const feed = new PolicyFeed(
    () => policies.current(),
    (message) => pool.broadcast(message),
    () => pool.caughtUp(),
  );
  const pool = new WorkerPool({
    count: settings.workers,
    entry,
    scheduling: settings.workerScheduling,
    log,
    onGivenUp,
    onUnanswered: (question, caller, error) => {
      auditUnanswered(log, question, caller, error, policies.current(), metrics.adminCalls);
    },
    decisionTimeoutMs: settings.redisTimeout / 1000,
    start: () => ({ kind: 'start', settings, version, terminal, policies: feed.whole(), tls: tlsInForce }),
  });
  closers.add(() => pool.close());
  let inForce = policies.current();
  metrics.setPolicyVersion(inForce?.version ?? 'none');
  policies.onReload(() => {
    if (policies.current() === inForce) return;
    inForce = policies.current();
    metrics.setPolicyVersion(inForce?.version ?? 'none');
    void feed.send();
  });
  tls?.follow((material) => {
    tlsInForce = { ...tls.options, material };
    pool.broadcast({ kind: 'tls', material });
  });
  return pool;
}

/** Returns the states of the workers that answer. */
function knownHealth(workers: readonly WorkerState[]): readonly WorkerHealth[] {
  return workers.flatMap(({ health, silentMs }) =>
    health === undefined || silentMs !== undefined ? [] : health,
  );
}

function healthOf({ workers }: WorkerPool, draining: boolean): HealthVerdict {
  const known = knownHealth(workers);
  if (!draining && known.some(({ reason }) => reason === undefined)) return { status: 'SERVING' };
  const fallbackReason = workers.some(({ silentMs }) => silentMs !== undefined)
    ? 'no worker process answers'
    : 'no worker process is serving';
  return { status: 'NOT_SERVING', reason: draining ? 'draining' : (known[0]?.reason ?? fallbackReason) };
}

function detailOf({ workers }: WorkerPool): CoreHealthDetail {
  return {
    store: workers.find(({ health }) => health !== undefined)?.health?.store ?? 'unknown',
    storeUp: knownHealth(workers).some(({ storeUp }) => storeUp),
    workers: workers.map((worker) => ({
      id: worker.id,
      pid: worker.pid,
      status: workerState(worker) === 'serving' ? 'SERVING' : 'NOT_SERVING',
      storeUp: worker.health?.storeUp ?? false,
      ...redisDetail(worker.health?.redis ?? []),
      ...(worker.silentMs !== undefined && { silentSeconds: worker.silentMs / 1000 }),
    })),
  };
}
