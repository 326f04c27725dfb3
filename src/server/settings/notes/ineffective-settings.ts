import { readRedisAddress, redisInstance } from '../redis-address-settings.js';
import type { GivenSettings } from '../settings-check.js';
import { defaultOf, INERT_VARIABLES, SETTINGS, type Setting, type Settings } from '../settings-table.js';
import { parseValue } from '../settings-values.js';
import type { Condition } from '../spec.js';

/** Test of a {@link Condition}, and the sentence for the log if it is false: the reason and the remedy. */
interface ConditionSpec {
  readonly holds: (settings: Settings, given: GivenSettings) => boolean;
  readonly otherwise: string;
}

const CONDITIONS: Readonly<Record<Condition, ConditionSpec>> = {
  files: {
    holds: ({ configType }) => configType === 'FILE',
    otherwise:
      'with CONFIG_TYPE=GRPC_XDS_SOTW, weir receives policies from a management server instead of ' +
      'files; unset one of the two variables.',
  },
  runtimeRoot: {
    holds: (_, given) =>
      ['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY'].some((name) => given.has(name)),
    otherwise:
      'the setting applies only to policies in RUNTIME_ROOT, which is not set; set RUNTIME_ROOT, or ' +
      'unset this variable.',
  },
  xds: {
    holds: ({ configType }) => configType === 'GRPC_XDS_SOTW',
    otherwise:
      'weir reads policies from files; set CONFIG_TYPE=GRPC_XDS_SOTW to receive policies from a management server.',
  },
  xdsTls: {
    holds: ({ xdsUseTls }) => xdsUseTls.includes(true),
    otherwise:
      'weir connects to the management server in plain text; set CONFIG_GRPC_XDS_SERVER_USE_TLS=true for TLS.',
  },
  xdsJitter: {
    holds: ({ xdsBackoffJitter }) => xdsBackoffJitter,
    otherwise:
      'XDS_CLIENT_BACKOFF_JITTER is off; set XDS_CLIENT_BACKOFF_JITTER=true, or unset this variable.',
  },
  noUds: {
    holds: ({ grpcUds }) => grpcUds === '',
    otherwise:
      'GRPC_UDS is set, so weir serves gRPC on a Unix socket instead of a port; unset one of the two variables.',
  },
  h2: {
    holds: ({ grpcTransport }) => grpcTransport === 'h2',
    otherwise:
      'GRPC_TRANSPORT=grpc-js does not support this setting; set GRPC_TRANSPORT=h2, or unset this variable.',
  },
  grpcTls: {
    holds: ({ grpcServerUseTls }) => grpcServerUseTls,
    otherwise: 'weir serves gRPC in plain text; set GRPC_SERVER_USE_TLS=true for TLS.',
  },
  connectionAge: {
    holds: ({ grpcMaxConnectionAge }) => grpcMaxConnectionAge > 0,
    otherwise:
      'with GRPC_MAX_CONNECTION_AGE=0, connections have no maximum age; set a maximum age, or unset this variable.',
  },
  keepAlive: {
    holds: ({ grpcKeepAliveInterval }) => grpcKeepAliveInterval > 0,
    otherwise:
      'with GRPC_KEEP_ALIVE_INTERVAL=0, weir sends no PING; set an interval, or unset this variable.',
  },
  workers: {
    holds: ({ workers }) => workers > 1,
    otherwise: 'there is only one process; set WORKERS to 2 or more, or unset this variable.',
  },
  redis: {
    holds: ({ redisUrl }) => redisUrl !== '',
    otherwise: 'the setting applies only to Redis, but weir keeps buckets in memory; set REDIS_URL.',
  },
  redisTls: {
    holds: (settings) =>
      speaksTls(settings, 'REDIS') || (settings.perSecond && speaksTls(settings, 'REDIS_PERSECOND')),
    otherwise:
      'weir connects to Redis in plain text; for TLS, set REDIS_TLS=true, or use a rediss:// address in REDIS_URL.',
  },
  sentinel: {
    holds: ({ redisType }) => redisType === 'sentinel',
    otherwise: 'the setting applies only to Sentinels; set REDIS_TYPE=SENTINEL, or unset this variable.',
  },
  perSecondSentinel: {
    holds: ({ perSecondType }) => perSecondType === 'sentinel',
    otherwise:
      'the setting applies only to Sentinels; set REDIS_PERSECOND_TYPE=SENTINEL, or unset this variable.',
  },
  denials: {
    holds: ({ localCacheBytes }) => localCacheBytes !== 0,
    otherwise: 'LOCAL_CACHE_SIZE_IN_BYTES=0 turns off the deny cache; unset one of the two variables.',
  },
  repeatedDenials: {
    holds: ({ denyCacheMaxAge, localCacheBytes }) => denyCacheMaxAge > 0 || localCacheBytes !== undefined,
    otherwise: 'DENY_CACHE_MAX_AGE=0 turns off the deny cache; unset one of the two variables.',
  },
  perSecond: {
    holds: ({ perSecond }) => perSecond,
    otherwise:
      'weir keeps all buckets in one Redis; set REDIS_PERSECOND=true to keep one-second windows in a separate Redis.',
  },
  limitHeaders: {
    holds: ({ limitHeaders }) => limitHeaders,
    otherwise: 'weir does not send this header; set LIMIT_RESPONSE_HEADERS_ENABLED=true.',
  },
  limitRequestHeaders: {
    holds: ({ limitRequestHeaders }) => limitRequestHeaders,
    otherwise: 'weir does not send this header; set LIMIT_REQUEST_HEADERS_ENABLED=true.',
  },
  top: {
    holds: ({ topBuckets }) => topBuckets > 0,
    otherwise:
      'with TOP_BUCKETS=0, weir tracks no buckets; set TOP_BUCKETS to a number, or unset this variable.',
  },
  stats: {
    holds: ({ disableStats }) => !disableStats,
    otherwise:
      'DISABLE_STATS=true turns off statsd, dogstatsd and PROMETHEUS_ADDR; unset one of the two variables.',
  },
  statsd: {
    holds: ({ useStatsd, useDogStatsd }) => useStatsd || useDogStatsd,
    otherwise: 'statsd and dogstatsd are off; set USE_STATSD=true or USE_DOG_STATSD=true.',
  },
  dogStatsd: {
    holds: ({ useDogStatsd }) => useDogStatsd,
    otherwise: 'the setting applies only to dogstatsd, which is off; set USE_DOG_STATSD=true.',
  },
  anySink: {
    holds: ({ useStatsd, useDogStatsd, usePrometheus }) => useStatsd || useDogStatsd || usePrometheus,
    otherwise:
      'no target for statistics is enabled; set USE_STATSD, USE_DOG_STATSD or USE_PROMETHEUS to true.',
  },
  prometheus: {
    holds: ({ usePrometheus }) => usePrometheus,
    otherwise: 'the Prometheus metrics of envoyproxy/ratelimit are off; set USE_PROMETHEUS=true.',
  },
  noMapper: {
    holds: ({ prometheusMapper }) => prometheusMapper === '',
    otherwise:
      'the setting applies only to the default mapping, but PROMETHEUS_MAPPER_YAML is set; unset one of ' +
      'the two variables.',
  },
  tracing: {
    holds: ({ tracingEnabled }) => tracingEnabled,
    otherwise: 'weir records no traces; set TRACING_ENABLED=true.',
  },
  decisionLog: {
    holds: ({ decisionLogSample: sample }) => sample !== undefined && sample.denied + sample.ok > 0,
    otherwise: 'weir logs no decisions; set DECISION_LOG_SAMPLE, for example to denied=1,ok=0.01.',
  },
};

/**
 * Returns whether the addresses of one Redis use TLS. Invalid addresses end the start, so the result does not matter
 * for them.
 */
function speaksTls(settings: Settings, prefix: 'REDIS' | 'REDIS_PERSECOND'): boolean {
  const address = readRedisAddress(redisInstance(settings, prefix));
  return 'tls' in address && address.tls;
}

/**
 * Returns log lines about variables that are set but have no effect with the other settings, or less effect than
 * expected.
 */
export function ineffectiveSettings(settings: Settings, given: GivenSettings): readonly string[] {
  const unheld = SETTINGS.flatMap((setting) => {
    if (!given.has(setting.name) || isSwitchedOff(setting, settings)) return [];
    const missing = setting.effectiveWhen?.find((condition) => !CONDITIONS[condition].holds(settings, given));
    return missing === undefined ? [] : [note(setting.name, CONDITIONS[missing].otherwise)];
  });
  const inert = INERT_VARIABLES.filter(({ name }) => given.has(name)).map(({ name, reason }) =>
    note(name, reason),
  );
  return [...unheld, ...inert, ...samplingRateNotes(settings)];
}

/** Returns a warning about a sampling rate above 1, which may have been meant as a percentage. */
function samplingRateNotes({ tracingEnabled, tracingSamplingRate: rate }: Settings): readonly string[] {
  if (!tracingEnabled || rate <= 1) return [];
  return [
    `TRACING_SAMPLING_RATE=${rate} counts as 1 (all traces), as in envoyproxy/ratelimit; set a ` +
      'fraction from 0 to 1.',
  ];
}

function note(name: string, reason: string): string {
  return `${name} has no effect: ${reason}`;
}

/** Returns whether a switch is set to its default, so that no effect is expected. */
function isSwitchedOff({ key, type }: Setting, settings: Settings): boolean {
  if (type !== 'boolean') return false;
  const usual = parseValue(type, defaultOf(key));
  return usual.ok && settings[key] === usual.value;
}
