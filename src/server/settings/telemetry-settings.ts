import type { SettingSpec } from './spec.js';

/** Settings of logs, metrics and traces. */
export const TELEMETRY_SETTINGS = {
  logLevel: {
    name: 'LOG_LEVEL',
    type: 'log_level',
    default: 'info',
    help: 'Minimum level of log lines. `debug` logs every decision.',
    reference: {
      default: 'WARN',
      differs: 'With `info`, weir logs starts, reloads and Redis events, but not individual requests.',
    },
  },
  logFormat: {
    name: 'LOG_FORMAT',
    type: 'log_format',
    default: 'auto',
    help: '`json`, `text`, or `auto`: text on a terminal, JSON otherwise.',
    reference: {
      default: 'text',
      differs: 'If unset, weir writes text to a terminal and JSON otherwise.',
    },
  },
  decisionLogSample: {
    name: 'DECISION_LOG_SAMPLE',
    type: 'decision_sample',
    default: '',
    help:
      'Fractions of denied and other requests whose decisions weir logs as JSON, such as ' +
      '`denied=1,ok=0.01`. If unset, weir logs no decisions. See docs/operate/decision-log.md.',
  },
  decisionLogFile: {
    name: 'DECISION_LOG_FILE',
    effectiveWhen: ['decisionLog'],
    type: 'string',
    default: '',
    help: 'File to which weir appends the decision log, instead of standard output. You can rotate the file.',
  },
  metricsMaxSeries: {
    name: 'METRICS_MAX_SERIES',
    type: 'count',
    default: '10000',
    max: 1_000_000,
    help:
      'Maximum number of metric series for rules. The same maximum applies separately to series for names ' +
      'from requests, such as unknown domains. weir counts all further names as `other`.',
  },
  topBuckets: {
    name: 'TOP_BUCKETS',
    type: 'integer',
    default: '500',
    max: 1000,
    help:
      'Number of buckets that `weir top` tracks. 0: off. Each bucket needs about 10 KB of memory, and at ' +
      'most 80 KB.',
  },
  historyRules: {
    name: 'HISTORY_RULES',
    type: 'integer',
    default: '500',
    max: 10_000,
    help:
      'Number of rules for which the page shows allowed and denied requests of the last hour. The page always ' +
      'shows the total of all rules. Each rule needs about 9 KB of memory.',
  },
  bucketUsedRatioTop: {
    name: 'BUCKET_USED_RATIO_TOP',
    effectiveWhen: ['top'],
    type: 'integer',
    default: '0',
    max: 1000,
    help:
      'Number of buckets that have a series in `weir_bucket_used_ratio`. weir selects the buckets with ' +
      'the most requests in the last minute. 0: none.',
  },
  useStatsd: {
    name: 'USE_STATSD',
    effectiveWhen: ['stats'],
    type: 'boolean',
    default: 'false',
    help: 'Send metrics to statsd over TCP, at STATSD_HOST and STATSD_PORT.',
    reference: {
      default: 'true',
      differs: 'weir can send metrics to several targets; envoyproxy/ratelimit accepts only one.',
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
      differs: 'weir can send metrics to several targets; envoyproxy/ratelimit accepts only one.',
    },
  },
  dogStatsdMogrifiers: {
    name: 'USE_DOG_STATSD_MOGRIFIERS',
    effectiveWhen: ['stats', 'dogStatsd'],
    type: 'string_list',
    default: '',
    help: 'Names of mogrifiers. Define each with DOG_STATSD_MOGRIFIER_<name>_PATTERN, _NAME and _TAGS.',
    reference: { default: '' },
  },
  statsdHost: {
    name: 'STATSD_HOST',
    effectiveWhen: ['stats', 'statsd'],
    type: 'string',
    default: 'localhost',
    help: 'Host of statsd or dogstatsd.',
    reference: { default: 'localhost' },
  },
  statsdPort: {
    name: 'STATSD_PORT',
    effectiveWhen: ['stats', 'statsd'],
    type: 'port',
    default: '8125',
    help: 'Port of statsd or dogstatsd.',
    reference: { default: '8125' },
  },
  extraTags: {
    name: 'EXTRA_TAGS',
    effectiveWhen: ['stats', 'anySink'],
    type: 'string_map',
    default: '',
    help: 'Tags for all statsd and dogstatsd metrics: `name:value,name:value`.',
    reference: { default: '' },
  },
  statsFlushInterval: {
    name: 'STATS_FLUSH_INTERVAL',
    effectiveWhen: ['stats', 'statsd'],
    type: 'duration',
    default: '10s',
    help: 'Interval at which weir sends metrics to statsd and dogstatsd.',
    reference: { default: '10s' },
  },
  disableStats: {
    name: 'DISABLE_STATS',
    type: 'boolean',
    default: 'false',
    help:
      'Turn off statsd, dogstatsd and the Prometheus endpoint at PROMETHEUS_ADDR. `/metrics` on PORT ' +
      'stays available.',
    reference: { default: 'false' },
  },
  usePrometheus: {
    name: 'USE_PROMETHEUS',
    effectiveWhen: ['stats'],
    type: 'boolean',
    default: 'false',
    help:
      "Serve the metrics of envoyproxy/ratelimit in addition to weir's own metrics, at PROMETHEUS_ADDR " +
      'and on PORT.',
    reference: {
      default: 'false',
      differs: 'weir can send metrics to several targets; envoyproxy/ratelimit accepts only one.',
    },
  },
  prometheusAddr: {
    name: 'PROMETHEUS_ADDR',
    effectiveWhen: ['stats', 'prometheus'],
    type: 'string',
    default: ':9090',
    help: 'Address of the Prometheus endpoint: `host:port` or `:port`.',
    reference: { default: ':9090' },
  },
  prometheusPath: {
    name: 'PROMETHEUS_PATH',
    effectiveWhen: ['stats', 'prometheus'],
    type: 'string',
    default: '/metrics',
    help: 'Path of the Prometheus endpoint.',
    reference: { default: '/metrics' },
  },
  prometheusMapper: {
    name: 'PROMETHEUS_MAPPER_YAML',
    effectiveWhen: ['stats', 'prometheus'],
    type: 'string',
    default: '',
    help:
      'File with a statsd_exporter mapping from statistics to metrics. If unset, weir uses the mapping of ' +
      'envoyproxy/ratelimit.',
    reference: { default: '' },
  },
  prometheusMillis: {
    name: 'PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS',
    effectiveWhen: ['stats', 'prometheus', 'noMapper'],
    type: 'boolean',
    default: 'false',
    help:
      'Report `ratelimit_service_response_time_seconds` in milliseconds, for dashboards that expect the old, ' +
      'incorrect unit of envoyproxy/ratelimit.',
    reference: { default: 'false' },
  },
  tracingEnabled: {
    name: 'TRACING_ENABLED',
    type: 'boolean',
    default: 'false',
    help:
      "Record traces of decisions and send them to an OpenTelemetry collector. Set the collector's " +
      'address with the OTEL_EXPORTER_OTLP_* variables. See docs/operate/tracing.md.',
    reference: { default: 'false' },
  },
  tracingExporterProtocol: {
    name: 'TRACING_EXPORTER_PROTOCOL',
    effectiveWhen: ['tracing'],
    type: 'trace_protocol',
    default: 'http',
    help: 'Protocol for sending traces to the collector: `http` (protobuf over HTTP) or `grpc`.',
    reference: {
      default: 'http',
      differs:
        'If no endpoint is set, weir connects to localhost in plain text; envoyproxy/ratelimit uses TLS.',
    },
  },
  tracingServiceName: {
    name: 'TRACING_SERVICE_NAME',
    effectiveWhen: ['tracing'],
    type: 'string',
    default: 'RateLimit',
    help: 'Value of `service.name` in traces.',
    reference: { default: 'RateLimit' },
  },
  tracingServiceNamespace: {
    name: 'TRACING_SERVICE_NAMESPACE',
    effectiveWhen: ['tracing'],
    type: 'string',
    default: '',
    help: 'Value of `service.namespace` in traces.',
    reference: { default: '' },
  },
  tracingServiceInstanceId: {
    name: 'TRACING_SERVICE_INSTANCE_ID',
    effectiveWhen: ['tracing'],
    type: 'string',
    default: '',
    help: 'Value of `service.instance.id` in traces. If unset: a random UUID for each process.',
    reference: { default: '' },
  },
  tracingSamplingRate: {
    name: 'TRACING_SAMPLING_RATE',
    effectiveWhen: ['tracing'],
    type: 'number',
    default: '1',
    help:
      'Fraction of traces to record, from 0 to 1, for traces that begin in weir. weir treats values above ' +
      '1 as 1. If a caller samples a trace, weir always records the trace.',
    reference: { default: '1' },
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
