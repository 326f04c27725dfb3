import { bucketsService } from '../admin/buckets/bucket-admin.js';
import { differingWorkers, type HealthDetail } from '../admin/health-detail.js';
import { historyService, lastPoint, recordHistory } from '../admin/page/history-service.js';
import { OverviewService, overviewOf } from '../admin/page/overview-service.js';
import { topService } from '../admin/top/top-answer.js';
import { currentSecretKeys } from '../admin/top/top-counts.js';
import { systemClock } from '../limiter/clock.js';
import { Closers } from '../runtime/closers.js';
import { measurePolicies } from './metrics/server-metrics.js';
import { openPolicies } from './policies/open-policies.js';
import { logChanges } from './policies/policy-log.js';
import { policySource } from './policies/policy-place.js';
import { domainPhases, HttpPorts, healthText } from './ports/http-ports.js';
import { openDebugFiles } from './ports/tokens-file.js';
import type { ServerCore, ServerParts } from './server-core.js';
import { createServerLogger } from './server-logger.js';
import type { Settings } from './settings/settings-table.js';
import type { StartError, StartStopped } from './start-error.js';
import { openTlsFiles } from './tls-files.js';

/** Facts about the process that are not settings. */
export interface StartContext {
  readonly version: string;
  /** Whether standard output is a terminal. */
  readonly terminal: boolean;
  /** Script that workers run. */
  readonly entry: string;
  /** Warnings about settings for the log. */
  readonly notes: readonly string[];
  /** Aborts a start that waits for a policy. */
  readonly stopping: AbortSignal;
}

export interface RunningServer {
  /** Reloads the policies now. The log, the metrics and `/healthcheck?detail` show the result. */
  reload(): void;
  /** Resolves if the server cannot continue and must drain. */
  readonly failed: Promise<StartError>;
  /**
   * Drains: sets NOT_SERVING, waits for the drain delay, finishes running calls and closes everything. `why` is logged.
   */
  drain(why: string): Promise<void>;
}

/**
 * Starts weir. Resolves once every port is open. Rejects with {@link StartError} if a policy is invalid or a port
 * cannot be opened, or with {@link StartStopped} if the start is aborted while it waits. Everything is closed again in
 * both cases.
 */
export async function startServer(settings: Settings, context: StartContext): Promise<RunningServer> {
  const closers = new Closers();
  try {
    return await open(settings, context, closers);
  } catch (error) {
    await closers.close();
    throw error;
  }
}

async function open(settings: Settings, context: StartContext, closers: Closers): Promise<RunningServer> {
  const clock = systemClock;
  const { version, terminal, entry } = context;
  const { log, output } = createServerLogger(settings, terminal);
  for (const note of context.notes) log.warn(note);
  // The code loads while the policies do, because loading code takes most of a start.
  const opener = openerOf(settings);
  const policies = await openPolicies(settings, log, context.stopping);
  closers.add(async () => policies.close());
  const stopLogging = logChanges(log, policies, clock);
  closers.add(async () => stopLogging());
  const tls = openTlsFiles(settings, log);
  closers.add(async () => tls?.close());
  const debugFiles = openDebugFiles(settings, log, closers);
  const parts: ServerParts = {
    settings,
    version,
    terminal,
    entry,
    clock,
    log,
    output,
    policies,
    tls,
    closers,
  };
  const core = (await opener)(parts);
  measurePolicies(core.metrics, policies);
  core.metrics.registry.show('weir_log_lines_dropped_total', () => output.dropped);
  core.metrics.registry.show('weir_serving', () => Number(core.health().status === 'SERVING'));
  const startedMicros = clock.monotonicMicros();
  const detail = (): HealthDetail => ({
    ...core.health(),
    version,
    uptimeSeconds: Math.floor((clock.monotonicMicros() - startedMicros) / 1e6),
    ...core.detail(),
  });
  const { overview, history } = openPage(core, parts, detail);
  const top = topService({
    capacity: settings.topBuckets,
    ask: core.top,
    secretKeys: currentSecretKeys(policies),
    policies: () => policies.current(),
  });
  const ports = new HttpPorts({ settings, clock, log, metrics: () => core.metricsText() }, closers);
  // The debug port opens first, so that it is available before the service counts as started.
  const debug = await ports.openDebug({
    policies,
    stats: () => core.statsText(),
    differing: () => differingWorkers(core.detail(), policies.current()?.version ?? 'none'),
    administration: [bucketsService(core.administer), top, overview, history],
    debugFiles,
    count: core.metrics.adminCalls,
  });
  const prometheus = await ports.openPrometheus();
  const serving = await core.listen(ports, () => healthText(detail(), policies, clock));
  const addresses = { ...serving, debug: debug.address, ...(prometheus !== undefined && { prometheus }) };
  const workers = settings.workers > 1 && { workers: settings.workers };
  const about = { version, ...addresses, store: core.detail().store, ...workers };
  const inEffect = policies.current();
  const domains = domainPhases(inEffect, clock).map(({ domain, phase }) => `${domain} (${phase})`);
  const source = policySource(settings);
  log.info({ ...about, source, policy: inEffect?.version ?? 'none', domains }, 'weir serves');
  return {
    reload: () => policies.reload('signal'),
    failed: core.failed,
    async drain(why) {
      await core.drain(why, (graceMs) => {
        overview.close();
        return debug.drain(graceMs);
      });
      await closers.close();
      log.info('drained');
    },
  };
}

/** Returns the function that opens this process as the only one, or as the primary process of workers. */
async function openerOf({ workers }: Settings): Promise<(parts: ServerParts) => ServerCore> {
  if (workers > 1) return (await import('./workers/primary.js')).openPrimary;
  return (await import('./server-core.js')).openSingleProcess;
}

/**
 * Records the decisions of `core` in steps. Returns the endpoints of the page that show them and the state of the
 * server, other than `/buckets` and `/top`.
 */
function openPage(
  { nodes, rates }: Pick<ServerCore, 'nodes' | 'rates'>,
  { settings, clock, policies, log, closers }: ServerParts,
  detail: () => HealthDetail,
) {
  const onError = (error: unknown): void => log.error({ err: error }, 'unexpected error');
  const recorded = recordHistory(settings.historyRules, clock, rates, onError, closers);
  const keeps = { top: settings.topBuckets, history: settings.historyRules };
  const overview = new OverviewService({
    tell: overviewOf({ clock, policies, keeps, detail, nodes }),
    point: () => lastPoint({ recorded, clock }),
    onStep: (listener) => recorded.onStep(listener),
  });
  return { overview, history: historyService({ recorded, clock }) };
}
