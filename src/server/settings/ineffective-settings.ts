import { shellText } from '../../config/show/shell-text.js';
import { nearest } from '../../runtime/nearest-name.js';
import { REMOVED_VARIABLE_NAMES } from '../../runtime/removed-names.js';
import { readRedisAddress, redisInstance } from './redis-address-settings.js';
import type { GivenSettings } from './settings-check.js';
import {
  defaultOf,
  INERT_VARIABLES,
  SETTINGS,
  type Setting,
  type Settings,
  VARIABLES,
} from './settings-table.js';
import { parseValue } from './settings-values.js';

/**
 * Returns log lines about variables that are set but have no effect with the other settings, or less effect than
 * expected. `given` are the names of the variables that are set.
 */
export function ineffectiveSettings(settings: Settings, given: ReadonlySet<string>): readonly string[] {
  const unmet = SETTINGS.flatMap((setting) => {
    if (!given.has(setting.name) || isSwitchedOff(setting, settings)) return [];
    const missing = setting.conditions.find((condition) => !holds(condition, settings));
    return missing === undefined
      ? []
      : [`${setting.name} has no effect: ${remedy(missing)}, or unset this variable.`];
  });
  const inert = INERT_VARIABLES.filter(({ name }) => given.has(name)).map(
    ({ name, reason }) => `${name} has no effect: ${reason}`,
  );
  return [...unmet, ...inert, ...schedulingNotes(settings, given), ...samplingRateNotes(settings)];
}

function holds(condition: string, settings: Settings): boolean {
  return condition.split(' or ').some((alternative) => {
    const [name, text] = alternative.split('=');
    if (name === 'REDIS_TLS') return usesTls(settings, 'REDIS') || usesTls(settings, 'REDIS_PERSECOND');
    const setting = settingOf(name);
    const value = settings[setting.key];
    if (text === undefined) return Boolean(value);
    const wanted = parseValue(setting.type, text);
    if (!wanted.ok) throw new Error(`the condition ${alternative} is invalid`);
    return value === wanted.value || (Array.isArray(value) && value.includes(true));
  });
}

/** Returns how a user makes a condition hold, as an imperative without its end. */
function remedy(condition: string): string {
  const alternatives = condition.split(' or ').map((alternative) => {
    if (alternative.endsWith('=')) return `unset ${alternative.slice(0, -1)}`;
    if (alternative.includes('=')) return `set ${alternative}`;
    const { type } = settingOf(alternative);
    return `set ${alternative}${type === 'integer' || type === 'duration' ? ' to a value above 0' : ''}`;
  });
  return alternatives.join(', or ');
}

function settingOf(name: string | undefined): Setting {
  const setting = SETTINGS.find((one) => one.name === name);
  if (setting === undefined) throw new Error(`a condition names ${name}, which is not a setting`);
  return setting;
}

/** Returns whether the address of a Redis in use requires TLS. An invalid address ends the start. */
function usesTls(settings: Settings, prefix: 'REDIS' | 'REDIS_PERSECOND'): boolean {
  if (prefix === 'REDIS_PERSECOND' && !settings.perSecond) return false;
  const address = readRedisAddress(redisInstance(settings, prefix));
  return 'tls' in address && address.tls;
}

function schedulingNotes({ workers }: Settings, given: ReadonlySet<string>): readonly string[] {
  if (workers > 1 || !given.has('WORKER_SCHEDULING')) return [];
  return ['WORKER_SCHEDULING has no effect: set WORKERS to a value above 1, or unset this variable.'];
}

/** Returns a warning about a sampling rate above 1, which may have been meant as a percentage. */
function samplingRateNotes({ tracingEnabled, tracingSamplingRate: rate }: Settings): readonly string[] {
  if (!tracingEnabled || rate <= 1) return [];
  return [
    `TRACING_SAMPLING_RATE=${rate} counts as 1 (all traces), as in envoyproxy/ratelimit; set a ` +
      'fraction from 0 to 1.',
  ];
}

/** Returns whether a switch is set to its default, so that no effect is expected. */
function isSwitchedOff({ key, type }: Setting, settings: Settings): boolean {
  if (type !== 'boolean') return false;
  const usual = parseValue(type, defaultOf(key));
  return usual.ok && settings[key] === usual.value;
}

/** Maximum number of variables in the log. */
const MAX_NAMED = 20;
const PREFIX = 'WEIR_';

/** Names that people and other programs use for settings of weir. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['CONFIG_FILE', 'CONFIG_PATH'],
  ['CONFIG_DIR', 'CONFIG_PATH'],
  ['POLICY_FILE', 'CONFIG_PATH'],
  ['POLICY_PATH', 'CONFIG_PATH'],
  ['POLICY_DIR', 'CONFIG_PATH'],
  ['REDIS_HOST', 'REDIS_URL'],
  ['REDIS_ADDR', 'REDIS_URL'],
  ['REDIS_ADDRESS', 'REDIS_URL'],
  ['REDIS_URI', 'REDIS_URL'],
  ['REDIS_PASSWORD', 'REDIS_AUTH'],
  ['REDIS_KEY_PREFIX', 'CACHE_KEY_PREFIX'],
]);

const NAMES = VARIABLES.map(({ name }) => name);

/**
 * Returns log lines about unknown environment variables that are similar to a setting: misspelled, or named as in
 * another program. If the similar setting is `given`, too, only a single wrong character counts, because other names
 * may belong to another program. Values are not logged.
 */
export function similarVariables(
  environment: Readonly<Record<string, string | undefined>>,
  given: GivenSettings,
): readonly string[] {
  const own = new Set(NAMES);
  const lines: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    // An empty value counts as unset.
    if (value === undefined || value === '' || own.has(name) || REMOVED_VARIABLE_NAMES.has(name)) continue;
    const { near, isMistyped } = mostSimilar(name);
    if (near === undefined || (given.has(near) && !isMistyped)) continue;
    if (lines.length === MAX_NAMED) return lines;
    lines.push(`${shellText(name)} is not a weir setting, so it has no effect. Did you mean ${near}?`);
  }
  return lines;
}

/** Returns the most similar setting, and whether its name differs by at most one character. */
function mostSimilar(name: string): { readonly near: string | undefined; readonly isMistyped: boolean } {
  const upper = name.toUpperCase();
  const plain = upper.startsWith(PREFIX) ? upper.slice(PREFIX.length) : upper;
  const alias = ALIASES.get(plain);
  if (alias !== undefined) return { near: alias, isMistyped: false };
  const near = nearest(plain, NAMES, maxMistakes(plain));
  return { near, isMistyped: near !== undefined && nearest(plain, [near], 1) !== undefined };
}

/**
 * Returns the maximum number of wrong characters: 0 for short names, because `PATH` and `HOME` are not misspellings of
 * `PORT` and `HOST`.
 */
function maxMistakes(name: string): number {
  if (name.length < 6) return 0;
  return name.length < 10 ? 1 : 2;
}
