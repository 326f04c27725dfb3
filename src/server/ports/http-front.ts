import { type AdminAccessOptions, DebugPortAccess } from '../../admin/admin-access.js';
import { type AdminService, adminEndpoint } from '../../admin/admin-endpoint.js';
import type { HealthDetail, HealthVerdict } from '../../admin/health-detail.js';
import { pageAnswer } from '../../admin/page/page-document.js';
import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import { formatHostPort } from '../../grpc/grpc-server.js';
import { guardedViews, isLoopbackHost } from '../../http/cross-site.js';
import { type HttpListener, type HttpOptions, listenHttp } from '../../http/http.js';
import { RenderQueue, TextView } from '../../http/text-view.js';
import type { Clock } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import { listenPrometheus } from '../metrics/prometheus.js';
import { requestBounds } from '../settings/answer-options.js';
import type { Settings } from '../settings/settings-table.js';
import { listenError } from '../start-error.js';
import type { DebugFiles } from './debug-files.js';
import { debugEndpoints, debugNotFound, publicEndpoints } from './endpoints.js';
import { type Decide, type JsonCalls, jsonEndpoint } from './json-endpoint.js';

/** Data and dependencies of the HTTP and debug ports. */
export interface HttpFrontOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly policies: LoadingPolicyProvider;
  /** Metrics in Prometheus' text format. */
  metrics(): Promise<Buffer>;
  /** Statistics under the reference's names, for `/stats`. */
  stats(): Promise<string>;
  /** Fast, because probes call it often. */
  health(): HealthVerdict;
  detail(): HealthDetail;
  /** For `/json`: the function that decides, and the counters of its calls. */
  readonly decide: Decide;
  readonly calls: JsonCalls;
  /** Services for operators on the debug port. */
  readonly administration: readonly AdminService[];
  /** Dependencies of the access checks on the debug port. */
  readonly access: Pick<AdminAccessOptions, 'log' | 'count'> & { readonly debugFiles: DebugFiles };
  onError(error: unknown): void;
}

/** The open HTTP and debug ports. */
export interface HttpFront {
  /** Addresses as `host:port`. */
  readonly http: string;
  readonly debug: string;
  /** Undefined unless USE_PROMETHEUS is on. */
  readonly prometheus: string | undefined;
  /**
   * Accepts no further requests of `/json` and of operators. Resolves when the running ones have ended, or after
   * `graceMs`.
   */
  drain(graceMs: number): Promise<void>;
}

/** Opens the HTTP and debug ports. Rejects with {@link StartError}. */
export async function openHttpFront(options: HttpFrontOptions, closers: Closers): Promise<HttpFront> {
  const { settings, policies, clock, onError } = options;
  const queue = new RenderQueue();
  const open = async (
    what: string,
    host: string,
    port: number,
    variables: string,
    http: Pick<HttpOptions, 'endpoints' | 'notFound' | 'tls'>,
  ): Promise<HttpListener> => {
    const endpoints = guardedViews(host, http.endpoints);
    const listener = await listenHttp(host, port, { ...http, endpoints, onError }).catch((error: unknown) => {
      throw listenError(what, formatHostPort(host, port), variables, error);
    });
    closers.add(() => listener.close());
    return listener;
  };
  const { debugHost, debugPort, host, port } = settings;
  const { debugFiles, ...told } = options.access;
  const access = new DebugPortAccess({
    ...told,
    debugHost,
    tls: debugFiles.tls !== undefined,
    tokens: debugFiles.tokens,
    monotonicMicros: () => clock.monotonicMicros(),
  });
  const administration = options.administration.map((one) => adminEndpoint(one, access));
  const forDebug = debugEndpoints({
    clock,
    queue,
    policies,
    stats: () => options.stats(),
    administration,
    page: pageAnswer,
  });
  // The debug port opens first, so that it is available before the service counts as started.
  const debug = await open('the debug endpoints', debugHost, debugPort, 'DEBUG_HOST, DEBUG_PORT', {
    endpoints: forDebug,
    tls: debugFiles.tls,
    notFound: (path) => debugNotFound(path, forDebug),
  });
  const metrics = new TextView(queue, () => options.metrics());
  const prometheus = await listenPrometheus(settings, metrics, onError, closers);
  const forJson = jsonEndpoint({
    decide: options.decide,
    bounds: requestBounds(settings),
    isOnLoopback: isLoopbackHost(host),
    calls: options.calls,
    monotonicMicros: () => clock.monotonicMicros(),
  });
  const http = await open('HTTP', host, port, 'HOST, PORT', {
    endpoints: [
      ...publicEndpoints({
        clock,
        queue,
        policies,
        metrics,
        health: () => options.health(),
        detail: () => options.detail(),
      }),
      forJson,
    ],
  });
  return {
    http: formatHostPort(host, http.port),
    debug: formatHostPort(debugHost, debug.port),
    prometheus,
    drain: async (graceMs) => {
      await Promise.all([http.drain(graceMs), debug.drain(graceMs)]);
    },
  };
}
