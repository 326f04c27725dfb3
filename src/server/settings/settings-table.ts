import type { Mogrifier } from '../../telemetry/statsd/mogrifier.js';
import { ANSWER_SETTINGS } from './answer-settings.js';
import { INERT_SETTINGS, REMOVED_SETTINGS } from './inert-settings.js';
import { LISTEN_SETTINGS } from './listen-settings.js';
import { PER_SECOND_SETTINGS } from './per-second-settings.js';
import { POLICY_SETTINGS } from './policy-settings.js';
import type { SettingSpec, SettingTypes } from './spec.js';
import { STORE_SETTINGS } from './store-settings.js';
import { TELEMETRY_SETTINGS } from './telemetry-settings.js';

/**
 * All settings, the only place of their names, types, defaults and help texts. Variables that only the reference has
 * are in inert-settings.ts. The manual's tables and `weir serve --help` are generated from these settings. Names are
 * those of the reference (envoyproxy/ratelimit) if it has the setting.
 */
const SPECS = {
  ...POLICY_SETTINGS,
  ...LISTEN_SETTINGS,
  ...STORE_SETTINGS,
  ...PER_SECOND_SETTINGS,
  ...ANSWER_SETTINGS,
  ...TELEMETRY_SETTINGS,
} as const satisfies Readonly<Record<string, SettingSpec>>;

export type SettingKey = keyof typeof SPECS;

/** Parsed settings. Durations are in microseconds. */
export type Settings = { readonly [K in SettingKey]: SettingTypes[(typeof SPECS)[K]['type']] } & {
  /** Mogrifiers that USE_DOG_STATSD_MOGRIFIERS lists. Their variables have names that depend on its value. */
  readonly dogStatsdMogrifierTable: readonly Mogrifier[];
};

/** Name of a value in the environment and on the command line of `weir serve`. */
export interface Variable {
  readonly name: string;
  readonly flag: string;
}

/** A setting. */
export interface Setting extends SettingSpec, Variable {
  readonly key: SettingKey;
}

function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`;
}

/** All settings, in the order of the manual. */
export const SETTINGS: readonly Setting[] = (Object.keys(SPECS) as SettingKey[]).map((key) => ({
  ...SPECS[key],
  key,
  flag: flagOf(SPECS[key].name),
}));

/** Returns the default of a setting, as it would be written. */
export function defaultOf(key: SettingKey): string {
  return SPECS[key].default;
}

/** A variable that is accepted and ignored. */
export interface InertVariable extends Variable {
  /** Sentence with the reason. */
  readonly reason: string;
}

/** All variables that are accepted and ignored. */
export const INERT_VARIABLES: readonly InertVariable[] = [...INERT_SETTINGS, ...REMOVED_SETTINGS].map(
  ([name, reason]) => ({ name, flag: flagOf(name), reason }),
);

/** All variables of `weir serve`. */
export const VARIABLES: readonly Variable[] = [...SETTINGS, ...INERT_VARIABLES];
