import type { Mogrifier } from '../../telemetry/statsd/mogrifier.js';
import { ANSWER_SETTINGS } from './answer-settings.js';
import { INERT_ROWS } from './inert-settings.js';
import { LISTEN_SETTINGS } from './listen-settings.js';
import { POLICY_SETTINGS } from './policy-settings.js';
import type { Row } from './setting.js';
import { parseValue, type SettingTypes } from './settings-values.js';
import { PER_SECOND_SETTINGS, STORE_SETTINGS } from './store-settings.js';
import { TELEMETRY_SETTINGS } from './telemetry-settings.js';

/**
 * All settings, the only place of their names, types, defaults and help texts. Variables that only the reference has
 * are in inert-settings.ts. The manual's tables and `weir serve --help` are generated from these rows. Names are those
 * of the reference (envoyproxy/ratelimit) if it has the setting.
 */
const ROWS = {
  ...POLICY_SETTINGS,
  ...LISTEN_SETTINGS,
  ...STORE_SETTINGS,
  ...PER_SECOND_SETTINGS,
  ...ANSWER_SETTINGS,
  ...TELEMETRY_SETTINGS,
};

export type SettingKey = keyof typeof ROWS;

/** Parsed settings. Durations are in microseconds. */
export type Settings = { readonly [K in SettingKey]: SettingTypes[(typeof ROWS)[K]['type']] } & {
  /** Mogrifiers that USE_DOG_STATSD_MOGRIFIERS lists. Their variables have names that depend on its value. */
  readonly dogStatsdMogrifierTable: readonly Mogrifier[];
};

/** Name of a value in the environment and on the command line of `weir serve`. */
export interface Variable {
  readonly name: string;
  readonly flag: string;
}

export interface Setting extends Row, Variable {
  readonly key: SettingKey;
}

function flagOf(name: string): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`;
}

/** All settings, in the order of the manual. */
export const SETTINGS: readonly Setting[] = (Object.keys(ROWS) as SettingKey[]).map((key) => ({
  ...ROWS[key],
  key,
  flag: flagOf(ROWS[key].name),
}));

/** Returns the default of a setting, as it would be written. */
export function defaultOf(key: SettingKey): string {
  return ROWS[key].default;
}

/**
 * Returns whether an unset variable has the same meaning as in the reference, even if the default is written
 * differently. True for variables that only weir has.
 */
export function hasReferenceDefault({ type, default: here, max, reference }: Setting): boolean {
  if (reference === undefined) return true;
  const [ours, theirs] = [here, reference.default].map((text) => {
    const parsed = text === '' ? undefined : parseValue(type, text, max);
    return parsed?.ok ? JSON.stringify(parsed.value) : text;
  });
  return ours === theirs;
}

/** All variables that are accepted and ignored. */
export const INERT_VARIABLES = INERT_ROWS.map((row) => ({ ...row, flag: flagOf(row.name) }));

/** All variables of `weir serve`. */
export const VARIABLES: readonly Variable[] = [...SETTINGS, ...INERT_VARIABLES];
