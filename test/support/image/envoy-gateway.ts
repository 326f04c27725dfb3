import { TempDir } from '../process/temp-dir.js';
import { type RatelimitServer, startRatelimit } from '../reference/ratelimit.js';
import { CertificateAuthority } from '../tls/certificates.js';
import { startXdsServer, type XdsServer } from '../xds/xds-server.js';
import { copyImagePrograms } from './image-programs.js';

/*
 * Runs weir as Envoy Gateway runs its rate limit service, with the command, variables, certificates and probes of its
 * source (internal/infrastructure/kubernetes/ratelimit/resource.go, August 2026).
 */

/** Variables of every deployment of Envoy Gateway. */
export const ALWAYS = {
  RUNTIME_ROOT: '/data',
  RUNTIME_SUBDIRECTORY: 'ratelimit',
  RUNTIME_IGNOREDOTFILES: 'true',
  RUNTIME_WATCH_ROOT: 'false',
  LOG_LEVEL: 'info',
  USE_STATSD: 'false',
  CONFIG_TYPE: 'GRPC_XDS_SOTW',
  CONFIG_GRPC_XDS_SERVER_URL: 'envoy-gateway:18001',
  CONFIG_GRPC_XDS_NODE_ID: 'envoy-ratelimit',
  GRPC_SERVER_USE_TLS: 'true',
  GRPC_SERVER_TLS_CERT: '/certs/tls.crt',
  GRPC_SERVER_TLS_KEY: '/certs/tls.key',
  CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/certs/tls.crt',
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/certs/tls.key',
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '/certs/ca.crt',
  FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
  REDIS_SOCKET_TYPE: 'tcp',
  // Neither the reference nor weir has this variable.
  GRPC_SERVER_TLS_CA_CERT: '/certs/ca.crt',
  REDIS_URL: 'redis.redis.svc:6379',
};
/** Variables that are set unless telemetry is turned off. The file comes from a ConfigMap that may be created later. */
export const PROMETHEUS = {
  USE_PROMETHEUS: 'true',
  PROMETHEUS_ADDR: ':19001',
  PROMETHEUS_MAPPER_YAML: '/etc/statsd-exporter/conf.yaml',
};
export const REDIS_TLS = {
  REDIS_TLS: 'true',
  REDIS_TLS_CLIENT_CERT: '/redis-certs/tls.crt',
  REDIS_TLS_CLIENT_KEY: '/redis-certs/tls.key',
};
export const TRACING = {
  TRACING_ENABLED: 'true',
  TRACING_SERVICE_NAME: 'envoy-ratelimit',
  TRACING_SERVICE_NAMESPACE: 'envoy-gateway-system',
  TRACING_SERVICE_INSTANCE_ID: 'envoy-ratelimit-0',
  TRACING_SAMPLING_RATE: '1.0',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'http://trace-collector.envoy-gateway-system.svc.cluster.local:4318',
};
export const PROBE = { path: '/healthcheck', port: 8080, timeoutMs: 1000 };
export const GRPC_PORT = 8081;

/** The rule for one statistic in the mapping that Envoy Gateway creates as conf.yaml. */
const MAPPING = `mappings:
  - match: 'ratelimit\\.service\\.rate_limit\\.([^\\.]*)\\.([^\\.]*)\\.([^\\.]*)(\\..*)?\\.over_limit'
    match_type: regex
    name: ratelimit_service_rate_limit_over_limit
    timer_type: histogram
    labels: { domain: $1, key1: $2, key2: $3 }
`;

/** The file system of such a container, below a folder, with its certificates. */
export class GatewayPod {
  readonly root = new TempDir();
  readonly authority = new CertificateAuthority('envoy-gateway');
  readonly #program = `${copyImagePrograms(this.root.path)}/ratelimit`;
  /** Certificate and key, which Envoy uses, too. Envoy Gateway issues a pair for each of its components. */
  readonly certs = {
    ca: this.path('/certs/ca.crt'),
    cert: this.path('/certs/tls.crt'),
    key: this.path('/certs/tls.key'),
  };

  constructor() {
    const own = this.authority.issue('DNS:localhost,DNS:envoy-ratelimit,DNS:*.envoy-gateway-system');
    this.root.write('certs/ca.crt', this.authority.cert);
    this.root.write('certs/tls.crt', own.cert);
    this.root.write('certs/tls.key', own.key);
    const gateway = this.authority.issue('DNS:localhost,DNS:envoy-gateway');
    this.root.write('gateway/tls.crt', gateway.cert);
    this.root.write('gateway/tls.key', gateway.key);
    this.root.write('etc/statsd-exporter/conf.yaml', MAPPING);
  }

  /** Returns the path on this machine of a path in the container. */
  path(inContainer: string): string {
    return this.root.join(inContainer);
  }

  /**
   * Starts /bin/ratelimit with `variables`, in which this machine's paths and addresses replace the container's. The
   * variables in `more` are added unchanged.
   */
  start(
    variables: Readonly<Record<string, string>>,
    at: { readonly xdsPort: number; readonly redisPort: number },
    more: Readonly<Record<string, string>> = {},
  ): Promise<RatelimitServer> {
    const moved = Object.entries(variables).map(([name, value]) => [
      name,
      /^\/(certs|data|etc)\b/.test(value) ? this.path(value) : value,
    ]);
    return startRatelimit(this.#program, {
      ...Object.fromEntries(moved),
      CONFIG_GRPC_XDS_SERVER_URL: `localhost:${at.xdsPort}`,
      REDIS_URL: `127.0.0.1:${at.redisPort}`,
      // Envoy Gateway reconnects within seconds, and the test should not wait longer.
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '100ms',
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: '400ms',
      ...more,
    });
  }

  /** Starts a management server that requires the service's certificate, as Envoy Gateway's controller does. */
  startManagement(port: number): Promise<XdsServer> {
    return startXdsServer({
      port,
      tls: {
        cert: this.path('/gateway/tls.crt'),
        key: this.path('/gateway/tls.key'),
        clientCa: this.certs.ca,
      },
    });
  }
}

/** The node id that the service sends. */
export const NODE = ALWAYS.CONFIG_GRPC_XDS_NODE_ID;
/** Name of a route in Envoy Gateway's entries. */
export const ROUTE = 'httproute/default/backend/rule/0/match/0/*';
/** Domain of a listener. */
export const DOMAIN = 'eg/http';

/**
 * Returns the resource that Envoy Gateway sends for a BackendTrafficPolicy with a limit of `requests` an hour for each
 * value of a header.
 */
export function rules(requests: number) {
  return {
    json: {
      name: DOMAIN,
      domain: DOMAIN,
      descriptors: [
        {
          key: ROUTE,
          value: ROUTE,
          descriptors: [{ key: 'rule-0-match-0', rateLimit: { requestsPerUnit: requests, unit: 'HOUR' } }],
        },
      ],
    },
  };
}
