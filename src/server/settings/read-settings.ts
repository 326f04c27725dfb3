import { inertType, refusedInert } from './inert-settings.js';
import { readMogrifiers } from './mogrifier-settings.js';
import { ineffectiveSettings } from './notes/ineffective-settings.js';
import { similarVariables } from './notes/similar-variables.js';
import { type GivenSettings, refusedSettings } from './settings-check.js';
import {
  INERT_VARIABLES,
  SETTINGS,
  type Setting,
  type Settings,
  VARIABLES,
  type Variable,
} from './settings-table.js';
import { parseValue } from './settings-values.js';
import type { RefusedSetting } from './spec.js';

/** Values given on the command line, by environment variable name. They beat the environment. */
export type Flags = Readonly<Record<string, string | undefined>>;

export type SettingsResult =
  | {
      readonly ok: true;
      readonly settings: Settings;
      readonly given: GivenSettings;
      /** Lines for the log about variables that are set and change nothing, and about those that may be mistyped. */
      readonly notes: readonly string[];
    }
  | {
      readonly ok: false;
      /** Sentences that begin with the flag or the variable and a colon. */
      readonly errors: readonly string[];
      /** Whether a flag is wrong: then the command line is, and not only the environment. */
      readonly byFlag: boolean;
    };

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads every setting from flags, environment and defaults. A variable that is set to nothing counts as unset: compose
 * files and Helm charts pass empty strings for what nobody filled in; so does a port that holds Kubernetes' link to a
 * Service. Unknown variables are ignored, but named in a note where they are nearly ours; every bad value is reported.
 * Good values that cannot be served together are errors, too (settings-check.ts).
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
    const parsed = parseValue(type, text, max);
    if (parsed.ok) values[key] = parsed.value;
    else
      reject(
        [setting],
        `${secret ? 'the value' : JSON.stringify(text)} is not ${parsed.expected}${hint(text)}`,
      );
  }
  const refusedInerts: RefusedSetting[] = [];
  for (const variable of INERT_VARIABLES) {
    const { name } = variable;
    const found = readVariable(variable, environment, flags);
    if (found === undefined) continue;
    given.add(name);
    const parsed = parseValue(inertType(name), found.text);
    if (!parsed.ok)
      reject([variable], `${JSON.stringify(found.text)} is not ${parsed.expected}${hint(found.text)}`);
    else refusedInerts.push(...refusedInert(name, parsed.value));
  }
  if (errors.length > 0) return { ok: false, errors, byFlag };
  const { useDogStatsd, disableStats, dogStatsdMogrifiers } = values as Settings;
  const inUse = useDogStatsd && !disableStats ? dogStatsdMogrifiers : [];
  const mogrifiers = readMogrifiers(inUse, environment);
  if (!mogrifiers.ok) return { ...mogrifiers, byFlag: flags['USE_DOG_STATSD_MOGRIFIERS'] !== undefined };
  const settings: Settings = { ...(values as Settings), dogStatsdMogrifierTable: mogrifiers.mogrifiers };
  for (const { variables, sentence } of [...refusedSettings(settings, given), ...refusedInerts]) {
    reject(
      VARIABLES.filter(({ name }) => variables.includes(name)),
      sentence,
    );
  }
  if (errors.length > 0) return { ok: false, errors, byFlag };
  const notes = [...links, ...ineffectiveSettings(settings, given), ...similarVariables(environment, given)];
  return { ok: true, settings, given, notes };
}

/** What to do about quotes that a file of variables keeps, as that of `docker run --env-file` does. */
function hint(text: string): string {
  return /^(["']).*\1$/s.test(text) ? '; remove the quotes' : '';
}

/**
 * What Kubernetes puts into `<NAME>_PORT` for a Service called `<name>` in the namespace
 * (kubernetes.io/docs/tutorials/services/connect-applications-service, "Environment Variables"): nobody meant it as a
 * setting.
 */
const SERVICE_LINK = /^(?:tcp|udp|sctp):\/\//i;

function linkNote({ name, default: value }: Setting): string {
  const service = name.replace(/_PORT$/, '').toLowerCase();
  return (
    `${name} is left out, so ${value} holds: it is Kubernetes' link to the Service ${service}; set it, ` +
    'or enableServiceLinks: false'
  );
}

/** What is said of a variable, and where; undefined: nothing. `whenEmpty`: what it means when it is set to nothing. */
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
