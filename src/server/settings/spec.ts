/** Types of settings; settings-values.ts contains their exact syntax. */
export interface SettingTypes {
  string: string;
  port: number;
  /** Whole number, at least 1. */
  count: number;
  /** Whole number, at least 0. */
  integer: number;
  /** Whole number, at least 0; undefined when unset. */
  optional_integer: number | undefined;
  /** Number of at least 0, optionally with a fraction. */
  number: number;
  boolean: boolean;
  /** List such as `true,false`. */
  boolean_list: readonly boolean[];
  /** Duration in Go's syntax, such as `150ms` or `1h30m`; parsed to microseconds. */
  duration: number;
  /** Duration in Go's syntax; undefined if unset. */
  optional_duration: number | undefined;
  /** Program and its arguments, as words or a JSON array of strings; undefined if unset. */
  /** List such as `a,b`. */
  string_list: readonly string[];
  /**
   * Pairs such as `name:value,name:value`, in their order. The first `:` separates the name from the value. In a pair
   * without `:`, the first `=` does.
   */
  string_map: ReadonlyMap<string, string>;
  /**
   * Pairs such as `name=value,name=value`, in their order. The first `=` separates name and value, or the first `:`
   * without a `=`.
   */
  metadata_map: ReadonlyMap<string, string>;
  log_level: 'panic' | 'fatal' | 'error' | 'warn' | 'warning' | 'info' | 'debug' | 'trace';
  log_format: 'auto' | 'json' | 'text';
  /** Fractions from 0 to 1, such as `denied=1,ok=0.01`; undefined if unset. */
  decision_sample: { readonly denied: number; readonly ok: number } | undefined;
  worker_scheduling: 'round-robin' | 'kernel' | 'reuse-port';
  trace_protocol: 'http' | 'grpc';
  grpc_transport: 'h2' | 'grpc-js';
  algorithm: 'fixed_window' | 'token_bucket';
  config_type: 'FILE' | 'GRPC_XDS_SOTW';
  backend_type: '' | 'redis' | 'memcache';
  redis_socket_type: '' | 'tcp' | 'unix';
  redis_type: 'single' | 'cluster' | 'sentinel';
  pool_on_empty: 'WAIT' | 'CREATE' | 'ERROR';
}
export type SettingType = keyof SettingTypes;

/** Properties of a variable in envoyproxy/ratelimit, the reference. */
export interface ReferenceSetting {
  /** Default in the reference, in the form in which a user would set it. */
  readonly default: string;
  /** Meaning of an empty value in the reference, if it differs from an unset variable and weir supports it. */
  readonly whenEmpty?: string;
  /** Sentence with differences from the reference other than the default. */
  readonly differs?: string;
}

/**
 * Name of a condition without which a setting has no effect. ineffective-settings.ts evaluates each condition and has
 * the remedy for the log.
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
  /** Default, as it would be written. '' means unset. */
  readonly default: string;
  readonly help: string;
  /** Maximum of a number. */
  readonly max?: number;
  /** Keeps the value out of logs and messages. */
  readonly secret?: true;
  /** Conditions that must all hold for the setting to have an effect; undefined for none. */
  readonly effectiveWhen?: readonly Condition[];
  /** Undefined if only weir has the variable. */
  readonly reference?: ReferenceSetting;
}

/** Settings with values that are not accepted, with the reason and the remedy. */
export interface RefusedSetting {
  readonly variables: readonly string[];
  readonly sentence: string;
}
