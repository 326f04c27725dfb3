import type { RedisClock } from '../../storage/redis/redis-store-options.js';

/** How a value is written; see settings-values.ts for the exact grammar. */
export interface SettingTypes {
  string: string;
  port: number;
  /** Whole number, at least 1. */
  count: number;
  /** Whole number, at least 0. */
  integer: number;
  /** Whole number, at least 0; undefined when unset. */
  optional_integer: number | undefined;
  /** Number from 0, with a fraction if need be. */
  number: number;
  boolean: boolean;
  /** Go syntax (`150ms`, `1h30m`); microseconds once read. */
  duration: number;
  /** The same; undefined when unset. */
  optional_duration: number | undefined;
  /** A program and its arguments: words, or a JSON array of texts; undefined when unset. */
  command: readonly [program: string, ...args: string[]] | undefined;
  /** `a,b`. */
  string_list: readonly string[];
  /** `name:value,name:value`, in the order written; the first `:` parts them, the first `=` where there is none. */
  string_map: ReadonlyMap<string, string>;
  /** `name=value,name=value`, in the order written; the first `=` parts them, the first `:` where there is none. */
  metadata_map: ReadonlyMap<string, string>;
  log_level: 'panic' | 'fatal' | 'error' | 'warn' | 'warning' | 'info' | 'debug' | 'trace';
  log_format: 'auto' | 'json' | 'text';
  /** `denied=1,ok=0.01`: shares from 0 to 1; undefined when unset. */
  decision_sample: { readonly denied: number; readonly ok: number } | undefined;
  worker_scheduling: 'round-robin' | 'kernel' | 'reuse-port';
  trace_protocol: 'http' | 'grpc';
  grpc_transport: 'h2' | 'grpc-js';
  algorithm: 'fixed_window' | 'token_bucket';
  config_type: 'FILE' | 'GRPC_XDS_SOTW';
  backend_type: '' | 'redis' | 'memcache';
  redis_socket_type: '' | 'tcp' | 'unix';
  redis_clock: RedisClock;
  redis_type: 'single' | 'cluster' | 'sentinel' | 'proxy';
  pool_on_empty: 'WAIT' | 'CREATE' | 'ERROR';
}
export type SettingType = keyof SettingTypes;

/** What envoyproxy/ratelimit, the reference, knows of a variable. */
export interface ReferenceSetting {
  /** Its default, as written there. */
  readonly default: string;
  /** What it means there when it is set to nothing, where that is another thing than unset and worth keeping. */
  readonly whenEmpty?: string;
  /** What differs here besides the default, a sentence. */
  readonly differs?: string;
}

/**
 * Name of a condition without which a setting has no effect. ineffective-settings.ts evaluates each condition and says
 * what to do if it is false.
 */
export type Condition =
  | 'files'
  | 'runtimeRoot'
  | 'xds'
  | 'xdsTls'
  | 'xdsJitter'
  | 'noUds'
  | 'h2'
  | 'grpcTls'
  | 'connectionAge'
  | 'keepAlive'
  | 'workers'
  | 'redis'
  | 'redisTls'
  | 'sentinel'
  | 'perSecondSentinel'
  | 'denials'
  | 'repeatedDenials'
  | 'perSecond'
  | 'authCommand'
  | 'limitHeaders'
  | 'limitRequestHeaders'
  | 'top'
  | 'stats'
  | 'statsd'
  | 'dogStatsd'
  | 'anySink'
  | 'prometheus'
  | 'noMapper'
  | 'decisionLog'
  | 'tracing';

export interface SettingSpec {
  /** Name of the environment variable. */
  readonly name: string;
  readonly type: SettingType;
  /** As it would be written; '' means unset. */
  readonly default: string;
  readonly help: string;
  /** Largest value of a number. */
  readonly max?: number;
  /** Keep the value out of logs and messages. */
  readonly secret?: true;
  /** The setting changes something only where all of these hold; absent: always. */
  readonly effectiveWhen?: readonly Condition[];
  /** Absent: the variable is weir's own. */
  readonly reference?: ReferenceSetting;
}

/** Settings with values that cannot be served: which ones, and the reason with what to do instead. */
export interface RefusedSetting {
  readonly variables: readonly string[];
  readonly sentence: string;
}
