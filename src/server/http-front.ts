import { formatHostPort } from '../grpc/connections.js';
import type { Clock } from '../limiter/clock.js';
import type { Closers } from './closers.js';
import { debugEndpoints, type HealthDetail, publicEndpoints } from './endpoints.js';
import { type HttpEndpoint, listenHttp } from './http.js';
import type { Policies } from './policies.js';
import { listenPrometheus } from './prometheus.js';
import type { Settings } from './settings-table.js';
import { listenError } from './start-error.js';

/** What the HTTP and debug ports show. */
export interface HttpFrontOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly policies: Policies;
  /** Metrics in Prometheus' text format. */
  metricsText(): Promise<string>;
  detail(): HealthDetail;
  onError(error: unknown): void;
}

/** Opens HTTP and debug ports; resolves with their addresses as `host:port`, rejects with {@link StartError}. */
export async function openHttpFront(
  options: HttpFrontOptions,
  closers: Closers,
): Promise<{ readonly http: string; readonly debug: string; readonly prometheus?: string }> {
  const { settings, policies, clock } = options;
  const open = async (
    what: string,
    host: string,
    port: number,
    variables: string,
    endpoints: readonly HttpEndpoint[],
  ): Promise<string> => {
    const listener = await listenHttp(host, port, endpoints, options.onError).catch((error: unknown) => {
      throw listenError(what, formatHostPort(host, port), variables, error);
    });
    closers.add(() => listener.close());
    return formatHostPort(host, listener.port);
  };
  const { debugHost, debugPort, host, port } = settings;
  // The debug port first, so that it is there before the service counts as started.
  const debug = await open(
    'the debug endpoints',
    debugHost,
    debugPort,
    'DEBUG_HOST, DEBUG_PORT',
    debugEndpoints(() => policies.current(), clock),
  );
  const metricsText = (): Promise<string> => options.metricsText();
  const prometheus = await listenPrometheus(settings, metricsText, options.onError, closers);
  const http = await open('HTTP', host, port, 'HOST, PORT', publicEndpoints(options));
  return { http, debug, ...(prometheus === undefined ? {} : { prometheus }) };
}
