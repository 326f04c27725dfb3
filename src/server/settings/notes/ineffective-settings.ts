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
    otherwise: 'CONFIG_TYPE=GRPC_XDS_SOTW takes policies from a management server; unset one of them.',
  },
  runtimeRoot: {
    holds: (_, given) =>
      ['RUNTIME_ROOT', 'RUNTIME_SUBDIRECTORY', 'RUNTIME_APPDIRECTORY'].some((name) => given.has(name)),
    otherwise: 'RUNTIME_ROOT is not set; set it to read policies where the reference does.',
  },
  xds: {
    holds: ({ configType }) => configType === 'GRPC_XDS_SOTW',
    otherwise:
      'policies come from files; set CONFIG_TYPE=GRPC_XDS_SOTW to take them from a management server.',
  },
  xdsTls: {
    holds: ({ xdsUseTls }) => xdsUseTls,
    otherwise:
      'the management server is spoken to in clear text; set CONFIG_GRPC_XDS_SERVER_USE_TLS=true for TLS.',
  },
  xdsJitter: {
    holds: ({ xdsBackoffJitter }) => xdsBackoffJitter,
    otherwise: 'XDS_CLIENT_BACKOFF_JITTER is off; set it to true, or unset this.',
  },
  noUds: {
    holds: ({ grpcUds }) => grpcUds === '',
    otherwise: 'GRPC_UDS is set, so gRPC is served at a socket path and at no port; unset one of them.',
  },
  h2: {
    holds: ({ grpcTransport }) => grpcTransport === 'h2',
    otherwise: 'GRPC_TRANSPORT=grpc-js knows no such bound; set GRPC_TRANSPORT=h2, or unset this.',
  },
  grpcTls: {
    holds: ({ grpcServerUseTls }) => grpcServerUseTls,
    otherwise: 'gRPC is served in clear text; set GRPC_SERVER_USE_TLS=true for TLS.',
  },
  connectionAge: {
    holds: ({ grpcMaxConnectionAge }) => grpcMaxConnectionAge > 0,
    otherwise:
      'GRPC_MAX_CONNECTION_AGE=0 lets connections grow as old as they like; give them an age, or unset this.',
  },
  keepAlive: {
    holds: ({ grpcKeepAliveInterval }) => grpcKeepAliveInterval > 0,
    otherwise: 'GRPC_KEEP_ALIVE_INTERVAL=0 sends no PING; set an interval, or unset this.',
  },
  workers: {
    holds: ({ workers }) => workers > 1,
    otherwise: 'there is one process; set WORKERS to 2 or more, or unset this.',
  },
  redis: {
    holds: ({ redisUrl }) => redisUrl !== '',
    otherwise: 'it is about Redis, and buckets live in memory; set REDIS_URL.',
  },
  redisTls: {
    holds: (settings) =>
      speaksTls(settings, 'REDIS') || (settings.perSecond && speaksTls(settings, 'REDIS_PERSECOND')),
    otherwise:
      'Redis is spoken to in clear text; set REDIS_TLS=true, or begin REDIS_URL with rediss://, for TLS.',
  },
  sentinel: {
    holds: ({ redisType }) => redisType === 'sentinel',
    otherwise: 'it is about Sentinels, and there are none; set REDIS_TYPE=SENTINEL, or unset this.',
  },
  perSecondSentinel: {
    holds: ({ perSecondType }) => perSecondType === 'sentinel',
    otherwise: 'it is about Sentinels, and there are none; set REDIS_PERSECOND_TYPE=SENTINEL, or unset this.',
  },
  authCommand: {
    holds: ({ redisAuthCommand, perSecond, perSecondAuthCommand }) =>
      redisAuthCommand !== undefined || (perSecond && perSecondAuthCommand !== undefined),
    otherwise: 'it is about the login that a command prints; set REDIS_AUTH_COMMAND, or unset this.',
  },
  denials: {
    holds: ({ localCacheBytes }) => localCacheBytes !== 0,
    otherwise: 'LOCAL_CACHE_SIZE_IN_BYTES=0 keeps no denials; unset one of them.',
  },
  repeatedDenials: {
    holds: ({ denyCacheMaxAge, localCacheBytes }) => denyCacheMaxAge > 0 || localCacheBytes !== undefined,
    otherwise: 'DENY_CACHE_MAX_AGE=0 keeps no denials; unset one of them.',
  },
  perSecond: {
    holds: ({ perSecond }) => perSecond,
    otherwise:
      'all buckets live in one Redis; set REDIS_PERSECOND=true to give windows of one second another.',
  },
  limitHeaders: {
    holds: ({ limitHeaders }) => limitHeaders,
    otherwise: 'it names a header that is not sent; set LIMIT_RESPONSE_HEADERS_ENABLED=true.',
  },
  limitRequestHeaders: {
    holds: ({ limitRequestHeaders }) => limitRequestHeaders,
    otherwise: 'it names a header that is not sent; set LIMIT_REQUEST_HEADERS_ENABLED=true.',
  },
  top: {
    holds: ({ topBuckets }) => topBuckets > 0,
    otherwise: 'TOP_BUCKETS=0 counts no single buckets; give it a number, or unset this.',
  },
  stats: {
    holds: ({ disableStats }) => !disableStats,
    otherwise: 'DISABLE_STATS=true turns it off; unset one of them.',
  },
  statsd: {
    holds: ({ useStatsd, useDogStatsd }) => useStatsd || useDogStatsd,
    otherwise: 'statsd is off unless it is asked for; set USE_STATSD=true.',
  },
  dogStatsd: {
    holds: ({ useDogStatsd }) => useDogStatsd,
    otherwise: 'it is about dogstatsd, which is off; set USE_DOG_STATSD=true.',
  },
  anySink: {
    holds: ({ useStatsd, useDogStatsd, usePrometheus }) => useStatsd || useDogStatsd || usePrometheus,
    otherwise: 'statistics are sent nowhere; set USE_STATSD, USE_DOG_STATSD or USE_PROMETHEUS to true.',
  },
  prometheus: {
    holds: ({ usePrometheus }) => usePrometheus,
    otherwise: "the reference's metrics for Prometheus are off; set USE_PROMETHEUS=true.",
  },
  noMapper: {
    holds: ({ prometheusMapper }) => prometheusMapper === '',
    otherwise: 'PROMETHEUS_MAPPER_YAML says how times are shown; unset one of them.',
  },
  tracing: {
    holds: ({ tracingEnabled }) => tracingEnabled,
    otherwise: 'no traces are recorded; set TRACING_ENABLED=true.',
  },
  decisionLog: {
    holds: ({ decisionLogSample: sample }) => sample !== undefined && sample.denied + sample.ok > 0,
    otherwise: 'no decisions are logged; set DECISION_LOG_SAMPLE, as in denied=1,ok=0.01.',
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
    `TRACING_SAMPLING_RATE=${rate} means 1, all traces, as in envoyproxy/ratelimit: it is a share from 0 to 1.`,
  ];
}

function note(name: string, reason: string): string {
  return `${name} changes nothing: ${reason}`;
}

/** Returns whether a switch is set to its default, so that no effect is expected. */
function isSwitchedOff({ key, type }: Setting, settings: Settings): boolean {
  if (type !== 'boolean') return false;
  const usual = parseValue(type, defaultOf(key));
  return usual.ok && settings[key] === usual.value;
}
