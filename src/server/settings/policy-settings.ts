import { DEFAULT_ALGORITHM } from '../../policy/policy.js';
import type { SettingSpec } from './spec.js';

/** Where policies come from. */
export const POLICY_SETTINGS = {
  configPath: {
    name: 'CONFIG_PATH',
    type: 'string',
    default: '',
    help: 'Policy file, or directory of `.yaml` and `.yml` files. Unset: the bundled Open API policy.',
  },
  configType: {
    name: 'CONFIG_TYPE',
    type: 'config_type',
    default: 'FILE',
    help: '`FILE`: CONFIG_PATH or RUNTIME_ROOT. `GRPC_XDS_SOTW`: a management server (ADS, state of the world).',
    reference: { default: 'FILE' },
  },
  runtimeRoot: {
    name: 'RUNTIME_ROOT',
    type: 'string',
    default: '',
    help:
      'The directory layout of envoyproxy/ratelimit: policies are all files under ' +
      'RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY. In the place of CONFIG_PATH.',
    reference: {
      default: '/srv/runtime_data/current',
      differs:
        'Unset together with RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY: CONFIG_PATH, or the bundled policy.',
    },
  },
  runtimeSubdirectory: {
    name: 'RUNTIME_SUBDIRECTORY',
    type: 'string',
    default: '',
    help: 'Directory below RUNTIME_ROOT.',
    reference: { default: '' },
  },
  runtimeAppDirectory: {
    name: 'RUNTIME_APPDIRECTORY',
    type: 'string',
    default: '',
    help: 'Directory below that which holds the policy files; `config` when unset.',
    reference: { default: 'config' },
  },
  runtimeWatchRoot: {
    name: 'RUNTIME_WATCH_ROOT',
    type: 'boolean',
    default: 'true',
    help: 'true: RUNTIME_ROOT is a link that is swapped. false: the directory of the files changes itself.',
    reference: { default: 'true', differs: 'Changes are seen both ways, whatever it says.' },
  },
  runtimeIgnoreDotFiles: {
    name: 'RUNTIME_IGNOREDOTFILES',
    type: 'boolean',
    default: 'false',
    help: 'Leave out files and directories whose names begin with a dot.',
    reference: {
      default: 'false',
      differs: "Kubernetes' `..data` and the directory behind it are never read twice.",
    },
  },
  mergeDomains: {
    name: 'MERGE_DOMAIN_CONFIG',
    type: 'boolean',
    default: 'false',
    help: 'Files with one domain are merged. Off: such a domain is bad in all of them.',
    reference: { default: 'false' },
  },
  defaultAlgorithm: {
    name: 'DEFAULT_ALGORITHM',
    type: 'algorithm',
    default: DEFAULT_ALGORITHM,
    help:
      'What `unit` and `requests_per_unit` mean where neither rule nor file says `algorithm`, limit ' +
      'overrides of callers included: `fixed_window`, or `token_bucket`, which refills at that rate.',
  },
  forceStart: {
    name: 'FORCE_START_WITHOUT_INITIAL_CONFIG',
    type: 'boolean',
    default: 'false',
    help: 'Start, and answer with an error, while there is no good policy yet.',
    reference: { default: 'false' },
  },
  healthyWithConfig: {
    name: 'HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED',
    type: 'boolean',
    default: 'false',
    help: 'Health says NOT_SERVING until a policy with at least one domain is in force.',
    reference: { default: 'false' },
  },
  xdsNodeId: {
    name: 'CONFIG_GRPC_XDS_NODE_ID',
    type: 'string',
    default: 'default',
    help: 'Node id told to the management server.',
    reference: { default: 'default' },
  },
  xdsNodeMetadata: {
    name: 'CONFIG_GRPC_XDS_NODE_METADATA',
    type: 'metadata_map',
    default: '',
    help: 'Node metadata: `key=value,key=value`.',
    reference: { default: '', differs: '`key:value` is taken, too; there it is left out in silence.' },
  },
  xdsServerUrl: {
    name: 'CONFIG_GRPC_XDS_SERVER_URL',
    type: 'string',
    default: 'localhost:18000',
    help: 'Management server, `host:port`.',
    reference: { default: 'localhost:18000' },
  },
  xdsRetryInterval: {
    name: 'CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL',
    type: 'duration',
    default: '3s',
    help: 'Longest wait for a connection to the management server.',
    reference: { default: '3s' },
  },
  xdsHeaders: {
    name: 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
    type: 'string_map',
    default: '',
    help: 'Headers sent along: `name:value,name:value`.',
    secret: true,
    reference: { default: '' },
  },
  xdsUseTls: {
    name: 'CONFIG_GRPC_XDS_SERVER_USE_TLS',
    type: 'boolean',
    default: 'false',
    help: 'Speak TLS with the management server.',
    reference: { default: 'false' },
  },
  xdsTlsCert: {
    name: 'CONFIG_GRPC_XDS_CLIENT_TLS_CERT',
    type: 'string',
    default: '',
    help: 'File with the client certificate for it (PEM).',
    reference: { default: '' },
  },
  xdsTlsKey: {
    name: 'CONFIG_GRPC_XDS_CLIENT_TLS_KEY',
    type: 'string',
    default: '',
    help: 'File with the key of that certificate (PEM).',
    reference: { default: '' },
  },
  xdsTlsCaCert: {
    name: 'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
    type: 'string',
    default: '',
    help: 'File with issuers of its certificate (PEM), beside those that Node ships.',
    reference: { default: '' },
  },
  xdsTlsSan: {
    name: 'CONFIG_GRPC_XDS_SERVER_TLS_SAN',
    type: 'string',
    default: '',
    help: 'Alternative name that its certificate must hold, in the place of its host name.',
    reference: { default: '', differs: 'It may be a URI (SPIFFE), too.' },
  },
  xdsBackoffInitial: {
    name: 'XDS_CLIENT_BACKOFF_INITIAL_INTERVAL',
    type: 'duration',
    default: '10s',
    help: 'First pause after a lost stream.',
    reference: { default: '10s' },
  },
  xdsBackoffMax: {
    name: 'XDS_CLIENT_BACKOFF_MAX_INTERVAL',
    type: 'duration',
    default: '60s',
    help: 'Longest such pause; each is twice the one before.',
    reference: { default: '60s' },
  },
  xdsBackoffRandomFactor: {
    name: 'XDS_CLIENT_BACKOFF_RANDOM_FACTOR',
    type: 'number',
    default: '0.5',
    help: 'How much of a pause chance may add or take, with XDS_CLIENT_BACKOFF_JITTER.',
    max: 1,
    reference: { default: '0.5' },
  },
  xdsBackoffJitter: {
    name: 'XDS_CLIENT_BACKOFF_JITTER',
    type: 'boolean',
    default: 'true',
    help: 'Spread the pauses of several servers.',
    reference: { default: 'true' },
  },
  xdsMaxMessageBytes: {
    name: 'XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES',
    type: 'optional_integer',
    default: '',
    help:
      'Largest message of the management server, bytes; 4 MiB when unset. An update may have 10,000 ' +
      'resources, 1,000,000 fields and 64 MiB, whatever this says.',
    reference: { default: '' },
  },
} as const satisfies Readonly<Record<string, SettingSpec>>;
