import type { Administer } from '../admin/buckets/buckets-service.js';
import type { StoreNode } from '../admin/health-detail.js';
import { openTop, secretKeysInForce } from '../admin/top/open-top.js';
import { TopCounts } from '../admin/top/top-counts.js';
import { protoFiles } from '../codec/proto-files.js';
import { RATE_LIMIT_SERVICE } from '../codec/rls-definition.js';
import { createWireCodec } from '../codec/wire-codec.js';
import type { PolicyProvider } from '../config/policy-provider.js';
import { formatHostPort, type GrpcServer, type ListenAddress } from '../grpc/grpc-server.js';
import { Health } from '../grpc/health.js';
import { addReflection } from '../grpc/reflection.js';
import type { TlsSource } from '../h2/tls-material.js';
import type { ViewSlices } from '../http/views/view-slices.js';
import { type Clock, timerMs } from '../limiter/clock.js';
import type { PolicySet } from '../policy/policy-set.js';
import type { Closers } from '../runtime/closers.js';
import { Signal } from '../runtime/signal.js';
import { throttledLog } from '../runtime/throttled-log.js';
import { ControlIndex } from '../service/controls/control-index.js';
import { FirstReadGate } from '../service/controls/first-read-gate.js';
import type { DecisionLog } from '../service/record/decision-record.js';
import { TurnQueue } from '../service/turn-queue.js';
import { WaitingRequests } from '../service/waiting-requests.js';
import type { LogOutput } from '../telemetry/log-output.js';
import type { Logger } from '../telemetry/logger.js';
import { Metrics } from '../telemetry/metrics.js';
import type { TopBuckets } from '../telemetry/top/top-buckets.js';
import { CallInstrumentation } from './calls/call-instrumentation.js';
import { NO_SPAN_LOSSES } from './calls/tracing.js';
import { decideForHttp } from './calls/unary-handler.js';
import { openDecisionLog } from './decision-log/open-decision-log.js';
import { LoggedWarnings } from './decision-warnings.js';
import { fileLimitWarning } from './file-limit.js';
import { followServing } from './follow-serving.js';
import { addRateLimits, createGrpcServer, type RateLimitServer } from './grpc-transport.js';
import { exposeUsedRatio } from './metrics/bucket-used-ratio.js';
import { exposeControls } from './metrics/controls.js';
import { exposeLoad } from './metrics/load-gauges.js';
import { exposeLosses } from './metrics/losses.js';
import { exposeReference } from './metrics/prometheus.js';
import { openStatsSinks } from './metrics/stats-sinks.js';
import { exposeStore } from './metrics/store-metrics.js';
import { openBucketAdmin } from './open-bucket-admin.js';
import type { Decide } from './ports/json-endpoint.js';
import { precomputeCalendars } from './precompute-calendars.js';
import { logBrokenInvariants } from './server-logger.js';
import type { Serving } from './serving.js';
import { answerOptions } from './settings/answer-options.js';
import type { Settings } from './settings/settings-table.js';
import { listenError, type StartError } from './start-error.js';
import { openStore } from './store/open-store.js';
import type { RedisWork, Store } from './store/store.js';
import { timedBy } from './timed-service.js';
import { openTracing } from './tracing/open-tracing.js';
import { openUnmatchedWarnings } from './unmatched-warnings.js';

/** What {@link openGrpcService} builds on. */
export interface GrpcServiceOptions {
  readonly settings: Settings;
  /** Undefined: clear text. */
  readonly tls: TlsSource | undefined;
  readonly version: string;
  readonly policies: PolicyProvider;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where `log` goes. */
  readonly output: LogOutput;
  /** The number of a worker process; absent in one that decides by itself. */
  readonly worker?: number | undefined;
  /** Where statistics are sent from. */
  readonly slices: ViewSlices;
}

/** What decides, with its gRPC port: the whole of weir but for policy files and HTTP. */
export interface GrpcService {
  readonly metrics: Metrics;
  readonly serving: Serving;
  /** For people: `memory`, or Redis and its address. */
  readonly storeName: string;
  storeUp(): boolean;
  /** See {@link Store.nodes}. */
  storeNodes(): readonly StoreNode[];
  /** What other processes that share its Redis are told, and tell. */
  readonly redisWork: RedisWork;
  /** `listener` runs whenever `serving` or `storeUp` may have changed. */
  onHealth(listener: () => void): void;
  /** `listener` runs when weir must end: Redis was not reached in time after the start. */
  onGivenUp(listener: (error: StartError) => void): void;
  /** Opens the port; resolves with its address as `host:port`, rejects with {@link StartError}. */
  listen(): Promise<string>;
  /** Where what takes long has its turns, whoever asks for it. */
  readonly turns: TurnQueue;
  /** Decides for callers that do not come by gRPC. */
  readonly decide: Decide;
  /** Answers what those who administer weir ask of its buckets. */
  readonly administer: Administer;
  /** The buckets that most is asked of; undefined where TOP_BUCKETS counts none. */
  readonly top: TopBuckets | undefined;
  /**
   * NOT_SERVING, drain delay, running calls; resolves when no call is left. `why` goes to the log. `drainHttp` waits for
   * calls that do not come by gRPC.
   */
  drain(why: string, drainHttp: (graceMs: number) => Promise<void>): Promise<void>;
}

const MICROS_PER_MS = 1000;

/** gRPC's way to say never (GRPC_ARG_MAX_CONNECTION_AGE_MS). */
function zeroIsNever(micros: number): number {
  return micros === 0 ? Number.POSITIVE_INFINITY : micros / MICROS_PER_MS;
}

/** Names of the rules in statistics that no request has a part in. */
function* ruleStatNames(policies: PolicySet | undefined): Generator<string> {
  for (const { rules } of policies?.domains.values() ?? []) {
    for (const { statName } of rules) if (statName !== '') yield statName;
  }
}

/** Where gRPC is served: for Node, for people (once the port is known), and by which settings. */
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
 * Opens store, metrics and gRPC server as the settings say; what must be closed goes to `closers`. Throws
 * {@link StartError}.
 */
export function openGrpcService(options: GrpcServiceOptions, closers: Closers): GrpcService {
  const { settings, policies, clock, log } = options;
  let stopReports = (): void => {};
  // The last to end: what is closed before it is checked, too.
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
  const turns = new TurnQueue(clock);
  const waiting = new WaitingRequests();
  const recorders = openRecorders(options, store, metrics, closers);
  const controls = openControls(store, clock, metrics);
  const service = new FirstReadGate(store.controls.firstRead, {
    codec: createWireCodec({ maxDescriptors: settings.maxDescriptors }),
    clock,
    store: store.buckets,
    local: store.local,
    policies: () => policies.current(),
    controls,
    observer: {
      counts: metrics,
      warnings: new LoggedWarnings(log, openUnmatchedWarnings(log, policies, closers)),
      buckets: top === undefined ? undefined : new TopCounts(top),
    },
    storeTimeoutMicros: store.timeoutMicros,
    maxDescriptors: settings.maxDescriptors,
    turns,
    waiting,
    maxLimits: settings.maxLimits,
    answers: answerOptions(settings),
    decisionLog: recorders.decisionLog,
  });
  const { instrumentation } = recorders;
  const grpc = openGrpc(options);
  addRateLimits(grpc, service, { metrics, clock, instrumentation });
  health.addTo(grpc, timedBy(metrics.reference, clock));
  exposeReference(settings, metrics, log);
  openStatsSinks({ settings, metrics, log, slices: options.slices }, closers);
  exposeLoad(metrics.registry, () => ({
    grpc: grpc.load(),
    storeWaitingBytes: waiting.bytes,
    costly: { requests: turns.size, bytes: turns.bytes, connections: turns.connections },
  }));
  exposeStore(metrics.registry, store);
  exposeUsedRatio(
    metrics.registry,
    { top, secretKeys: secretKeysInForce(policies) },
    settings.bucketUsedRatioTop,
  );
  addReflection(grpc, protoFiles());

  return {
    metrics,
    serving,
    turns,
    storeName: store.name,
    storeUp: () => store.up(),
    storeNodes: () => store.nodes(),
    redisWork: store,
    onHealth: changed.add,
    onGivenUp: (listener) => store.onGivenUp(listener),
    listen: () => listen(grpc, options, closers),
    decide: decideForHttp(service, clock, instrumentation),
    administer: openBucketAdmin(options, store, controls, metrics.administered),
    top,
    drain: (why, drainHttp) => drain(grpc, serving, options, why, drainHttp),
  };
}

/** What logs and traces are told of calls and decisions, as far as the settings ask for it. */
function openRecorders(
  { settings, clock, log, output, worker, version }: GrpcServiceOptions,
  store: Store,
  { registry }: Metrics,
  closers: Closers,
): {
  readonly decisionLog: DecisionLog | undefined;
  readonly instrumentation: CallInstrumentation | undefined;
} {
  const decisions = openDecisionLog({ settings, clock, log, output, worker }, closers);
  const tracing = openTracing({ settings, version, log, store }, closers);
  exposeLosses(
    registry,
    () => decisions?.dropped() ?? 0,
    () => tracing?.lost() ?? NO_SPAN_LOSSES,
  );
  // Nobody else asks for names and traces, which each take a few objects.
  const wantsCallers = tracing !== undefined || decisions !== undefined || log.isLevelEnabled('debug');
  return {
    decisionLog: decisions?.log,
    instrumentation: wantsCallers ? new CallInstrumentation(decisions !== undefined, tracing) : undefined,
  };
}

/** The blocks and exemptions of the store, as decisions look for them. */
function openControls({ controls }: Store, clock: Clock, { registry }: Metrics): ControlIndex {
  const index = new ControlIndex(() => clock.monotonicMicros());
  controls.onChange((change) => index.apply(change));
  exposeControls(registry, index);
  return index;
}

/** The metrics of this process, which follow the policy in force and the store. */
function openMetrics({ settings, policies, version }: GrpcServiceOptions, store: Store): Metrics {
  const metrics = new Metrics({
    maxSeries: settings.metricsMaxSeries,
    version,
    memoryStats: () => store.memoryStats(),
    denyCacheStats: () => store.denyCacheStats(),
    nearLimitRatio: settings.nearLimitRatio,
    deniedHitsCount: !settings.stopIncrementWhenOver,
  });
  const updatePolicies = (): void => {
    const current = policies.current();
    metrics.policyInForce(current?.version ?? 'none');
    metrics.reference.rulesAre(() => ruleStatNames(current));
  };
  updatePolicies();
  policies.onReload(updatePolicies);
  metrics.reference.readFrom({
    pools: () => store.pools(),
    localCache: () => (settings.localCacheBytes ? { ...store.localCacheStats() } : undefined),
  });
  metrics.storeUp(store.up());
  store.onChange((up) => metrics.storeUp(up));
  store.onAnswer((micros) => metrics.storeAnswered(micros));
  store.onFault((redis, fault) => metrics.redisFault(redis, fault));
  return metrics;
}

function openGrpc({ settings, tls, clock, log }: GrpcServiceOptions): RateLimitServer {
  const shouldLog = throttledLog();
  return createGrpcServer(settings.grpcTransport, {
    tls: tls?.options,
    maxReceiveMessageBytes: settings.grpcMaxMessageBytes,
    maxInflatedBytes: settings.grpcMaxInflatedBytes,
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

/** Opens the gRPC port; resolves with its address for people. */
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

async function drain(
  grpc: GrpcServer,
  serving: Serving,
  { settings, log }: GrpcServiceOptions,
  why: string,
  drainHttp: (graceMs: number) => Promise<void>,
): Promise<void> {
  const delayMs = timerMs(settings.shutdownDrainDelay);
  const graceMs = timerMs(settings.shutdownGrace);
  log.info({ why, delayMs, graceMs }, 'draining');
  serving.update({ draining: true });
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  await Promise.all([grpc.drain(graceMs), drainHttp(graceMs)]);
}
