import { DebugPortAccess } from '../../admin/admin-access.js';
import { type AdminService, adminEndpoint } from '../../admin/admin-endpoint.js';
import type { HealthVerdict } from '../../admin/health-detail.js';
import { formatHostPort } from '../../grpc/grpc-server.js';
import { guardedViews, isLoopbackHost } from '../../http/cross-site.js';
import { type HttpOptions, listenHttp } from '../../http/http.js';
import { RenderQueue, TextView } from '../../http/text-view.js';
import type { Clock } from '../../limiter/clock.js';
import type { Closers } from '../../runtime/closers.js';
import type { Logger } from '../../telemetry/logger.js';
import type { AdminCounter } from '../../telemetry/metrics.js';
import { requestBounds } from '../answer-options.js';
import type { GrpcService } from '../grpc-service.js';
import { parseListenAddress, servesReference } from '../settings/settings-check.js';
import type { Settings } from '../settings/settings-table.js';
import { listenError, StartError } from '../start-error.js';
import {
  type DebugSource,
  debugEndpoints,
  debugNotFound,
  healthEndpoint,
  metricsEndpoint,
} from './endpoints.js';
import { jsonEndpoint } from './json-endpoint.js';
import type { DebugFiles } from './tokens-file.js';

/** Dependencies of all HTTP ports of a process. */
export interface HttpPortsOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Metrics in Prometheus' text format. */
  metrics(): Promise<Buffer>;
}

export interface DebugPortOptions extends DebugSource {
  readonly administration: readonly AdminService[];
  readonly debugFiles: DebugFiles;
  /** Counts refused operators. */
  readonly count: AdminCounter;
}

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

  /**
   * Opens PORT, where `service` also decides requests. `detail` returns the body of `/healthcheck?detail`. Rejects with
   * {@link StartError}.
   */
  openPublic(
    { decide, metrics }: Pick<GrpcService, 'decide' | 'metrics'>,
    health: () => HealthVerdict,
    detail: () => Promise<string | Buffer>,
  ): Promise<OpenPort> {
    const { settings, clock } = this.#options;
    const { host, port } = settings;
    const forJson = jsonEndpoint({
      decide,
      bounds: requestBounds(settings),
      isOnLoopback: isLoopbackHost(host),
      metrics,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    const endpoints = [
      healthEndpoint(health, new TextView(this.#queue, detail)),
      metricsEndpoint('/metrics', this.#metrics),
      forJson,
    ];
    return this.#open('HTTP', host, port, 'HOST, PORT', { endpoints });
  }

  /** Opens DEBUG_PORT. Rejects with {@link StartError}. */
  openDebug({ administration, debugFiles, count, ...source }: DebugPortOptions): Promise<OpenPort> {
    const { settings, clock, log } = this.#options;
    const { debugHost, debugPort } = settings;
    const { tls, tokens } = debugFiles;
    const access = new DebugPortAccess({
      debugHost,
      tls: tls !== undefined,
      tokens,
      log,
      count,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    const services = administration.map((one) => adminEndpoint(one, access));
    const endpoints = debugEndpoints(source, clock, this.#queue, services);
    return this.#open('the debug endpoints', debugHost, debugPort, 'DEBUG_HOST, DEBUG_PORT', {
      endpoints,
      tls,
      notFound: (path) => debugNotFound(path, endpoints),
    });
  }

  /** Opens PROMETHEUS_ADDR, if USE_PROMETHEUS is on. Resolves with the address. Rejects with {@link StartError}. */
  async openPrometheus(): Promise<string | undefined> {
    const { settings } = this.#options;
    if (!servesReference(settings)) return undefined;
    const { prometheusAddr, prometheusPath: path } = settings;
    const target = parseListenAddress(prometheusAddr);
    if (target === undefined) {
      const shown = JSON.stringify(prometheusAddr);
      throw new StartError([
        `PROMETHEUS_ADDR: ${shown} is not a valid address; use an address such as :9090 or 127.0.0.1:9090`,
      ]);
    }
    if (!path.startsWith('/')) {
      throw new StartError([
        `PROMETHEUS_PATH: ${JSON.stringify(path)} does not begin with a slash; use a path such as /metrics`,
      ]);
    }
    const { host, port } = target;
    const endpoints = [metricsEndpoint(path, this.#metrics)];
    const { address } = await this.#open('metrics', host, port, 'PROMETHEUS_ADDR', { endpoints });
    return host === '' ? `*${address}` : address;
  }

  readonly #onError = (error: unknown): void => this.#options.log.error({ err: error }, 'unexpected error');

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
      onError: this.#onError,
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
