import { own, shared, when } from './settings-values.js';

/** Settings of logs, metrics and traces. */
export const TELEMETRY_SETTINGS = {
  logLevel: shared('LOG_LEVEL', 'log_level', 'info', {
    help: 'Minimum level of log lines. `debug` logs every decision.',
    theirs: 'WARN',
    differs: 'With `info`, weir logs starts, reloads and Redis events, but not individual requests.',
  }),
  logFormat: shared('LOG_FORMAT', 'log_format', 'auto', {
    help: '`json`, `text`, or `auto`: text on a terminal, JSON otherwise.',
    theirs: 'text',
    differs: 'If unset, weir writes text to a terminal and JSON otherwise.',
  }),
  decisionLogSample: own('DECISION_LOG_SAMPLE', 'decision_sample', '', {
    help:
      'Fractions of denied and other requests whose decisions weir logs as JSON, such as ' +
      '`denied=1,ok=0.01`. If unset, weir logs no decisions. See docs/operate/decision-log.md.',
  }),
  ...when('DECISION_LOG_SAMPLE', {
    decisionLogFile: own('DECISION_LOG_FILE', 'string', '', {
      help: 'File to which weir appends the decision log, instead of standard output. You can rotate the file.',
    }),
  }),
  metricsMaxSeries: own('METRICS_MAX_SERIES', 'count', '10000', {
    max: 1_000_000,
    help:
      'Maximum number of metric series for rules. The same maximum applies separately to series for ' +
      'names from requests, such as unknown domains. weir counts all further names as `other`.',
  }),
  topBuckets: own('TOP_BUCKETS', 'integer', '500', {
    max: 1_000,
    help:
      'Number of buckets that `weir top` tracks. 0: off. Each bucket needs about 10 KB of memory, and ' +
      'at most 80 KB.',
  }),
  historyRules: own('HISTORY_RULES', 'integer', '500', {
    max: 10_000,
    help:
      'Number of rules for which the page shows allowed and denied requests of the last hour. The page ' +
      'always shows the total of all rules. Each rule needs about 9 KB of memory.',
  }),
  ...when('TOP_BUCKETS', {
    bucketUsedRatioTop: own('BUCKET_USED_RATIO_TOP', 'integer', '0', {
      max: 1_000,
      help:
        'Number of buckets that have a series in `weir_bucket_used_ratio`. weir selects the buckets ' +
        'with the most requests in the last minute. 0: none.',
    }),
  }),
  ...when('DISABLE_STATS=false', {
    useStatsd: shared('USE_STATSD', 'boolean', 'false', {
      help: 'Send metrics to statsd over TCP, at STATSD_HOST and STATSD_PORT.',
      theirs: 'true',
      differs: 'weir can send metrics to several targets; envoyproxy/ratelimit accepts only one.',
    }),
    useDogStatsd: shared('USE_DOG_STATSD', 'boolean', 'false', {
      help: 'Send metrics to dogstatsd over UDP, at STATSD_HOST and STATSD_PORT.',
      differs: 'weir can send metrics to several targets; envoyproxy/ratelimit accepts only one.',
    }),
    ...when('USE_DOG_STATSD=true', {
      dogStatsdMogrifiers: shared('USE_DOG_STATSD_MOGRIFIERS', 'string_list', '', {
        help: 'Names of mogrifiers. Define each with DOG_STATSD_MOGRIFIER_<name>_PATTERN, _NAME and _TAGS.',
      }),
    }),
    ...when('USE_STATSD=true or USE_DOG_STATSD=true', {
      statsdHost: shared('STATSD_HOST', 'string', 'localhost', { help: 'Host of statsd or dogstatsd.' }),
      statsdPort: shared('STATSD_PORT', 'port', '8125', { help: 'Port of statsd or dogstatsd.' }),
    }),
    ...when('USE_STATSD=true or USE_DOG_STATSD=true or USE_PROMETHEUS=true', {
      extraTags: shared('EXTRA_TAGS', 'string_map', '', {
        help: 'Tags for all statsd and dogstatsd metrics: `name:value,name:value`.',
      }),
    }),
    ...when('USE_STATSD=true or USE_DOG_STATSD=true', {
      statsFlushInterval: shared('STATS_FLUSH_INTERVAL', 'timeout', '10s', {
        help: 'Interval at which weir sends metrics to statsd and dogstatsd.',
      }),
    }),
  }),
  disableStats: shared('DISABLE_STATS', 'boolean', 'false', {
    help:
      'Turn off statsd, dogstatsd and the Prometheus endpoint at PROMETHEUS_ADDR. `/metrics` on PORT ' +
      'stays available.',
  }),
  ...when('DISABLE_STATS=false', {
    usePrometheus: shared('USE_PROMETHEUS', 'boolean', 'false', {
      help:
        "Serve the metrics of envoyproxy/ratelimit in addition to weir's own metrics, at " +
        'PROMETHEUS_ADDR and on PORT.',
      differs: 'weir can send metrics to several targets; envoyproxy/ratelimit accepts only one.',
    }),
    ...when('USE_PROMETHEUS=true', {
      prometheusAddr: shared('PROMETHEUS_ADDR', 'string', ':9090', {
        help: 'Address of the Prometheus endpoint: `host:port` or `:port`.',
      }),
      prometheusPath: shared('PROMETHEUS_PATH', 'string', '/metrics', {
        help: 'Path of the Prometheus endpoint.',
      }),
      prometheusMapper: shared('PROMETHEUS_MAPPER_YAML', 'string', '', {
        help:
          'File with a statsd_exporter mapping from statistics to metrics. If unset, weir uses the ' +
          'mapping of envoyproxy/ratelimit.',
      }),
      ...when('PROMETHEUS_MAPPER_YAML=', {
        prometheusMillis: shared('PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS', 'boolean', 'false', {
          help:
            'Report `ratelimit_service_response_time_seconds` in milliseconds, for dashboards that ' +
            'expect the old, incorrect unit of envoyproxy/ratelimit.',
        }),
      }),
    }),
  }),
  tracingEnabled: shared('TRACING_ENABLED', 'boolean', 'false', {
    help:
      "Record traces of decisions and send them to an OpenTelemetry collector. Set the collector's " +
      'address with the OTEL_EXPORTER_OTLP_* variables. See docs/operate/tracing.md.',
  }),
  ...when('TRACING_ENABLED=true', {
    tracingExporterProtocol: shared('TRACING_EXPORTER_PROTOCOL', 'trace_protocol', 'http', {
      help: 'Protocol for sending traces to the collector: `http` (protobuf over HTTP) or `grpc`.',
      differs:
        'If no endpoint is set, weir connects to localhost in plain text; envoyproxy/ratelimit uses TLS.',
    }),
    tracingServiceName: shared('TRACING_SERVICE_NAME', 'string', 'RateLimit', {
      help: 'Value of `service.name` in traces.',
    }),
    tracingServiceNamespace: shared('TRACING_SERVICE_NAMESPACE', 'string', '', {
      help: 'Value of `service.namespace` in traces.',
    }),
    tracingServiceInstanceId: shared('TRACING_SERVICE_INSTANCE_ID', 'string', '', {
      help: 'Value of `service.instance.id` in traces. If unset: a random UUID for each process.',
    }),
    tracingSamplingRate: shared('TRACING_SAMPLING_RATE', 'number', '1', {
      help:
        'Fraction of traces to record, from 0 to 1, for traces that begin in weir. weir treats values ' +
        'above 1 as 1. If a caller samples a trace, weir always records the trace.',
    }),
  }),
} as const;
