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
      differs: 'With `info` weir logs starts, reloads and what happens to Redis, never single requests.',
    },
  },
  logFormat: {
    name: 'LOG_FORMAT',
    type: 'log_format',
    default: 'auto',
    help: '`json`, `text`, or `auto`: text on a terminal, else JSON.',
    reference: {
      default: 'text',
      differs: 'Where it is unset, weir writes text to a terminal, and JSON elsewhere.',
    },
  },
  decisionLogSample: {
    name: 'DECISION_LOG_SAMPLE',
    type: 'decision_sample',
    default: '',
    help:
      'Log decisions as JSON: the share of denied requests and of all others, as in `denied=1,ok=0.01`. Unset: none. ' +
      'See docs/operate/decision-log.md.',
  },
  decisionLogFile: {
    name: 'DECISION_LOG_FILE',
    effectiveWhen: ['decisionLog'],
    type: 'string',
    default: '',
    help: 'File that those lines are appended to, instead of standard output; it may be rotated.',
  },
  metricsMaxSeries: {
    name: 'METRICS_MAX_SERIES',
    type: 'count',
    default: '10000',
    max: 1_000_000,
    help: 'Most series by rule, and as many again by names that callers choose; the rest counts under `other`.',
  },
  topBuckets: {
    name: 'TOP_BUCKETS',
    type: 'integer',
    default: '500',
    max: 1000,
    help:
      'So many buckets are surely told of by `weir top` if they are denied or used most; 0 counts none. Each takes ' +
      'about 10 KB of memory, and at most 80 KB.',
  },
  historyRules: {
    name: 'HISTORY_RULES',
    type: 'integer',
    default: '500',
    max: 10_000,
    help:
      'For so many rules the page of the debug port shows what was allowed and denied in the last hour, beside ' +
      'all of them together. Each takes about 9 KB of memory.',
  },
  bucketUsedRatioTop: {
    name: 'BUCKET_USED_RATIO_TOP',
    effectiveWhen: ['top'],
    type: 'integer',
    default: '0',
    max: 1000,
    help: 'So many of the buckets that most is asked of have a series in `weir_bucket_used_ratio`; 0: none.',
  },
  useStatsd: {
    name: 'USE_STATSD',
    effectiveWhen: ['stats'],
    type: 'boolean',
    default: 'false',
    help: 'Send metrics to statsd over TCP, at STATSD_HOST and STATSD_PORT.',
    reference: {
      default: 'true',
      differs: 'weir sends metrics to all that are on; envoyproxy/ratelimit starts with one at most.',
    },
  },
  useDogStatsd: {
    name: 'USE_DOG_STATSD',
    effectiveWhen: ['stats'],
    type: 'boolean',
    default: 'false',
    help: 'Send metrics to dogstatsd over UDP, at STATSD_HOST and STATSD_PORT.',
    reference: {
      default: 'false',
      differs: 'weir sends metrics to all that are on; envoyproxy/ratelimit starts with one at most.',
    },
  },
  dogStatsdMogrifiers: {
    name: 'USE_DOG_STATSD_MOGRIFIERS',
    effectiveWhen: ['stats', 'dogStatsd'],
    type: 'string_list',
    default: '',
    help: 'Names of mogrifiers: each is DOG_STATSD_MOGRIFIER_<name>_PATTERN, _NAME and _TAGS.',
    reference: { default: '' },
  },
  statsdHost: {
    name: 'STATSD_HOST',
    effectiveWhen: ['stats', 'statsd'],
    type: 'string',
    default: 'localhost',
    help: 'Host of statsd and dogstatsd.',
    reference: { default: 'localhost' },
  },
  statsdPort: {
    name: 'STATSD_PORT',
    effectiveWhen: ['stats', 'statsd'],
    type: 'port',
    default: '8125',
    help: 'Port of statsd and dogstatsd.',
    reference: { default: '8125' },
  },
  extraTags: {
    name: 'EXTRA_TAGS',
    effectiveWhen: ['stats', 'anySink'],
    type: 'string_map',
    default: '',
    help: 'Tags of every statsd metric: `name:value,name:value`.',
    reference: { default: '' },
  },
  statsFlushInterval: {
    name: 'STATS_FLUSH_INTERVAL',
    effectiveWhen: ['stats', 'statsd'],
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
    effectiveWhen: ['stats'],
    type: 'boolean',
    default: 'false',
    help: "Serve the reference's metrics for Prometheus, and weir's, at PROMETHEUS_ADDR and PORT.",
    reference: {
      default: 'false',
      differs: 'weir sends metrics to all that are on; envoyproxy/ratelimit starts with one at most.',
    },
  },
  prometheusAddr: {
    name: 'PROMETHEUS_ADDR',
    effectiveWhen: ['stats', 'prometheus'],
    type: 'string',
    default: ':9090',
    help: 'Address of that, `host:port` or `:port`.',
    reference: { default: ':9090' },
  },
  prometheusPath: {
    name: 'PROMETHEUS_PATH',
    effectiveWhen: ['stats', 'prometheus'],
    type: 'string',
    default: '/metrics',
    help: 'Path of that.',
    reference: { default: '/metrics' },
  },
  prometheusMapper: {
    name: 'PROMETHEUS_MAPPER_YAML',
    effectiveWhen: ['stats', 'prometheus'],
    type: 'string',
    default: '',
    help: 'File with the mapping of statsd_exporter from statistics to metrics. Unset: that of the reference.',
    reference: { default: '' },
  },
  prometheusMillis: {
    name: 'PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS',
    effectiveWhen: ['stats', 'prometheus', 'noMapper'],
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
    help:
      'Record traces of decisions, and send them to an OpenTelemetry collector, which the OTEL_EXPORTER_OTLP_* ' +
      'variables of OpenTelemetry name. See docs/operate/tracing.md.',
    reference: { default: 'false' },
  },
  tracingExporterProtocol: {
    name: 'TRACING_EXPORTER_PROTOCOL',
    effectiveWhen: ['tracing'],
    type: 'trace_protocol',
    default: 'http',
    help: 'What the collector is spoken to in: `http` (protobuf over HTTP) or `grpc`.',
    reference: {
      default: 'http',
      differs: 'Where no endpoint is set, weir speaks clear text to localhost, envoyproxy/ratelimit TLS.',
    },
  },
  tracingServiceName: {
    name: 'TRACING_SERVICE_NAME',
    effectiveWhen: ['tracing'],
    type: 'string',
    default: 'RateLimit',
    help: 'Traces have it as `service.name`.',
    reference: { default: 'RateLimit' },
  },
  tracingServiceNamespace: {
    name: 'TRACING_SERVICE_NAMESPACE',
    effectiveWhen: ['tracing'],
    type: 'string',
    default: '',
    help: 'Traces have it as `service.namespace`.',
    reference: { default: '' },
  },
  tracingServiceInstanceId: {
    name: 'TRACING_SERVICE_INSTANCE_ID',
    effectiveWhen: ['tracing'],
    type: 'string',
    default: '',
    help: 'Traces have it as `service.instance.id`. Unset: a random UUID, another one in each worker process.',
    reference: { default: '' },
  },
  tracingSamplingRate: {
    name: 'TRACING_SAMPLING_RATE',
    effectiveWhen: ['tracing'],
    type: 'number',
    default: '1',
    help:
      'Share of the traces that begin here which is recorded, 0 to 1; what a caller samples is recorded always. ' +
      'A number above 1 means 1.',
    reference: { default: '1' },
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
