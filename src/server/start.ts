import { createReferenceCodec } from '../codec/reference-codec.js';
import {
  loadReflectionDefinition,
  RATE_LIMIT_SERVICE,
  SHOULD_RATE_LIMIT_PATH,
} from '../codec/rls-definition.js';
import { createWireCodec } from '../codec/wire-codec.js';
import { formatHostPort } from '../grpc/connections.js';
import { GrpcJsServer } from '../grpc/grpc-js-server.js';
import { GrpcError, type GrpcServer, STATUS, type UnaryHandler } from '../grpc/grpc-server.js';
import { Health } from '../grpc/health.js';
import { addReflection } from '../grpc/reflection.js';
import { type Clock, MAX_TIMER_MS, systemClock } from '../limiter/clock.js';
import { Refusal, ShouldRateLimit } from '../service/should-rate-limit.js';
import { createLogger, type Logger } from '../telemetry/logger.js';
import { Metrics } from '../telemetry/metrics.js';
import { decisionObserver } from './decision-observer.js';
import { debugEndpoints, domainsOf, type HealthDetail, publicEndpoints } from './endpoints.js';
import { type HttpListener, listenHttp } from './http.js';
import { openPolicies, type Policies } from './policies.js';
import { Serving } from './serving.js';
import type { Settings } from './settings-table.js';
import { listenError } from './start-error.js';
import { openStore } from './store.js';

/** What the process knows that settings do not say. */
export interface StartContext {
  readonly version: string;
  /** Whether standard output is a terminal. */
  readonly terminal: boolean;
}

export interface RunningServer {
  /** Reloads the policy now; the outcome goes to log, metrics and `/healthcheck?detail`. */
  reload(): void;
  /** NOT_SERVING, drain delay, running calls, exit: resolves when nothing is left to do. `why` goes to the log. */
  drain(why: string): Promise<void>;
}

const MICROS_PER_MS = 1000;

function timerMs(micros: number): number {
  return Math.min(micros / MICROS_PER_MS, MAX_TIMER_MS);
}

/** gRPC's way to say never (GRPC_ARG_MAX_CONNECTION_AGE_MS). */
function zeroIsNever(micros: number): number {
  return micros === 0 ? Number.POSITIVE_INFINITY : micros / MICROS_PER_MS;
}

/** The gRPC face of the service: refusals become statuses. */
function unaryHandler(service: ShouldRateLimit, metrics: Metrics): UnaryHandler {
  const finish = (result: Uint8Array | Refusal): Uint8Array => {
    if (!(result instanceof Refusal)) return result;
    const code = result.kind === 'bad_request' ? STATUS.INVALID_ARGUMENT : STATUS.UNAVAILABLE;
    metrics.refused(result.kind === 'bad_request' ? 'INVALID_ARGUMENT' : 'UNAVAILABLE');
    throw new GrpcError(code, result.message);
  };
  return (message, call) => {
    const result = service.handle(message, call.deadlineMicros);
    return result instanceof Promise ? result.then(finish) : finish(result);
  };
}

/** One line in ten seconds about connections that do not speak HTTP/2: a port scanner must not fill the log. */
function badConnections(log: Logger, clock: Clock): (message: string) => void {
  let quietUntilMicros = 0;
  return (message) => {
    if (clock.monotonicMicros() < quietUntilMicros) return;
    quietUntilMicros = clock.monotonicMicros() + 10_000_000;
    log.warn(message);
  };
}

/** Everything that is open, so that a failed start leaves nothing behind. */
class Opened {
  readonly #closers: (() => Promise<void>)[] = [];

  add(close: () => Promise<void>): void {
    this.#closers.unshift(close);
  }

  async close(): Promise<void> {
    for (const close of this.#closers) await close();
  }
}

/**
 * Starts weir as the settings say. Resolves once every address is open; rejects with {@link StartError} when a policy is bad or an
 * address cannot be had, with everything closed again.
 */
export async function startServer(settings: Settings, context: StartContext): Promise<RunningServer> {
  const opened = new Opened();
  try {
    return await open(settings, context, opened);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function open(settings: Settings, context: StartContext, opened: Opened): Promise<RunningServer> {
  const clock = systemClock;
  const log = createLogger({
    level: settings.logLevel,
    format: settings.logFormat === 'auto' ? (context.terminal ? 'text' : 'json') : settings.logFormat,
    colour: context.terminal,
  });
  const onError = (error: unknown): void => log.error({ err: error }, 'unexpected error');
  const policies = openPolicies(settings, log);
  opened.add(async () => policies.close());
  const store = openStore(settings, clock, log);
  opened.add(() => store.close());
  const metrics = new Metrics({
    maxSeries: settings.metricsMaxSeries,
    version: context.version,
    memoryStats: () => store.memoryStats(),
  });
  metrics.policyInForce(policies.current().version);

  const grpcHealth = new Health([RATE_LIMIT_SERVICE, 'ratelimit']);
  const serving = new Serving(
    {
      draining: false,
      storeUp: store.up(),
      storeReached: store.up(),
      needsStore: policies.needStore(),
      followsStore: settings.redisHealthFollows,
    },
    (isServing) => grpcHealth.setServing(isServing),
  );
  metrics.storeUp(store.up());
  store.onChange((up) => {
    metrics.storeUp(up);
    serving.update(up ? { storeUp: true, storeReached: true } : { storeUp: false });
  });
  store.onAnswer((micros) => metrics.storeAnswered(micros));
  policies.onReload((success) => {
    metrics.reloaded(success);
    metrics.policyInForce(policies.current().version);
    serving.update({ needsStore: policies.needStore() });
  });

  const service = new ShouldRateLimit({
    codec: settings.rlsCodec === 'reference' ? createReferenceCodec() : createWireCodec(),
    clock,
    store: store.buckets,
    local: store.local,
    policies: () => policies.current(),
    observer: decisionObserver(metrics, log),
    storeTimeoutMicros: settings.redisTimeout,
    maxDescriptors: settings.maxDescriptors,
  });
  const grpc = new GrpcJsServer({
    maxReceiveMessageBytes: settings.grpcMaxMessageBytes,
    maxConcurrentStreams: settings.grpcMaxStreams,
    maxHeaderListBytes: settings.grpcMaxHeaderBytes,
    maxConnectionAgeMs: zeroIsNever(settings.grpcMaxConnectionAge),
    maxConnectionAgeGraceMs: zeroIsNever(settings.grpcMaxConnectionAgeGrace),
    keepAliveIntervalMs: Number.POSITIVE_INFINITY,
    keepAliveTimeoutMs: 20_000,
    monotonicMicros: () => clock.monotonicMicros(),
    onError,
    onBadConnection: badConnections(log, clock),
  });
  grpc.addUnary(SHOULD_RATE_LIMIT_PATH, unaryHandler(service, metrics));
  grpcHealth.addTo(grpc);
  addReflection(grpc, loadReflectionDefinition());

  const startedMicros = clock.monotonicMicros();
  const detail = (): HealthDetail => ({
    ...servingStatus(serving),
    version: context.version,
    uptimeSeconds: Math.floor((clock.monotonicMicros() - startedMicros) / 1e6),
    store: store.name,
    storeUp: store.up(),
    policy: {
      version: policies.current().version,
      domains: domainsOf(policies.current(), clock),
      lastReload: policies.errors().length === 0 ? 'ok' : 'error',
      errors: policies.errors(),
    },
  });
  const listeners = await listen(settings, { grpc, policies, metrics, detail, onError }, opened);
  log.info(
    {
      version: context.version,
      ...listeners.addresses,
      store: store.name,
      policy: policies.current().version,
      domains: domainsOf(policies.current(), clock).map(({ domain, phase }) => `${domain} (${phase})`),
    },
    'weir serves',
  );
  return {
    reload: () => policies.reload('signal'),
    drain: (why) => drain(why, { settings, log, serving, grpc, opened }),
  };
}

function servingStatus({ reason }: Serving): Pick<HealthDetail, 'status' | 'reason'> {
  return reason === undefined ? { status: 'SERVING' } : { status: 'NOT_SERVING', reason };
}

interface Listening {
  readonly grpc: GrpcServer;
  readonly policies: Policies;
  readonly metrics: Metrics;
  readonly detail: () => HealthDetail;
  readonly onError: (error: unknown) => void;
}

/** Opens the debug port first, so that it is there before the service counts as started, and gRPC last. */
async function listen(
  settings: Settings,
  { grpc, policies, metrics, detail, onError }: Listening,
  opened: Opened,
): Promise<{ readonly addresses: Readonly<Record<'grpc' | 'http' | 'debug', string>> }> {
  const clock = systemClock;
  const http = async (
    what: string,
    host: string,
    port: number,
    variables: string,
    endpoints: Parameters<typeof listenHttp>[2],
  ): Promise<string> => {
    const listener: HttpListener = await listenHttp(host, port, endpoints, onError).catch(
      (error: unknown) => {
        throw listenError(what, formatHostPort(host, port), variables, error);
      },
    );
    opened.add(() => listener.close());
    return formatHostPort(host, listener.port);
  };
  const { debugHost, debugPort, host, port, grpcHost, grpcPort } = settings;
  const debug = await http(
    'the debug endpoints',
    debugHost,
    debugPort,
    'DEBUG_HOST, DEBUG_PORT',
    debugEndpoints(() => policies.current(), clock),
  );
  const plain = await http('HTTP', host, port, 'HOST, PORT', publicEndpoints(metrics, detail));
  const boundPort = await grpc.listen({ host: grpcHost, port: grpcPort }).catch((error: unknown) => {
    throw listenError('gRPC', formatHostPort(grpcHost, grpcPort), 'GRPC_HOST, GRPC_PORT', error);
  });
  opened.add(() => grpc.close());
  return { addresses: { grpc: formatHostPort(grpcHost, boundPort), http: plain, debug } };
}

interface Draining {
  readonly settings: Settings;
  readonly log: Logger;
  readonly serving: Serving;
  readonly grpc: GrpcServer;
  readonly opened: Opened;
}

async function drain(why: string, { settings, log, serving, grpc, opened }: Draining): Promise<void> {
  const delayMs = timerMs(settings.shutdownDrainDelay);
  const graceMs = timerMs(settings.shutdownGrace);
  log.info({ why, delayMs, graceMs }, 'draining');
  serving.update({ draining: true });
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
  await grpc.drain(graceMs);
  await opened.close();
  log.info('drained');
}
