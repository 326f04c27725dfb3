import { nearest } from '../../runtime/nearest-name.js';
import { shellText } from '../../runtime/printable.js';
import { REMOVED_VARIABLE_NAMES, removedVariable } from '../../runtime/removed-names.js';
import { withoutAddressSecrets } from '../../runtime/shown-address.js';
import { compileGoRegExp, GoRegExp } from '../../telemetry/go-regexp.js';
import type { Mogrifier } from '../../telemetry/statsd/dogstatsd-udp.js';
import { readRedisAddress, redisInstance } from './redis-address-settings.js';
import { type GivenSettings, refusedSettings } from './settings-check.js';
import {
  defaultOf,
  INERT_VARIABLES,
  inertRefusal,
  SETTINGS,
  type Setting,
  type Settings,
  VARIABLES,
  type Variable,
} from './settings-table.js';
import { parseValue } from './settings-values.js';

/** Values of command-line flags, by environment variable name. They take precedence over the environment. */
export type Flags = Readonly<Record<string, string | undefined>>;

export type SettingsResult =
  | {
      readonly ok: true;
      readonly settings: Settings;
      readonly given: GivenSettings;
      /** Log lines about variables that have no effect or may be misspelled. */
      readonly notes: readonly string[];
    }
  | {
      readonly ok: false;
      /** Sentences that start with the flag or the variable and a colon. */
      readonly errors: readonly string[];
      /** Whether a flag is invalid, so that the command line is wrong and not only the environment. */
      readonly byFlag: boolean;
    };

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads every setting from flags, environment and defaults. An empty variable counts as unset, because compose files
 * and Helm charts pass empty strings for missing values. So does a port that contains the link of Kubernetes to a
 * Service. Unknown variables are ignored, but a note lists those that are similar to a setting. The result contains an
 * error for every invalid value, and for valid values that contradict each other (settings-check.ts).
 */
export function readSettings(environment: Environment, flags: Flags = {}): SettingsResult {
  const errors: string[] = [];
  let byFlag = false;
  const reject = (variables: readonly Variable[], sentence: string): void => {
    const sources = variables.map(({ name, flag }) => (flags[name] === undefined ? name : flag));
    byFlag ||= variables.some(({ name }) => flags[name] !== undefined);
    errors.push(`${sources.join(', ')}: ${sentence}`);
  };
  const values: Record<string, unknown> = {};
  const given = new Set<string>();
  const links: string[] = [];
  for (const setting of SETTINGS) {
    const { name, key, type, max, secret } = setting;
    const found = readVariable(setting, environment, flags, setting.reference?.whenEmpty);
    const isLink = type === 'port' && found?.source === name && SERVICE_LINK.test(found.text);
    if (isLink) links.push(linkNote(setting));
    else if (found !== undefined) given.add(name);
    const text = found === undefined || isLink ? setting.default : found.text;
    const removed = removedVariable(name, text);
    if (removed !== undefined) {
      reject([setting], removed.sentence);
      continue;
    }
    const parsed = parseValue(type, text, max);
    if (parsed.ok) values[key] = parsed.value;
    else reject([setting], invalid(text, parsed.expected, secret));
  }
  const removedNotes: string[] = [];
  for (const name of REMOVED_VARIABLE_NAMES) {
    const { effect, sentence } = removedVariable(name, environment[name] ?? '') ?? {};
    if ((environment[name] ?? '') === '' || sentence === undefined) continue;
    (effect === 'refused' ? errors : removedNotes).push(`${name}: ${sentence}`);
  }
  for (const variable of INERT_VARIABLES) {
    const found = readVariable(variable, environment, flags);
    if (found === undefined) continue;
    given.add(variable.name);
    const parsed = parseValue(variable.type, found.text);
    const fault = parsed.ok ? inertRefusal(variable, parsed.value) : invalid(found.text, parsed.expected);
    if (fault !== undefined) reject([variable], fault);
  }
  if (errors.length > 0) return { ok: false, errors, byFlag };
  const { useDogStatsd, disableStats, dogStatsdMogrifiers } = values as Settings;
  const inUse = useDogStatsd && !disableStats ? dogStatsdMogrifiers : [];
  const mogrifiers = readMogrifiers(inUse, environment);
  if (!mogrifiers.ok) return { ...mogrifiers, byFlag: flags['USE_DOG_STATSD_MOGRIFIERS'] !== undefined };
  const settings: Settings = { ...(values as Settings), dogStatsdMogrifierTable: mogrifiers.mogrifiers };
  for (const { variables, sentence } of refusedSettings(settings, given)) {
    reject(
      VARIABLES.filter(({ name }) => variables.includes(name)),
      sentence,
    );
  }
  if (errors.length > 0) return { ok: false, errors, byFlag };
  const notes = [
    ...links,
    ...removedNotes,
    ...ineffectiveSettings(settings, given),
    ...similarVariables(environment, given),
  ];
  return { ok: true, settings, given, notes };
}

/** Describes an invalid value. Environment files, such as that of `docker run --env-file`, keep quotes. */
function invalid(text: string, expected: string, secret = false): string {
  const hint = /^(["']).*\1$/s.test(text) ? '; remove the quotes' : '';
  return `${secret ? 'the value' : JSON.stringify(withoutAddressSecrets(text))} is not ${expected}${hint}`;
}

/**
 * Value that Kubernetes sets in `<NAME>_PORT` for a Service named `<name>` in the same namespace
 * (kubernetes.io/docs/tutorials/services/connect-applications-service, "Environment Variables"). It is never meant as a
 * setting.
 */
const SERVICE_LINK = /^(?:tcp|udp|sctp):\/\//i;

function linkNote({ name, default: value }: Setting): string {
  const service = name.replace(/_PORT$/, '').toLowerCase();
  return (
    `weir ignores ${name} and uses the default ${value}, because Kubernetes set the variable for the ` +
    `Service ${service}; set a port number, or set enableServiceLinks: false`
  );
}

/**
 * Returns the value of a variable and where it is set, or undefined if it is unset. `whenEmpty` replaces an empty
 * value.
 */
function readVariable(
  { name, flag }: Variable,
  environment: Environment,
  flags: Flags,
  whenEmpty?: string,
): { readonly text: string; readonly source: string } | undefined {
  const onCommandLine = flags[name];
  if (onCommandLine !== undefined) return { text: onCommandLine, source: flag };
  const text = environment[name] === '' ? whenEmpty : environment[name];
  return text === undefined ? undefined : { text, source: name };
}

const PREFIX = 'DOG_STATSD_MOGRIFIER';

type MogrifiersResult =
  | { readonly ok: true; readonly mogrifiers: readonly Mogrifier[] }
  | { readonly ok: false; readonly errors: readonly string[] };

/**
 * Reads the mogrifiers that USE_DOG_STATSD_MOGRIFIERS lists, in its order, from `DOG_STATSD_MOGRIFIER_<name>_PATTERN`,
 * `_NAME` and `_TAGS`. Names are converted to upper case, as in the reference.
 */
export function readMogrifiers(
  names: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): MogrifiersResult {
  const errors: string[] = [];
  const mogrifiers = names.flatMap((name) => {
    const prefix = `${PREFIX}_${name.toUpperCase()}`;
    const problem = (variable: string, sentence: string): undefined => {
      errors.push(`${prefix}_${variable}: ${sentence}`);
    };
    const required = (variable: string): string | undefined => {
      const value = environment[`${prefix}_${variable}`];
      if (value !== undefined && value !== '') return value;
      const plural = `${PREFIX}S_${name.toUpperCase()}_${variable}`;
      const hint =
        environment[plural] === undefined
          ? ''
          : ` (${plural} is set, but this name has an extra S after MOGRIFIER)`;
      return problem(
        variable,
        `this variable is not set, but USE_DOG_STATSD_MOGRIFIERS contains ${name}; set the variable${hint}`,
      );
    };
    const pattern = required('PATTERN');
    const newName = required('NAME');
    const tags = readTags(environment[`${prefix}_TAGS`] ?? '');
    if (tags === undefined)
      problem('TAGS', 'must be a list such as name:value,name:value, and no name or value may be empty');
    const compiled = pattern === undefined ? undefined : compileGoRegExp(pattern);
    if (typeof compiled === 'string') {
      problem(
        'PATTERN',
        `${JSON.stringify(pattern)} is not a valid regular expression: ${compiled}; correct the expression`,
      );
    }
    return compiled instanceof GoRegExp && newName !== undefined && tags !== undefined
      ? [{ pattern: compiled, name: newName, tags }]
      : [];
  });
  return errors.length > 0 ? { ok: false, errors } : { ok: true, mogrifiers };
}

function readTags(text: string): readonly (readonly [string, string])[] | undefined {
  const tags: [string, string][] = [];
  for (const pair of text === '' ? [] : text.split(',')) {
    const colon = pair.indexOf(':');
    const [name, value] = [pair.slice(0, colon).trim(), pair.slice(colon + 1).trim()];
    if (colon === -1 || name === '' || value === '') return undefined;
    tags.push([name, value]);
  }
  return tags;
}

/**
 * Returns log lines about variables that are set but have no effect with the other settings, or less effect than
 * expected. `given` are the names of the variables that are set.
 */
function ineffectiveSettings(settings: Settings, given: ReadonlySet<string>): readonly string[] {
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
const WEIR_PREFIX = 'WEIR_';

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
function similarVariables(
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
  const plain = upper.startsWith(WEIR_PREFIX) ? upper.slice(WEIR_PREFIX.length) : upper;
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
