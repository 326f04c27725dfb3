import { type AdminAccessOptions, DebugPortAccess } from '../../admin/admin-access.js';
import { type AdminService, adminEndpoint } from '../../admin/admin-endpoint.js';
import type { DifferingWorker, HealthVerdict } from '../../admin/health-detail.js';
import { pageAnswer } from '../../admin/page/page-document.js';
import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import { formatHostPort } from '../../grpc/grpc-server.js';
import { guardedViews, isLoopbackHost } from '../../http/cross-site.js';
import { type HttpOptions, listenHttp } from '../../http/http.js';
import { RenderQueue, TextView } from '../../http/text-view.js';
import type { Clock } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import { requestBounds } from '../answer-options.js';
import { listenPrometheus } from '../metrics/prometheus.js';
import type { Settings } from '../settings/settings-table.js';
import { listenError } from '../start-error.js';
import { debugEndpoints, debugNotFound, publicEndpoints } from './endpoints.js';
import { type Decide, type JsonCalls, jsonEndpoint } from './json-endpoint.js';
import type { DebugFiles } from './tokens-file.js';

/** Dependencies of all HTTP ports of a process. */
export interface HttpPortsOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  /** Metrics in Prometheus' text format. */
  metrics(): Promise<Buffer>;
  onError(error: unknown): void;
}

/** Data and dependencies of PORT. */
export interface PublicPortOptions {
  /** Fast, because probes call it often. */
  health(): HealthVerdict;
  /** Returns the body of `/healthcheck?detail`. */
  detail(): Promise<string | Buffer>;
  /** For `/json`: the function that decides, and the counters of its calls. */
  readonly decide: Decide;
  readonly calls: JsonCalls;
}

/** Data and dependencies of DEBUG_PORT. */
export interface DebugPortOptions {
  readonly policies: LoadingPolicyProvider;
  /** Statistics under the reference's names, for `/stats`. */
  stats(): Promise<string>;
  /** Workers that have other policies. */
  differing(): readonly DifferingWorker[];
  /** Services for operators. */
  readonly administration: readonly AdminService[];
  /** Dependencies of the access checks. */
  readonly access: Pick<AdminAccessOptions, 'log' | 'count'> & { readonly debugFiles: DebugFiles };
}

/** An open port. */
export interface OpenPort {
  /** `host:port`. */
  readonly address: string;
  /**
   * Accepts no further requests of `/json` and of operators. Resolves when the running ones have ended, or after
   * `graceMs`.
   */
  drain(graceMs: number): Promise<void>;
}

/** Opens the HTTP ports of a process. They share the bounds on texts that are rendered. */
export class HttpPorts {
  readonly #options: HttpPortsOptions;
  readonly #closers: Closers;
  readonly #queue = new RenderQueue();
  readonly #metrics: TextView;

  constructor(options: HttpPortsOptions, closers: Closers) {
    this.#options = options;
    this.#closers = closers;
    this.#metrics = new TextView(this.#queue, () => options.metrics());
  }

  /** Opens PORT. Rejects with {@link StartError}. */
  openPublic({ health, detail, decide, calls }: PublicPortOptions): Promise<OpenPort> {
    const { settings, clock } = this.#options;
    const { host, port } = settings;
    const forJson = jsonEndpoint({
      decide,
      bounds: requestBounds(settings),
      isOnLoopback: isLoopbackHost(host),
      calls,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    const views = { metrics: this.#metrics, detail: new TextView(this.#queue, detail) };
    const endpoints = [...publicEndpoints({ ...views, health }), forJson];
    return this.#open('HTTP', host, port, 'HOST, PORT', { endpoints });
  }

  /** Opens DEBUG_PORT. Rejects with {@link StartError}. */
  openDebug(options: DebugPortOptions): Promise<OpenPort> {
    const { settings, clock } = this.#options;
    const { debugHost, debugPort } = settings;
    const { debugFiles, ...told } = options.access;
    const access = new DebugPortAccess({
      ...told,
      debugHost,
      tls: debugFiles.tls !== undefined,
      tokens: debugFiles.tokens,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    const endpoints = debugEndpoints({
      clock,
      queue: this.#queue,
      policies: options.policies,
      stats: () => options.stats(),
      differing: () => options.differing(),
      administration: options.administration.map((one) => adminEndpoint(one, access)),
      page: pageAnswer,
    });
    return this.#open('the debug endpoints', debugHost, debugPort, 'DEBUG_HOST, DEBUG_PORT', {
      endpoints,
      tls: debugFiles.tls,
      notFound: (path) => debugNotFound(path, endpoints),
    });
  }

  /** Opens PROMETHEUS_ADDR, if USE_PROMETHEUS is on. Resolves with the address. Rejects with {@link StartError}. */
  openPrometheus(): Promise<string | undefined> {
    const { settings, onError } = this.#options;
    return listenPrometheus(settings, this.#metrics, onError, this.#closers);
  }

  async #open(
    what: string,
    host: string,
    port: number,
    variables: string,
    http: Pick<HttpOptions, 'endpoints' | 'notFound' | 'tls'>,
  ): Promise<OpenPort> {
    const listener = await listenHttp(host, port, {
      ...http,
      endpoints: guardedViews(host, http.endpoints),
      onError: this.#options.onError,
    }).catch((error: unknown) => {
      throw listenError(what, formatHostPort(host, port), variables, error);
    });
    this.#closers.add(() => listener.close());
    return {
      address: formatHostPort(host, listener.port),
      drain: (graceMs) => listener.drain(graceMs),
    };
  }
}
