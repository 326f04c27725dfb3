import { currentSecretKeys, openTop, TopCounts } from '../admin/top/top-counts.js';
import { RequestDecoder } from '../codec/decode-request.js';
import { protoFiles } from '../codec/proto-files.js';
import { RATE_LIMIT_SERVICE, SHOULD_RATE_LIMIT_PATH } from '../codec/rls-definition.js';
import type { PolicyProvider } from '../config/policy-provider.js';
import {
  formatHostPort,
  type GrpcServer,
  type GrpcServerOptions,
  type ListenAddress,
} from '../grpc/grpc-server.js';
import { H2GrpcServer } from '../grpc/h2-transport/h2-grpc-server.js';
import { Health, type Timed } from '../grpc/health.js';
import { addReflection } from '../grpc/reflection.js';
import type { TlsSource } from '../h2/tls-material.js';
import { CALENDARS } from '../limiter/calendar.js';
import { type Clock, timerMs } from '../limiter/clock.js';
import type { PolicySet } from '../policy/compiled-policy.js';
import { MatchWork } from '../policy/match-work.js';
import type { Closers } from '../runtime/closers.js';
import { Signal } from '../runtime/signal.js';
import { throttledLog } from '../runtime/timers.js';
import { runInTurns } from '../runtime/turns.js';
import { TokenMac } from '../service/holds/token-mac.js';
import type { DecisionLog } from '../service/record/decision-record.js';
import { ShouldRateLimit } from '../service/should-rate-limit.js';
import { WaitingRequests } from '../service/waiting-requests.js';
import type { LogOutput } from '../telemetry/log-output.js';
import type { Logger } from '../telemetry/logger.js';
import { Metrics } from '../telemetry/metrics.js';
import type { ReferenceStats } from '../telemetry/reference/reference-stats.js';
import { answerOptions, requestBounds } from './answer-options.js';
import { NO_SPAN_LOSSES } from './calls/call-trace.js';
import { CallInstrumentation, decideForHttp, ReplyEncoder, unaryHandler } from './calls/unary-handler.js';
import { openDecisionLog } from './decision-log/decision-log.js';
import { LoggedWarnings, openUnmatchedWarnings } from './decision-warnings.js';
import { followServing, type Serving } from './follow-serving.js';
import { exposeReference, openStatsSinks } from './metrics/reference-outputs.js';
import { exposeLoad, exposeLosses, exposeStore, exposeUsedRatio } from './metrics/server-metrics.js';
import { fileLimitWarning } from './node-process.js';
import { openBucketAdmin } from './open-bucket-admin.js';
import { logBrokenInvariants } from './server-logger.js';
import type { Settings } from './settings/settings-table.js';
import { listenError } from './start-error.js';
import { openStore } from './store/open-store.js';
import type { Store } from './store/store.js';
import { openTracing } from './tracing/open-tracing.js';

/** Dependencies of {@link openGrpcService}. */
export interface GrpcServiceOptions {
  readonly settings: Settings;
  /** Undefined for plain text. */
  readonly tls: TlsSource | undefined;
  readonly version: string;
  readonly policies: PolicyProvider;
  readonly clock: Clock;
  readonly log: Logger;
  readonly output: LogOutput;
  /** Number of the worker; undefined in a single process. */
  readonly worker?: number | undefined;
}

/** The part of weir that decides, with its gRPC port: everything except policy files and HTTP ports. */
export type GrpcService = ReturnType<typeof openGrpcService>;

const MICROS_PER_MS = 1000;

/** Converts a duration to milliseconds, with 0 as "never" (GRPC_ARG_MAX_CONNECTION_AGE_MS). */
function zeroIsNever(micros: number): number {
  return micros === 0 ? Number.POSITIVE_INFINITY : micros / MICROS_PER_MS;
}

function* ruleStatNames(policies: PolicySet | undefined): Generator<string> {
  for (const { rules } of policies?.domains.values() ?? []) {
    for (const { statName } of rules) if (statName !== '') yield statName;
  }
}

/**
 * Returns the address of the gRPC port, the settings that define it, and a function that formats it with the actual
 * port.
 */
function listenAddress(settings: Settings): {
  readonly address: ListenAddress;
  readonly variables: string;
  name(port: number): string;
} {
  const { grpcHost: host, grpcPort: port, grpcUds: path } = settings;
  if (path !== '') return { address: { path }, variables: 'GRPC_UDS', name: () => `unix:${path}` };
  const reusePort = settings.workers > 1 && settings.workerScheduling === 'reuse-port';
  return {
    address: { host, port, reusePort },
    variables: 'GRPC_HOST, GRPC_PORT',
    name: (bound) => formatHostPort(host, bound),
  };
}

/**
 * Opens the store, the metrics and the gRPC server. Resources that must be closed are added to `closers`. Throws {@link
 * StartError}.
 */
export function openGrpcService(options: GrpcServiceOptions, closers: Closers) {
  const { settings, policies, clock, log } = options;
  let stopReports = (): void => {};
  // This closer is added first and closers run in reverse order, so invariants are reported until the rest is closed.
  closers.add(async () => stopReports());
  const store = openStore(settings, clock, log);
  closers.add(() => store.close());
  const stopCalendars = precomputeCalendars(clock);
  closers.add(async () => stopCalendars());
  const metrics = openMetrics(options, store);
  stopReports = logBrokenInvariants(log, metrics);
  const health = new Health([RATE_LIMIT_SERVICE, 'ratelimit']);
  const changed = new Signal();
  const serving = followServing(options, store, closers, (isServing) => {
    if (isServing !== undefined) health.setServing(isServing);
    changed.emit();
  });

  const top = openTop(settings.topBuckets, clock, closers);
  const waiting = new WaitingRequests();
  const holdMarks = sharedMarks(store, policies, clock);
  const recorders = openRecorders(options, store, metrics, closers);
  const service = new ShouldRateLimit({
    decoder: new RequestDecoder(requestBounds(settings)),
    clock,
    store: store.buckets,
    local: store.local,
    policies,
    observer: {
      counts: metrics,
      warnings: new LoggedWarnings(log, openUnmatchedWarnings(log, policies, closers)),
      buckets: top === undefined ? undefined : new TopCounts(top),
    },
    storeTimeoutMicros: store.timeoutMicros,
    waiting,
    holdMarks,
    maxLimits: settings.maxLimits,
    matchWork: new MatchWork(settings.maxMatchWork, settings.maxRegexValueBytes),
    answers: answerOptions(settings),
    decisionLog: recorders.decisionLog,
  });
  const { instrumentation } = recorders;
  const grpc = openGrpc(options);
  const handler = unaryHandler(service, metrics, instrumentation);
  grpc.addUnary(SHOULD_RATE_LIMIT_PATH, handler, new ReplyEncoder(metrics, clock));
  health.addTo(grpc, timedBy(metrics.reference, clock));
  exposeReference(settings, metrics, log);
  openStatsSinks(settings, metrics, log, closers);
  exposeLoad(metrics.registry, grpc, waiting, service);
  exposeStore(metrics.registry, store);
  exposeUsedRatio(metrics.registry, top, currentSecretKeys(policies), settings.bucketUsedRatioTop);
  addReflection(grpc, protoFiles());

  return {
    metrics,
    serving,
    store,
    /** Calls `listener` whenever `serving` or the state of the store may have changed. */
    onHealth: changed.add,
    /** Opens the gRPC port. Resolves with its address as `host:port`; rejects with {@link StartError}. */
    listen: () => listen(grpc, options, closers),
    /** Decides requests that did not arrive over gRPC. */
    decide: decideForHttp(service, clock, instrumentation),
    /** Runs bucket commands of operators. */
    administer: openBucketAdmin(options, store, metrics),
    /** The buckets with the most hits and denials; undefined if TOP_BUCKETS is 0. */
    top,
    /**
     * Drains: sets NOT_SERVING, waits for the drain delay, and finishes running calls and ends of holds. Resolves when
     * none are left. `why` is logged. `drainHttp` finishes calls that did not arrive over gRPC.
     */
    drain: (why: string, drainHttp: (graceMs: number) => Promise<void>) =>
      drain({ grpc, service, serving, store }, options, why, drainHttp),
  };
}

function sharedMarks(store: Store, policies: PolicyProvider, clock: Clock): TokenMac {
  const marks = new TokenMac(clock);
  let isShared = false;
  const share = (): void => {
    const domains = [...(policies.current()?.domains.values() ?? [])];
    if (isShared || !domains.some(({ hasHolds }) => hasHolds)) return;
    isShared = true;
    store.shareSecret(
      () => marks.key,
      (key) => marks.use(key),
    );
  };
  share();
  policies.onReload(share);
  return marks;
}

function openRecorders(
  { settings, log, output, worker, version }: GrpcServiceOptions,
  store: Store,
  { registry }: Metrics,
  closers: Closers,
): {
  readonly decisionLog: DecisionLog | undefined;
  readonly instrumentation: CallInstrumentation | undefined;
} {
  const decisions = openDecisionLog({ settings, log, output, worker }, closers);
  const tracing = openTracing({ settings, version, log, store }, closers);
  exposeLosses(
    registry,
    () => decisions?.dropped() ?? 0,
    () => tracing?.lost ?? NO_SPAN_LOSSES,
  );
  // Only logs and traces need request names and trace IDs, which cost a few objects per call.
  const wantsCallers = tracing !== undefined || decisions !== undefined || log.isLevelEnabled('debug');
  return {
    decisionLog: decisions?.log,
    instrumentation: wantsCallers ? new CallInstrumentation(decisions !== undefined, tracing) : undefined,
  };
}

function openMetrics({ settings, policies, version }: GrpcServiceOptions, store: Store): Metrics {
  const metrics = new Metrics({
    maxSeries: settings.metricsMaxSeries,
    version,
    memoryStats: () => store.memoryStats(),
    denyCacheStats: () => store.denyCacheStats(),
    leaseStats: () => store.leaseStats(),
    nearLimitRatio: settings.nearLimitRatio,
    deniedHitsCount: !settings.stopIncrementWhenOver,
  });
  const updatePolicies = (): void => {
    const current = policies.current();
    metrics.setPolicyVersion(current?.version ?? 'none');
    metrics.reference.setRuleNames(() => ruleStatNames(current));
  };
  updatePolicies();
  policies.onReload(updatePolicies);
  metrics.reference.setSources({
    pools: () => store.pools(),
    localCache: () => (settings.localCacheBytes ? { ...store.localCacheStats() } : undefined),
  });
  metrics.storeUp(store.up());
  store.onChange((up) => metrics.storeUp(up));
  store.onAnswer((micros) => metrics.storeAnswered(micros));
  store.onFault((redis, fault) => metrics.redisFault(redis, fault));
  return metrics;
}

function openGrpc({ settings, tls, clock, log }: GrpcServiceOptions): GrpcServer {
  const shouldLog = throttledLog();
  return createGrpcServer(settings.grpcTransport, {
    tls: tls?.options,
    maxReceiveMessageBytes: settings.grpcMaxMessageBytes,
    // One byte more shows that a message is longer.
    keptMessageBytes: settings.maxRequestBytes + 1,
    maxBufferedBytes: settings.grpcMaxBufferedBytes,
    maxConnections: settings.grpcMaxConnections,
    maxConcurrentStreams: settings.grpcMaxStreams,
    maxHeaderListBytes: settings.grpcMaxHeaderBytes,
    maxConnectionAgeMs: zeroIsNever(settings.grpcMaxConnectionAge),
    maxConnectionAgeGraceMs: zeroIsNever(settings.grpcMaxConnectionAgeGrace),
    keepAliveIntervalMs: zeroIsNever(settings.grpcKeepAliveInterval),
    keepAliveTimeoutMs: zeroIsNever(settings.grpcKeepAliveTimeout),
    monotonicMicros: () => clock.monotonicMicros(),
    onError: (error) => log.error({ err: error }, 'unexpected error'),
    // A port scanner must not fill the log.
    onBadConnection: (message) => {
      if (shouldLog()) log.warn(message);
    },
  });
}

async function listen(
  grpc: GrpcServer,
  { settings, tls, log }: GrpcServiceOptions,
  closers: Closers,
): Promise<string> {
  const fewFiles = fileLimitWarning(settings.grpcMaxConnections);
  if (fewFiles !== undefined) log.warn(fewFiles);
  const { address, name, variables } = listenAddress(settings);
  const port = await grpc.listen(address).catch((error: unknown) => {
    throw listenError('gRPC', name(settings.grpcPort), variables, error);
  });
  closers.add(() => grpc.close());
  tls?.follow((material) => grpc.setTls(material));
  return name(port);
}

/** The parts of a {@link GrpcService} that drain. */
interface Draining {
  readonly grpc: GrpcServer;
  readonly service: ShouldRateLimit;
  readonly serving: Serving;
  readonly store: Pick<Store, 'timeoutMicros'>;
}

async function drain(
  { grpc, service, serving, store }: Draining,
  { settings, clock, log }: GrpcServiceOptions,
  why: string,
  drainHttp: (graceMs: number) => Promise<void>,
): Promise<void> {
  const delayMs = timerMs(settings.shutdownDrainDelay);
  const graceMs = timerMs(settings.shutdownGrace);
  log.info({ why, delayMs, graceMs }, 'draining');
  serving.update({ draining: true });
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  const untilMicros = clock.monotonicMicros() + settings.shutdownGrace;
  await Promise.all([grpc.drain(graceMs), drainHttp(graceMs)]);
  // The calls that this cut off have just released their holds, and their ends need one more call of the store.
  const leftMicros = Math.max(store.timeoutMicros, untilMicros - clock.monotonicMicros());
  const lostEnds = await service.drainHolds(timerMs(leftMicros));
  if (lostEnds > 0) log.warn({ lostEnds }, LOST_ENDS);
}

const LOST_ENDS =
  'The store did not answer within SHUTDOWN_GRACE, so some holds were not released. They expire.';

/** Counts and times the calls of unary methods, as the reference does for all of its methods. */
function timedBy(stats: ReferenceStats, clock: Clock): Timed {
  return (method, answer) => {
    const calls = stats.durations(method);
    return (request) => {
      const startMicros = clock.monotonicMicros();
      calls.began();
      try {
        return answer(request);
      } finally {
        calls.ended(clock.monotonicMicros() - startMicros);
      }
    };
  };
}

/** Creates the gRPC server that GRPC_TRANSPORT selects. */
export function createGrpcServer(
  transport: Settings['grpcTransport'],
  options: GrpcServerOptions,
): GrpcServer {
  if (transport === 'h2') return new H2GrpcServer(options);
  // Loaded only if needed, because loading code takes most of a start.
  const { GrpcJsServer } = require('../grpc/grpc-js-server.js') as typeof import('../grpc/grpc-js-server.js');
  return new GrpcJsServer(options);
}

/**
 * Milliseconds between two runs. The shortest calendar window is most of a day and two windows are computed ahead, so a
 * run per minute is enough.
 */
const INTERVAL_MS = 60_000;

/**
 * Computes calendar windows ahead of time, a few in each turn of the event loop. Many windows begin at midnight, and
 * requests must not wait for the computation. The timer does not keep the process alive. Returns a function that stops
 * it.
 */
export function precomputeCalendars(clock: Pick<Clock, 'wallMicros'>): () => void {
  let isBusy = false;
  const prepare = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    await runInTurns(CALENDARS.prepare(clock.wallMicros()));
    isBusy = false;
  };
  const timer = setInterval(() => void prepare(), INTERVAL_MS).unref();
  return () => clearInterval(timer);
}
