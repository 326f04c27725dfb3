import type { SettingSpec } from './spec.js';

/** Logs, metrics and traces. */
export const TELEMETRY_SETTINGS = {
  logLevel: {
    name: 'LOG_LEVEL',
    type: 'log_level',
    default: 'info',
    help: 'Least level to log; `debug` logs every decision.',
    reference: {
      default: 'WARN',
      differs: '`info` tells of starts, reloads and Redis, never of single requests.',
    },
  },
  logFormat: {
    name: 'LOG_FORMAT',
    type: 'log_format',
    default: 'auto',
    help: '`json`, `text`, or `auto`: text on a terminal, else JSON.',
    reference: { default: 'text', differs: 'Unset: text on a terminal, else JSON.' },
  },
  metricsMaxSeries: {
    name: 'METRICS_MAX_SERIES',
    type: 'count',
    default: '10000',
    max: 1_000_000,
    help: 'Most series by rule, and as many again by names that callers choose; the rest counts under `other`.',
  },
  useStatsd: {
    name: 'USE_STATSD',
    type: 'boolean',
    default: 'false',
    help: 'Send metrics to statsd over TCP, at STATSD_HOST and STATSD_PORT.',
    reference: { default: 'true', differs: 'Several sinks may be on at once.' },
  },
  useDogStatsd: {
    name: 'USE_DOG_STATSD',
    type: 'boolean',
    default: 'false',
    help: 'Send metrics to dogstatsd over UDP, at STATSD_HOST and STATSD_PORT.',
    reference: { default: 'false', differs: 'Several sinks may be on at once.' },
  },
  dogStatsdMogrifiers: {
    name: 'USE_DOG_STATSD_MOGRIFIERS',
    type: 'string_list',
    default: '',
    help: 'Names of mogrifiers: each is DOG_STATSD_MOGRIFIER_<name>_PATTERN, _NAME and _TAGS.',
    reference: { default: '' },
  },
  statsdHost: {
    name: 'STATSD_HOST',
    type: 'string',
    default: 'localhost',
    help: 'Host of statsd and dogstatsd.',
    reference: { default: 'localhost' },
  },
  statsdPort: {
    name: 'STATSD_PORT',
    type: 'port',
    default: '8125',
    help: 'Port of statsd and dogstatsd.',
    reference: { default: '8125' },
  },
  extraTags: {
    name: 'EXTRA_TAGS',
    type: 'string_map',
    default: '',
    help: 'Tags of every statsd metric: `name:value,name:value`.',
    reference: { default: '' },
  },
  statsFlushInterval: {
    name: 'STATS_FLUSH_INTERVAL',
    type: 'duration',
    default: '10s',
    help: 'How often statsd and dogstatsd are sent to.',
    reference: { default: '10s' },
  },
  disableStats: {
    name: 'DISABLE_STATS',
    type: 'boolean',
    default: 'false',
    help: 'No statsd, no dogstatsd, no PROMETHEUS_ADDR, whatever the others say. `/metrics` of PORT stays.',
    reference: { default: 'false' },
  },
  usePrometheus: {
    name: 'USE_PROMETHEUS',
    type: 'boolean',
    default: 'false',
    help: "Serve the reference's metrics for Prometheus, and weir's, at PROMETHEUS_ADDR and PORT.",
    reference: { default: 'false', differs: 'Several sinks may be on at once.' },
  },
  prometheusAddr: {
    name: 'PROMETHEUS_ADDR',
    type: 'string',
    default: ':9090',
    help: 'Address of that, `host:port` or `:port`.',
    reference: { default: ':9090' },
  },
  prometheusPath: {
    name: 'PROMETHEUS_PATH',
    type: 'string',
    default: '/metrics',
    help: 'Path of that.',
    reference: { default: '/metrics' },
  },
  prometheusMapper: {
    name: 'PROMETHEUS_MAPPER_YAML',
    type: 'string',
    default: '',
    help: 'File with the mapping of statsd_exporter from statistics to metrics. Unset: that of the reference.',
    reference: { default: '' },
  },
  prometheusMillis: {
    name: 'PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS',
    type: 'boolean',
    default: 'false',
    help:
      '`ratelimit_service_response_time_seconds` holds milliseconds, as dashboards made before it was ' +
      'mended expect.',
    reference: { default: 'false' },
  },
  tracingEnabled: {
    name: 'TRACING_ENABLED',
    type: 'boolean',
    default: 'false',
    help: 'Refused when true.',
    reference: { default: 'false' },
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
