import { DEFAULT_ALGORITHM, DEFAULT_HOLD_ENTRY } from '../../policy/policy.js';
import type { SettingSpec } from './spec.js';

const EACH_SERVER =
  ' With several management servers: one value for all, or one for each, separated by commas.';

/** Settings of the source of policies. */
export const POLICY_SETTINGS = {
  configPath: {
    name: 'CONFIG_PATH',
    effectiveWhen: ['files'],
    type: 'string',
    default: '',
    help: 'Policy file, or a directory of `.yaml` and `.yml` files. If unset, weir uses the bundled Open API policy.',
  },
  configType: {
    name: 'CONFIG_TYPE',
    type: 'config_type',
    default: 'FILE',
    help:
      '`FILE`: read policies from CONFIG_PATH or RUNTIME_ROOT. `GRPC_XDS_SOTW`: receive policies from a ' +
      'management server (ADS, state of the world).',
    reference: { default: 'FILE' },
  },
  runtimeRoot: {
    name: 'RUNTIME_ROOT',
    effectiveWhen: ['files'],
    type: 'string',
    default: '',
    help:
      'Read all files in RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY, as envoyproxy/ratelimit does. ' +
      'Set this or CONFIG_PATH, not both.',
    reference: {
      default: '/srv/runtime_data/current',
      differs: 'If the three RUNTIME_* paths are unset, weir reads CONFIG_PATH or its bundled policy.',
    },
  },
  runtimeSubdirectory: {
    name: 'RUNTIME_SUBDIRECTORY',
    effectiveWhen: ['files'],
    type: 'string',
    default: '',
    help: 'Directory below RUNTIME_ROOT.',
    reference: { default: '' },
  },
  runtimeAppDirectory: {
    name: 'RUNTIME_APPDIRECTORY',
    effectiveWhen: ['files'],
    type: 'string',
    default: '',
    help: 'Directory that contains the policy files, below RUNTIME_SUBDIRECTORY. If unset: `config`.',
    reference: { default: 'config' },
  },
  runtimeWatchRoot: {
    name: 'RUNTIME_WATCH_ROOT',
    effectiveWhen: ['files', 'runtimeRoot'],
    type: 'boolean',
    default: 'true',
    help:
      '`true`: a deployment replaces the symbolic link RUNTIME_ROOT. `false`: a deployment changes files in the ' +
      'policy directory.',
    reference: {
      default: 'true',
      differs:
        'weir detects replaced links and changed files with either value. With `true`, weir also reads ' +
        "files next to the policy directory if their names begin with the directory's name, such as " +
        '`config.yaml`.',
    },
  },
  runtimeIgnoreDotFiles: {
    name: 'RUNTIME_IGNOREDOTFILES',
    effectiveWhen: ['files', 'runtimeRoot'],
    type: 'boolean',
    default: 'false',
    help: 'Ignore files and directories whose names begin with a dot.',
    reference: {
      default: 'false',
      differs: "weir reads each file only once, even if Kubernetes' `..data` link also leads to the file.",
    },
  },
  mergeDomains: {
    name: 'MERGE_DOMAIN_CONFIG',
    type: 'boolean',
    default: 'false',
    help: 'Merge files that have the same domain. If false, a domain that appears in two files is invalid in both.',
    reference: { default: 'false' },
  },
  plansPollInterval: {
    name: 'PLANS_POLL_INTERVAL',
    effectiveWhen: ['files'],
    type: 'duration',
    default: '5s',
    help: 'Time between two requests for a table of `plans` in Redis.',
  },
  plansTokenPath: {
    name: 'PLANS_TOKEN_PATH',
    effectiveWhen: ['files'],
    type: 'string',
    default: '',
    help:
      'File with the password for tables of `plans` in Redis, which weir reads for each request. If the tables are ' +
      'on several servers, it has one line for each: `host:port/password`.',
  },
  defaultAlgorithm: {
    name: 'DEFAULT_ALGORITHM',
    type: 'algorithm',
    default: DEFAULT_ALGORITHM,
    help:
      'Default `algorithm` of limits with `unit` and `requests_per_unit`, and of overrides in requests: ' +
      "`fixed_window` or `token_bucket`. A token bucket refills at the limit's rate.",
  },
  holdEntry: {
    name: 'HOLD_ENTRY',
    type: 'string',
    default: DEFAULT_HOLD_ENTRY,
    help:
      'Key of the descriptor entry with which Envoy reports the end of a request, in domains with `concurrency` or ' +
      '`hold`. Its value is the token of the request.',
  },
  forceStart: {
    name: 'FORCE_START_WITHOUT_INITIAL_CONFIG',
    type: 'boolean',
    default: 'false',
    help: 'Start even if no policy is valid. Every request gets an error until weir has loaded a valid policy.',
    reference: { default: 'false' },
  },
  healthyWithConfig: {
    name: 'HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED',
    type: 'boolean',
    default: 'false',
    help: 'Report NOT_SERVING until a policy with at least one domain is loaded.',
    reference: { default: 'false' },
  },
  xdsNodeId: {
    name: 'CONFIG_GRPC_XDS_NODE_ID',
    effectiveWhen: ['xds'],
    type: 'string_list',
    default: 'default',
    help: `Node ID that weir sends to the management server.${EACH_SERVER}`,
    reference: { default: 'default' },
  },
  xdsNodeMetadata: {
    name: 'CONFIG_GRPC_XDS_NODE_METADATA',
    effectiveWhen: ['xds'],
    type: 'metadata_map',
    default: '',
    help: 'Node metadata that weir sends to the management server: `key=value,key=value`.',
    reference: {
      default: '',
      differs: 'weir also accepts `key:value`, which envoyproxy/ratelimit silently ignores.',
    },
  },
  xdsServerUrl: {
    name: 'CONFIG_GRPC_XDS_SERVER_URL',
    effectiveWhen: ['xds'],
    type: 'string_list',
    default: 'localhost:18000',
    help:
      'Address of the management server: `host:port`, without a scheme. Several addresses, separated by commas: weir ' +
      'gets policies from all of these servers. If two of them have the same domain, the first one decides it.',
    reference: { default: 'localhost:18000', differs: 'envoyproxy/ratelimit supports one address.' },
  },
  xdsRetryInterval: {
    name: 'CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL',
    effectiveWhen: ['xds'],
    type: 'duration',
    default: '3s',
    help: 'Timeout for connecting to the management server. 0: no timeout.',
    reference: { default: '3s' },
  },
  xdsHeaders: {
    name: 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
    effectiveWhen: ['xds'],
    type: 'string_list',
    default: '',
    help:
      'Headers that weir sends to the management server: `name:value,name:value`. An item may ' +
      'begin with the address of its server, and with several management servers it must: `host:port/name:value`.',
    secret: true,
    reference: { default: '' },
  },
  xdsUseTls: {
    name: 'CONFIG_GRPC_XDS_SERVER_USE_TLS',
    effectiveWhen: ['xds'],
    type: 'boolean_list',
    default: 'false',
    help: `Connect to the management server over TLS.${EACH_SERVER}`,
    reference: { default: 'false' },
  },
  xdsTlsCert: {
    name: 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
    effectiveWhen: ['xds', 'xdsTls'],
    type: 'string_list',
    default: '',
    help: `File with the client certificate for the management server (PEM).${EACH_SERVER}`,
    reference: { default: '' },
  },
  xdsTlsKey: {
    name: 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
    effectiveWhen: ['xds', 'xdsTls'],
    type: 'string_list',
    default: '',
    help: `File with the private key of the certificate in CONFIG_GRPC_XDS_CLIENT_TLS_CERT (PEM).${EACH_SERVER}`,
    reference: { default: '' },
  },
  xdsTlsCaCert: {
    name: 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
    effectiveWhen: ['xds', 'xdsTls'],
    type: 'string_list',
    default: '',
    help:
      'File with CA certificates for the management server (PEM), in addition to the CAs that Node.js trusts.' +
      EACH_SERVER,
    reference: { default: '' },
  },
  xdsTlsSan: {
    name: 'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
    effectiveWhen: ['xds', 'xdsTls'],
    type: 'string_list',
    default: '',
    help:
      "Subject alternative name that the management server's certificate must contain instead of the " +
      `server's host name.${EACH_SERVER}`,
    reference: { default: '', differs: 'weir also accepts a URI (SPIFFE).' },
  },
  xdsBackoffInitial: {
    name: 'XDS_CLIENT_BACKOFF_INITIAL_INTERVAL',
    effectiveWhen: ['xds'],
    type: 'duration',
    default: '10s',
    help: 'First pause before weir reconnects to the management server.',
    reference: { default: '10s' },
  },
  xdsBackoffMax: {
    name: 'XDS_CLIENT_BACKOFF_MAX_INTERVAL',
    effectiveWhen: ['xds'],
    type: 'duration',
    default: '60s',
    help: 'Maximum pause before weir reconnects to the management server. Each pause is twice the previous one.',
    reference: { default: '60s' },
  },
  xdsBackoffRandomFactor: {
    name: 'XDS_CLIENT_BACKOFF_RANDOM_FACTOR',
    effectiveWhen: ['xds', 'xdsJitter'],
    type: 'number',
    default: '0.5',
    help: 'Random jitter, as a fraction of the pause. Applies only with XDS_CLIENT_BACKOFF_JITTER=true.',
    max: 1,
    reference: { default: '0.5' },
  },
  xdsBackoffJitter: {
    name: 'XDS_CLIENT_BACKOFF_JITTER',
    effectiveWhen: ['xds'],
    type: 'boolean',
    default: 'true',
    help: 'Add random jitter to the pauses, so that replicas do not reconnect at the same time.',
    reference: { default: 'true' },
  },
  xdsMaxMessageBytes: {
    name: 'XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES',
    effectiveWhen: ['xds'],
    type: 'optional_integer',
    default: '',
    help: 'Maximum size of a message from the management server, in bytes. If unset: 4 MiB.',
    reference: { default: '' },
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
