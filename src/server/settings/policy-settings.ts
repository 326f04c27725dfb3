import { DEFAULT_ALGORITHM, DEFAULT_HOLD_ENTRY } from '../../policy/policy.js';
import { own, shared, when } from './settings-values.js';

const EACH_SERVER =
  ' With several management servers: one value for all, or one for each, separated by commas.';

export const POLICY_SETTINGS = {
  ...when('CONFIG_TYPE=FILE', {
    configPath: own('CONFIG_PATH', 'string', '', {
      help:
        'Policy file, or a directory of `.yaml` and `.yml` files. If unset, weir uses the bundled Open ' +
        'API policy.',
    }),
  }),
  configType: shared('CONFIG_TYPE', 'config_type', 'FILE', {
    help:
      '`FILE`: read policies from CONFIG_PATH or RUNTIME_ROOT. `GRPC_XDS_SOTW`: receive policies from a ' +
      'management server (ADS, state of the world).',
  }),
  ...when('CONFIG_TYPE=FILE', {
    runtimeRoot: shared('RUNTIME_ROOT', 'string', '', {
      help:
        'Read all files in RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, as ' +
        'envoyproxy/ratelimit does. Set this or CONFIG_PATH, not both.',
      theirs: '/srv/runtime_data/current',
      differs: 'If the three RUNTIME_* paths are unset, weir reads CONFIG_PATH or its bundled policy.',
    }),
    runtimeSubdirectory: shared('RUNTIME_SUBDIRECTORY', 'string', '', {
      help: 'Directory below RUNTIME_ROOT.',
    }),
    runtimeAppDirectory: shared('RUNTIME_APPDIRECTORY', 'string', '', {
      help: 'Directory that contains the policy files, below RUNTIME_SUBDIRECTORY. If unset: `config`.',
      theirs: 'config',
    }),
    ...when('RUNTIME_ROOT or RUNTIME_SUBDIRECTORY or RUNTIME_APPDIRECTORY', {
      runtimeWatchRoot: shared('RUNTIME_WATCH_ROOT', 'boolean', 'true', {
        help:
          '`true`: a deployment replaces the symbolic link RUNTIME_ROOT. `false`: a deployment changes ' +
          'files in the policy directory.',
        differs:
          'weir detects replaced links and changed files with either value. With `true`, weir also ' +
          "reads files next to the policy directory if their names begin with the directory's name, " +
          'such as `config.yaml`.',
      }),
      runtimeIgnoreDotFiles: shared('RUNTIME_IGNOREDOTFILES', 'boolean', 'false', {
        help: 'Ignore files and directories whose names begin with a dot.',
        differs: "weir reads each file only once, even if Kubernetes' `..data` link also leads to the file.",
      }),
    }),
  }),
  mergeDomains: shared('MERGE_DOMAIN_CONFIG', 'boolean', 'false', {
    help:
      'Merge files that have the same domain. If false, a domain that appears in two files is invalid ' +
      'in both.',
  }),
  ...when('CONFIG_TYPE=FILE', {
    plansPollInterval: own('PLANS_POLL_INTERVAL', 'duration', '5s', {
      help: 'Time between two requests for a table of `plans` in Redis.',
    }),
    plansTokenPath: own('PLANS_TOKEN_PATH', 'string', '', {
      help:
        'File with the password for tables of `plans` in Redis, which weir reads for each request. If ' +
        'the tables are on several servers, it has one line for each: `host:port/password`.',
    }),
  }),
  defaultAlgorithm: own('DEFAULT_ALGORITHM', 'algorithm', DEFAULT_ALGORITHM, {
    help:
      'Default `algorithm` of limits with `unit` and `requests_per_unit`, and of overrides in requests: ' +
      "`fixed_window` or `token_bucket`. A token bucket refills at the limit's rate.",
  }),
  holdEntry: own('HOLD_ENTRY', 'string', DEFAULT_HOLD_ENTRY, {
    help:
      'Key of the descriptor entry with which Envoy reports the end of a request, in domains with ' +
      '`concurrency` or `hold`. Its value is the token of the request.',
  }),
  forceStart: shared('FORCE_START_WITHOUT_INITIAL_CONFIG', 'boolean', 'false', {
    help: 'Start even if no policy is valid. Every request gets an error until weir has loaded a valid policy.',
  }),
  healthyWithConfig: shared('HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED', 'boolean', 'false', {
    help: 'Report NOT_SERVING until a policy with at least one domain is loaded.',
  }),
  ...when('CONFIG_TYPE=GRPC_XDS_SOTW', {
    xdsNodeId: shared('CONFIG_GRPC_XDS_NODE_ID', 'string_list', 'default', {
      help: `Node ID that weir sends to the management server.${EACH_SERVER}`,
    }),
    xdsNodeMetadata: shared('CONFIG_GRPC_XDS_NODE_METADATA', 'metadata_map', '', {
      help: 'Node metadata that weir sends to the management server: `key=value,key=value`.',
      differs: 'weir also accepts `key:value`, which envoyproxy/ratelimit silently ignores.',
    }),
    xdsServerUrl: shared('CONFIG_GRPC_XDS_SERVER_URL', 'string_list', 'localhost:18000', {
      help:
        'Address of the management server: `host:port`, without a scheme. Several addresses, separated ' +
        'by commas: weir gets policies from all of these servers. If two of them have the same domain, ' +
        'the first one decides it.',
      differs: 'envoyproxy/ratelimit supports one address.',
    }),
    xdsRetryInterval: shared('CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL', 'duration', '3s', {
      help: 'Timeout for connecting to the management server. 0: no timeout.',
    }),
    xdsHeaders: shared('CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS', 'string_list', '', {
      secret: true,
      help:
        'Headers that weir sends to the management server: `name:value,name:value`. An item may begin ' +
        'with the address of its server, and with several management servers it must: ' +
        '`host:port/name:value`.',
    }),
    xdsUseTls: shared('CONFIG_GRPC_XDS_SERVER_USE_TLS', 'boolean_list', 'false', {
      help: `Connect to the management server over TLS.${EACH_SERVER}`,
    }),
    ...when('CONFIG_GRPC_XDS_SERVER_USE_TLS=true', {
      xdsTlsCert: shared('CONFIG_GRPC_XDS_CLIENT_TLS_CERT', 'string_list', '', {
        help: `File with the client certificate for the management server (PEM).${EACH_SERVER}`,
      }),
      xdsTlsKey: shared('CONFIG_GRPC_XDS_CLIENT_TLS_KEY', 'string_list', '', {
        help:
          'File with the private key of the certificate in CONFIG_GRPC_XDS_CLIENT_TLS_CERT (PEM). With ' +
          'several management servers: one value for all, or one for each, separated by commas.',
      }),
      xdsTlsCaCert: shared('CONFIG_GRPC_XDS_SERVER_TLS_CACERT', 'string_list', '', {
        help:
          'File with CA certificates for the management server (PEM), in addition to the CAs that ' +
          'Node.js trusts. With several management servers: one value for all, or one for each, ' +
          'separated by commas.',
      }),
      xdsTlsSan: shared('CONFIG_GRPC_XDS_SERVER_TLS_SAN', 'string_list', '', {
        help:
          "Subject alternative name that the management server's certificate must contain instead of " +
          "the server's host name. With several management servers: one value for all, or one for each, " +
          'separated by commas.',
        differs: 'weir also accepts a URI (SPIFFE).',
      }),
    }),
    xdsBackoffInitial: shared('XDS_CLIENT_BACKOFF_INITIAL_INTERVAL', 'duration', '10s', {
      help: 'First pause before weir reconnects to the management server.',
    }),
    xdsBackoffMax: shared('XDS_CLIENT_BACKOFF_MAX_INTERVAL', 'duration', '60s', {
      help:
        'Maximum pause before weir reconnects to the management server. Each pause is twice the ' +
        'previous one.',
    }),
    ...when('XDS_CLIENT_BACKOFF_JITTER=true', {
      xdsBackoffRandomFactor: shared('XDS_CLIENT_BACKOFF_RANDOM_FACTOR', 'number', '0.5', {
        max: 1,
        help: 'Random jitter, as a fraction of the pause. Applies only with XDS_CLIENT_BACKOFF_JITTER=true.',
      }),
    }),
    xdsBackoffJitter: shared('XDS_CLIENT_BACKOFF_JITTER', 'boolean', 'true', {
      help: 'Add random jitter to the pauses, so that replicas do not reconnect at the same time.',
    }),
    xdsMaxMessageBytes: shared('XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES', 'optional_integer', '', {
      help: 'Maximum size of a message from the management server, in bytes. If unset: 4 MiB.',
    }),
  }),
} as const;
