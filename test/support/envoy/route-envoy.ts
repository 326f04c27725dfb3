import { freePorts } from '../process/free-port.js';
import type { Exit } from '../process/processes.js';
import { startEnvoyWith } from './envoy.js';

/** A path with its rate limits for Envoy: `RateLimit` of envoy.config.route.v3, as JSON. */
export interface LimitedRoute {
  readonly path: string;
  readonly rateLimits: readonly object[];
  /** Place of the rate limits; default: `typed_per_filter_config` of the route. */
  readonly place?: 'route' | 'virtual_host' | undefined;
  /** Further fields of the route's action, such as `retry_policy`. */
  readonly action?: object;
}

/** Parts of an HTTP connection manager. */
export type ManagerParts = Readonly<Record<'http_filters' | 'route_config', unknown>>;

export interface RouteEnvoyOptions {
  readonly domain: string;
  /** Port of weir, or the ports of several servers, which Envoy calls in turn. */
  readonly weirPort: number | readonly number[];
  readonly upstreamPort: number;
  readonly routes: readonly LimitedRoute[];
  /** Replaces filters and routes. The clusters are `weir` and `upstream`. */
  readonly parts?: Partial<ManagerParts>;
  /** Timeout of a decision; default 10 s, so that a busy machine does not change the counts of a test. */
  readonly timeout?: string;
  readonly failureModeDeny?: boolean;
  /** Maximum size of a request's header list, in KiB; default: Envoy's 60. */
  readonly maxRequestHeadersKb?: number;
  /** Filters before the rate limit filter. */
  readonly filtersBefore?: readonly object[];
  /** Access logs of the connection manager. */
  readonly accessLog?: readonly object[];
  /** Text of a Lua filter after the rate limit filter. */
  readonly lua?: string;
  /** Dynamic metadata of each request, by namespace, for the `limit` of a rate limit. */
  readonly metadata?: Readonly<Record<string, object>>;
}

const TYPES = 'type.googleapis.com/envoy.extensions';

/** An action that derives an entry from a header. Without the header there is no descriptor. */
export const fromHeader = (header: string, key = header) => ({
  request_headers: { header_name: header, descriptor_key: key },
});
export const generic = (key: string, value: string) => ({
  generic_key: { descriptor_key: key, descriptor_value: value },
});

const onLoopback = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } });
const cluster = (name: string, ports: number | readonly number[]) => ({
  name,
  type: 'STATIC',
  connect_timeout: '5s',
  load_assignment: {
    cluster_name: name,
    endpoints: [
      { lb_endpoints: [ports].flat().map((port) => ({ endpoint: { address: onLoopback(port) } })) },
    ],
  },
});

function bootstrap(options: RouteEnvoyOptions, port: number, adminPort: number): object {
  const metadata = Object.entries(options.metadata ?? {}).map(([metadata_namespace, value]) => ({
    metadata_namespace,
    value,
  }));
  const filters = [
    ...(options.filtersBefore ?? []),
    ...(metadata.length === 0
      ? []
      : [
          {
            name: 'envoy.filters.http.set_metadata',
            typed_config: { '@type': `${TYPES}.filters.http.set_metadata.v3.Config`, metadata },
          },
        ]),
    {
      name: 'envoy.filters.http.ratelimit',
      typed_config: {
        '@type': `${TYPES}.filters.http.ratelimit.v3.RateLimit`,
        domain: options.domain,
        timeout: options.timeout ?? '10s',
        failure_mode_deny: options.failureModeDeny ?? false,
        rate_limit_service: {
          transport_api_version: 'V3',
          grpc_service: { envoy_grpc: { cluster_name: 'weir' } },
        },
      },
    },
    ...(options.lua === undefined
      ? []
      : [
          {
            name: 'envoy.filters.http.lua',
            typed_config: {
              '@type': `${TYPES}.filters.http.lua.v3.Lua`,
              default_source_code: { inline_string: options.lua },
            },
          },
        ]),
    {
      name: 'envoy.filters.http.router',
      typed_config: { '@type': `${TYPES}.filters.http.router.v3.Router` },
    },
  ];
  const perRoute = (rate_limits: readonly object[]) => ({
    'envoy.filters.http.ratelimit': {
      '@type': `${TYPES}.filters.http.ratelimit.v3.RateLimitPerRoute`,
      rate_limits,
    },
  });
  const routes = options.routes.map(({ path, rateLimits, place, action }) => ({
    match: { prefix: path },
    route: { cluster: 'upstream', ...(place === 'route' && { rate_limits: rateLimits }), ...action },
    ...(place === undefined && { typed_per_filter_config: perRoute(rateLimits) }),
  }));
  const ofHost = options.routes.flatMap(({ rateLimits, place }) =>
    place === 'virtual_host' ? rateLimits : [],
  );
  const manager = {
    '@type': `${TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'routes',
    // Envoy takes the client's address from the last entry of x-forwarded-for, so that a test can choose it.
    use_remote_address: true,
    xff_num_trusted_hops: 1,
    ...(options.maxRequestHeadersKb !== undefined && { max_request_headers_kb: options.maxRequestHeadersKb }),
    http_filters: filters,
    ...(options.accessLog !== undefined && { access_log: options.accessLog }),
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], rate_limits: ofHost, routes }] },
    ...options.parts,
  };
  const listener = {
    name: 'http',
    address: onLoopback(port),
    filter_chains: [
      { filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }] },
    ],
  };
  const weir = {
    ...cluster('weir', options.weirPort),
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': `${TYPES}.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
  };
  return {
    static_resources: { listeners: [listener], clusters: [cluster('upstream', options.upstreamPort), weir] },
    admin: { address: onLoopback(adminPort) },
  };
}

/** A running Envoy. `signal` ends it; the default is SIGTERM. */
export interface RouteEnvoy {
  readonly port: number;
  stop(signal?: NodeJS.Signals): Promise<Exit>;
}

/** Starts a real Envoy with a test's routes that call weir, and waits until it serves. */
export async function startRouteEnvoy(options: RouteEnvoyOptions): Promise<RouteEnvoy> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  // JSON is YAML.
  const envoy = await startEnvoyWith(JSON.stringify(bootstrap(options, port, adminPort)), adminPort);
  return { port, stop: (signal) => envoy.stop(signal) };
}
