/**
 * Every setting: the one place for name, type, default and help. README's table and `weir serve --help` are printed from it; names are
 * the reference's (envoyproxy/ratelimit) where it has one.
 */

/** How a value is written; see settings-values.ts for the exact grammar. */
export interface SettingTypes {
  string: string;
  port: number;
  /** Whole number, at least 1. */
  count: number;
  boolean: boolean;
  /** Go syntax (`150ms`, `1h30m`); microseconds once read. */
  duration: number;
  log_level: 'panic' | 'fatal' | 'error' | 'warn' | 'warning' | 'info' | 'debug' | 'trace';
  log_format: 'auto' | 'json' | 'text';
  worker_scheduling: 'round-robin' | 'kernel' | 'reuse-port';
  grpc_transport: 'h2' | 'grpc-js';
  codec: 'fast' | 'reference';
}
export type SettingType = keyof SettingTypes;

interface SettingSpec {
  /** Name of the environment variable. */
  readonly name: string;
  readonly type: SettingType;
  /** As it would be written; '' means unset. */
  readonly default: string;
  readonly help: string;
  /** Largest value of a count. */
  readonly max?: number;
  /** Keep the value out of logs and messages. */
  readonly secret?: true;
}

/** HTTP/2 settings and lengths of protobuf messages end here. */
const MAX_UINT32 = 0xffff_ffff;
const MAX_INT32 = 0x7fff_ffff;

const SPECS = {
  configPath: {
    name: 'CONFIG_PATH',
    type: 'string',
    default: '',
    help: 'Policy file, or directory of `.yaml` and `.yml` files. Unset: the bundled Open API policy.',
  },
  grpcHost: {
    name: 'GRPC_HOST',
    type: 'string',
    default: '127.0.0.1',
    help: 'Address for gRPC. `0.0.0.0` or `::` for all.',
  },
  grpcPort: { name: 'GRPC_PORT', type: 'port', default: '8081', help: 'Port for gRPC; 0 takes a free one.' },
  grpcUds: {
    name: 'GRPC_UDS',
    type: 'string',
    default: '',
    help: 'Path of a Unix domain socket for gRPC, in the place of GRPC_HOST and GRPC_PORT.',
  },
  host: {
    name: 'HOST',
    type: 'string',
    default: '127.0.0.1',
    help: 'Address for `/healthcheck` and `/metrics`.',
  },
  port: {
    name: 'PORT',
    type: 'port',
    default: '8080',
    help: 'Port for `/healthcheck` and `/metrics`; 0 takes a free one.',
  },
  debugHost: {
    name: 'DEBUG_HOST',
    type: 'string',
    default: '127.0.0.1',
    help: 'Address for the debug endpoints, which show the policy. Keep it on loopback.',
  },
  debugPort: {
    name: 'DEBUG_PORT',
    type: 'port',
    default: '6070',
    help: 'Port for the debug endpoints; 0 takes a free one.',
  },
  redisUrl: {
    name: 'REDIS_URL',
    type: 'string',
    default: '',
    help: 'Where the buckets live: `host:port`, a socket path, or a `redis://`, `rediss://` (TLS), `unix://` URL. Unset: in memory.',
    secret: true,
  },
  redisAuth: {
    name: 'REDIS_AUTH',
    type: 'string',
    default: '',
    help: 'Redis password, or `user:password`. Beats one in REDIS_URL.',
    secret: true,
  },
  redisTimeout: {
    name: 'REDIS_TIMEOUT',
    type: 'duration',
    default: '2s',
    help: 'Longest a decision may wait for Redis; a shorter `grpc-timeout` of the caller counts instead.',
  },
  redisTlsCaCert: {
    name: 'REDIS_TLS_CACERT',
    type: 'string',
    default: '',
    help: 'File with the CA certificates for `rediss://`. Unset: those Node ships.',
  },
  redisTlsClientCert: {
    name: 'REDIS_TLS_CLIENT_CERT',
    type: 'string',
    default: '',
    help: 'File with the client certificate for `rediss://`.',
  },
  redisTlsClientKey: {
    name: 'REDIS_TLS_CLIENT_KEY',
    type: 'string',
    default: '',
    help: 'File with the key of REDIS_TLS_CLIENT_CERT.',
  },
  redisTlsSkipHostname: {
    name: 'REDIS_TLS_SKIP_HOSTNAME_VERIFICATION',
    type: 'boolean',
    default: 'false',
    help: "Accept a Redis certificate that names another host. The certificate's issuer is still checked.",
  },
  redisHealthFollows: {
    name: 'REDIS_HEALTH_CHECK_ACTIVE_CONNECTION',
    type: 'boolean',
    default: 'false',
    help: 'Health follows Redis. Off: once Redis was reached, weir stays SERVING and `on_store_failure` answers.',
  },
  redisMaxInFlight: {
    name: 'REDIS_MAX_IN_FLIGHT',
    type: 'count',
    default: '20000',
    max: 1_000_000,
    help: 'Most decisions waiting for Redis at once; past it `on_store_failure` answers.',
  },
  redisBatchKeys: {
    name: 'REDIS_BATCH_KEYS',
    type: 'count',
    default: '256',
    max: 10_000,
    help: 'Most buckets in one call to Redis, which does nothing else meanwhile: 256 take about a millisecond. A request is never split.',
  },
  denyCacheMaxAge: {
    name: 'DENY_CACHE_MAX_AGE',
    type: 'duration',
    default: '1s',
    help: 'With Redis: how long a denial is repeated without asking while its token bucket cannot have refilled; 0s asks every time.',
  },
  denyCacheMaxEntries: {
    name: 'DENY_CACHE_MAX_ENTRIES',
    type: 'count',
    default: '100000',
    max: 10_000_000,
    help: 'Most denials kept for that; past it the oldest go.',
  },
  stopIncrementWhenOver: {
    name: 'STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT',
    type: 'boolean',
    default: 'false',
    help: 'Denied requests do not count in fixed windows either. Token buckets never take from a denied request.',
  },
  memoryMaxBuckets: {
    name: 'MEMORY_MAX_BUCKETS',
    type: 'count',
    default: '2000000',
    max: 16_000_000,
    help: 'Most buckets in memory; past it the one that will be full soonest goes.',
  },
  memoryMaxBytes: {
    name: 'MEMORY_MAX_BYTES',
    type: 'count',
    default: '536870912',
    help: 'Most bytes of buckets in memory, estimated; past it the one that will be full soonest goes.',
  },
  maxDescriptors: {
    name: 'MAX_DESCRIPTORS',
    type: 'count',
    default: '10000',
    max: 50_000,
    help: 'Most descriptors in one request; more get INVALID_ARGUMENT.',
  },
  grpcMaxMessageBytes: {
    name: 'GRPC_MAX_MESSAGE_BYTES',
    type: 'count',
    default: '4194304',
    max: MAX_INT32,
    help: 'Largest request message; a larger one gets RESOURCE_EXHAUSTED.',
  },
  rlsCodec: {
    name: 'RLS_CODEC',
    type: 'codec',
    default: 'fast',
    help: 'Who reads requests and writes answers: `fast`, the codec written for them, or `reference`, @grpc/proto-loader.',
  },
  grpcMaxStreams: {
    name: 'GRPC_MAX_CONCURRENT_STREAMS',
    type: 'count',
    default: '1024',
    max: MAX_UINT32,
    help: 'Most calls at once on one connection. Envoy opens another connection past it.',
  },
  grpcMaxHeaderBytes: {
    name: 'GRPC_MAX_HEADER_BYTES',
    type: 'count',
    default: '16384',
    max: MAX_UINT32,
    help: 'Largest header list of a call.',
  },
  grpcMaxConnectionAge: {
    name: 'GRPC_MAX_CONNECTION_AGE',
    type: 'duration',
    default: '24h',
    help: 'Age at which a connection gets a GOAWAY, so that callers spread over replicas again; 0 for never.',
  },
  grpcMaxConnectionAgeGrace: {
    name: 'GRPC_MAX_CONNECTION_AGE_GRACE',
    type: 'duration',
    default: '1h',
    help: 'How long calls on such a connection may still run; 0 for as long as they like.',
  },
  workers: {
    name: 'WORKERS',
    type: 'count',
    default: '1',
    max: 256,
    help: 'Processes that decide, on one gRPC port; more than 1 needs Redis. One per core at most.',
  },
  workerScheduling: {
    name: 'WORKER_SCHEDULING',
    type: 'worker_scheduling',
    default: 'round-robin',
    help: 'How connections come to workers: `round-robin`, `kernel` (one listener for all) or `reuse-port` (Node.js 22.12).',
  },
  grpcKeepAliveInterval: {
    name: 'GRPC_KEEP_ALIVE_INTERVAL',
    type: 'duration',
    default: '1m',
    help: 'A connection silent for this long is sent a PING; 0 for never.',
  },
  grpcKeepAliveTimeout: {
    name: 'GRPC_KEEP_ALIVE_TIMEOUT',
    type: 'duration',
    default: '20s',
    help: 'A connection that does not answer that PING for this long is cut; 0 for never.',
  },
  grpcServerUseTls: {
    name: 'GRPC_SERVER_USE_TLS',
    type: 'boolean',
    default: 'false',
    help: 'Serve gRPC over TLS.',
  },
  grpcServerTlsCert: {
    name: 'GRPC_SERVER_TLS_CERT',
    type: 'string',
    default: '',
    help: 'File with the certificate of the gRPC port and its chain (PEM). This and the next two are followed as they change.',
  },
  grpcServerTlsKey: {
    name: 'GRPC_SERVER_TLS_KEY',
    type: 'string',
    default: '',
    help: 'File with the key of GRPC_SERVER_TLS_CERT (PEM).',
  },
  grpcClientTlsCaCert: {
    name: 'GRPC_CLIENT_TLS_CACERT',
    type: 'string',
    default: '',
    help: 'File with the issuers of client certificates (PEM). Set: every client must show one (mTLS).',
  },
  grpcClientTlsSan: {
    name: 'GRPC_CLIENT_TLS_SAN',
    type: 'string',
    default: '',
    help: "Alternative name that the client's certificate must hold: a DNS name, an IP address, or a URI such as a SPIFFE id.",
  },
  grpcTransport: {
    name: 'GRPC_TRANSPORT',
    type: 'grpc_transport',
    default: 'h2',
    help: "`h2`: weir's own HTTP/2. `grpc-js`: that of Node.js and @grpc/grpc-js.",
  },
  shutdownDrainDelay: {
    name: 'SHUTDOWN_DRAIN_DELAY',
    type: 'duration',
    default: '0s',
    help: 'After SIGTERM or SIGINT, how long to go on serving while health says NOT_SERVING. Longer than your health check interval.',
  },
  shutdownGrace: {
    name: 'SHUTDOWN_GRACE',
    type: 'duration',
    default: '10s',
    help: 'After that, how long running calls may take to finish.',
  },
  logLevel: {
    name: 'LOG_LEVEL',
    type: 'log_level',
    default: 'info',
    help: 'Least level to log; `debug` logs every decision.',
  },
  logFormat: {
    name: 'LOG_FORMAT',
    type: 'log_format',
    default: 'auto',
    help: '`json`, `text`, or `auto`: text on a terminal, else JSON.',
  },
  metricsMaxSeries: {
    name: 'METRICS_MAX_SERIES',
    type: 'count',
    default: '10000',
    max: 1_000_000,
    help: 'Most series by rule, and as many again by names that callers choose; the rest counts under `other`.',
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;

export type SettingKey = keyof typeof SPECS;

/** The settings once read; durations in microseconds. */
export type Settings = { readonly [K in SettingKey]: SettingTypes[(typeof SPECS)[K]['type']] };

/** A row of the table. */
export interface Setting extends SettingSpec {
  readonly key: SettingKey;
  /** The same setting on the command line of `weir serve`. */
  readonly flag: string;
}

/** All settings in the order in which documentation lists them. */
export const SETTINGS: readonly Setting[] = (Object.keys(SPECS) as SettingKey[]).map((key) => ({
  ...SPECS[key],
  key,
  flag: `--${SPECS[key].name.toLowerCase().replaceAll('_', '-')}`,
}));
