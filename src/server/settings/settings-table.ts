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
 * Every setting: the one place for name, type, default and help. What only the reference knows stands in
 * inert-settings.ts. README's tables and `weir serve --help` are printed from it; names are the reference's
 * (envoyproxy/ratelimit) where it has one.
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

/** The settings once read; durations in microseconds. */
export type Settings = { readonly [K in SettingKey]: SettingTypes[(typeof SPECS)[K]['type']] } & {
  /** What USE_DOG_STATSD_MOGRIFIERS names, from variables whose names depend on it. */
  readonly dogStatsdMogrifierTable: readonly Mogrifier[];
};

/** What names a value: in the environment, and on the command line of `weir serve`. */
export interface Variable {
  readonly name: string;
  readonly flag: string;
}

/** A row of the table. */
export interface Setting extends SettingSpec, Variable {
  readonly key: SettingKey;
}

function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`;
}

/** All settings in the order in which documentation lists them. */
export const SETTINGS: readonly Setting[] = (Object.keys(SPECS) as SettingKey[]).map((key) => ({
  ...SPECS[key],
  key,
  flag: flagOf(SPECS[key].name),
}));

/** What a setting is where nobody says, as it would be written. */
export function defaultOf(key: SettingKey): string {
  return SPECS[key].default;
}

/** A variable that is accepted and changes nothing. */
export interface InertVariable extends Variable {
  /** Why it changes nothing, a sentence. */
  readonly reason: string;
}

/** Every variable that is accepted and changes nothing. */
export const INERT_VARIABLES: readonly InertVariable[] = [...INERT_SETTINGS, ...REMOVED_SETTINGS].map(
  ([name, reason]) => ({ name, flag: flagOf(name), reason }),
);

/** All that `weir serve` takes. */
export const VARIABLES: readonly Variable[] = [...SETTINGS, ...INERT_VARIABLES];
