import { setTimeout as sleep } from 'node:timers/promises';
import type { Administer } from '../../admin/buckets/bucket-admin.js';
import { type CoreHealthDetail, type HealthVerdict, redisDetail } from '../../admin/health-detail.js';
import { removeStaleSocket } from '../../h2/serving/listen.js';
import { MAX_TIMER_MS, timerMs } from '../../limiter/clock.js';
import { WORKER_STATES } from '../../telemetry/families.js';
import { type FamilyRegistry, familiesText } from '../../telemetry/family-registry.js';
import { sumOfFailures } from '../../telemetry/history/rate-history.js';
import { Metrics } from '../../telemetry/metrics.js';
import { exposeReference, openStatsSinks, statFamilies, statsText } from '../metrics/reference-outputs.js';
import { openBucketAdmin } from '../open-bucket-admin.js';
import type { ServerCore, ServerParts } from '../server-core.js';
import { logBrokenInvariants } from '../server-logger.js';
import type { StartError } from '../start-error.js';
import { openStore } from '../store/open-store.js';
import type { WorkerHealth } from './messages.js';
import { PolicyRounds } from './policy-rounds.js';
import { WorkerPool, type WorkerSlot } from './worker-pool.js';

const NO_MEMORY_STATS = { size: 0, bytes: 0, evictions: 0, holdCount: 0, refusedHolds: 0 };

/**
 * Opens the primary process of WORKERS workers. It handles signals and the debug port, and decides when policies take
 * effect. `listen` starts the workers. Each of them is a server with the gRPC port, PORT and connections to Redis.
 */
export function openPrimary(parts: ServerParts): ServerCore {
  const { settings, version, terminal, entry, log, policies, tls, closers } = parts;
  const metrics = new Metrics({
    maxSeries: settings.metricsMaxSeries,
    version,
    memoryStats: () => NO_MEMORY_STATS,
  });
  const stopReports = logBrokenInvariants(log, metrics);
  closers.add(async () => stopReports());
  // The metric shows the minimum of all processes, so this process, which decides no requests, reports 1.
  metrics.storeUp(true);
  let giveUp: (error: StartError) => void = () => {};
  const failed = new Promise<StartError>((resolve) => {
    giveUp = resolve;
  });
  let draining = false;
  let healthText = (): string => '';
  const metricsText = async (): Promise<Buffer> =>
    familiesText(await pool.sums('metrics', await metrics.registry.read()));
  const pool = new WorkerPool({
    count: settings.workers,
    entry,
    scheduling: settings.workerScheduling,
    log,
    onGivenUp: (error) => giveUp(error),
    start: () => {
      const health = healthOf(pool, draining);
      const policies = rounds.handover();
      return { kind: 'start', settings, version, terminal, policies, tls: tls?.current, health };
    },
    text: async (of) => (of === 'metrics' ? metricsText() : Buffer.from(healthText())),
    onChange: () => {
      rounds.loaded();
      tellHealth();
    },
  });
  closers.add(() => pool.close());
  const rounds = new PolicyRounds(pool, policies, log);
  closers.add(async () => rounds.close());
  policies.beforeSwitch = (update) => rounds.run(update === undefined ? [] : [update]);
  const followPolicies = (): void => metrics.setPolicyVersion(policies.current()?.version ?? 'none');
  followPolicies();
  policies.onReload(followPolicies);
  // Each worker reads the certificates itself. This process logs changes and errors.
  tls?.follow(() => {});
  exposeWorkers(metrics.registry, pool, () => rounds.differing().length);
  // This process counts policy loads only. Each worker sends the statistics of its decisions.
  exposeReference(settings, metrics, log);
  openStatsSinks(settings, metrics, log, closers);
  let told = '';
  /** Tells the workers whether the server should get requests, if this has changed. */
  const tellHealth = (): void => {
    const verdict = healthOf(pool, draining);
    const { status, reason = '' } = verdict;
    if (told === status + reason) return;
    told = status + reason;
    pool.broadcast({ kind: 'health', verdict });
  };
  return {
    metrics,
    failed,
    metricsText,
    statsText: async () => statsText(await pool.sums('stats', statFamilies(metrics.reference))),
    health: () => healthOf(pool, draining),
    nodes: () => knownHealth(pool.workers).map(({ redis }) => redis),
    detail: () => detailOf(pool),
    administer: bucketCommands(parts, metrics),
    top: (ask) => pool.collect('top', ask),
    async rates(take) {
      const collected = await pool.collect('rates', undefined);
      for (const { rows } of collected) for (const row of rows) take(row);
      return sumOfFailures(collected.map(({ about }) => about));
    },
    async listen(_ports, detail) {
      healthText = detail;
      // Workers listen through this process. A socket file of a killed process would make the first worker fail, and
      // node:cluster would return the same error to all others.
      if (settings.grpcUds !== '') await removeStaleSocket(settings.grpcUds);
      return pool.start();
    },
    async drain(why, drainDebug) {
      draining = true;
      tellHealth();
      const delayMs = settings.shutdownDrainDelay / 1000;
      const graceMs = timerMs(settings.shutdownGrace);
      const ended = pool.drain(why, Math.min(delayMs + graceMs, MAX_TIMER_MS / 2));
      const delay = new AbortController();
      void ended.then(() => delay.abort());
      await sleep(Math.min(delayMs, MAX_TIMER_MS), undefined, delay).catch(() => {});
      await drainDebug(graceMs);
      await ended;
    },
  };
}

/** The first command opens a connection to Redis. */
function bucketCommands(parts: ServerParts, metrics: Metrics): Administer {
  const { settings, clock, log, policies, closers } = parts;
  let administer: Administer | undefined;
  return (question, caller) => {
    if (administer === undefined) {
      const store = openStore(settings, clock, log);
      closers.add(() => store.close());
      policies.onReload(() => store.reloaded());
      // Only the workers lease tokens.
      administer = openBucketAdmin(parts, { ...store, leasedTokens: () => undefined }, metrics);
    }
    return administer(question, caller);
  };
}

function knownHealth(workers: readonly WorkerSlot[]): readonly WorkerHealth[] {
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
      ...(worker.health !== undefined && { policy: worker.health.policy }),
      ...redisDetail(worker.health?.redis ?? []),
      ...(worker.silentMs !== undefined && { silentSeconds: worker.silentMs / 1000 }),
    })),
  };
}

function workerState({ health, silentMs }: WorkerSlot): keyof typeof WORKER_STATES {
  if (health === undefined) return 'starting';
  if (silentMs !== undefined) return 'silent';
  return health.reason === undefined ? 'serving' : 'not_serving';
}

/** Exposes the workers of a primary process. `differing` returns the number of workers with other policies. */
function exposeWorkers(registry: FamilyRegistry, pool: WorkerPool, differing: () => number): void {
  registry.show('weir_workers', () => pool.workers.length);
  const states = Object.keys(WORKER_STATES) as (keyof typeof WORKER_STATES)[];
  registry.show('weir_worker_states', () =>
    states.map((state) => [{ state }, pool.workers.filter((worker) => workerState(worker) === state).length]),
  );
  registry.show('weir_workers_with_other_policies', differing);
  registry.show('weir_worker_restarts_total', () => pool.restarts);
  registry.show('weir_silent_workers_killed_total', () => pool.silentKilled);
}
