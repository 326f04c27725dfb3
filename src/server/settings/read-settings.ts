import { readMogrifiers } from './mogrifier-settings.js';
import { type GivenSettings, notesOn, refusedSettings } from './settings-check.js';
import { SETTINGS, type Setting, type Settings } from './settings-table.js';
import { parseValue } from './settings-values.js';

/** Values given on the command line, by environment variable name. They beat the environment. */
export type Flags = Readonly<Record<string, string | undefined>>;

export type SettingsResult =
  | {
      readonly ok: true;
      readonly settings: Settings;
      readonly given: GivenSettings;
      /** Lines for the log about variables that are set and change nothing. */
      readonly notes: readonly string[];
    }
  | { readonly ok: false; readonly errors: readonly string[] };

/**
 * Reads every setting from flags, environment and defaults. A variable that is set to nothing counts as unset: compose files and Helm
 * charts pass empty strings for what nobody filled in; so does a port that holds Kubernetes' link to a Service. Unknown variables are ignored;
 * every bad value is reported. Good values that cannot be served together are errors, too (settings-check.ts).
 */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
  flags: Flags = {},
): SettingsResult {
  const errors: string[] = [];
  const values: Record<string, unknown> = {};
  const given = new Set<string>();
  const links: string[] = [];
  for (const setting of SETTINGS) {
    const { text, source, isGiven, isLink } = lookUp(setting, environment, flags);
    if (isGiven) given.add(setting.name);
    if (isLink) links.push(linkNote(setting));
    const parsed = parseValue(setting.type, text, setting.max);
    if (parsed.ok) values[setting.key] = parsed.value;
    else
      errors.push(
        `${source}: ${setting.secret ? 'the value' : JSON.stringify(text)} is not ${parsed.expected}`,
      );
  }
  if (errors.length > 0) return { ok: false, errors };
  const { useDogStatsd, disableStats, dogStatsdMogrifiers } = values as Settings;
  const inUse = useDogStatsd && !disableStats ? dogStatsdMogrifiers : [];
  const mogrifiers = readMogrifiers(inUse, environment);
  if (!mogrifiers.ok) return mogrifiers;
  const settings: Settings = { ...(values as Settings), dogStatsdMogrifierTable: mogrifiers.mogrifiers };
  const refused = refusedSettings(settings, given);
  if (refused.length > 0) return { ok: false, errors: refused };
  return { ok: true, settings, given, notes: [...links, ...notesOn(settings, given)] };
}

/**
 * What Kubernetes puts into `<NAME>_PORT` for a Service called `<name>` in the namespace (kubernetes.io/docs/tutorials/services/connect-applications-service,
 * "Environment Variables"): nobody meant it as a setting.
 */
const SERVICE_LINK = /^(?:tcp|udp|sctp):\/\//i;

function linkNote({ name, default: value }: Setting): string {
  const service = name.replace(/_PORT$/, '').toLowerCase();
  return `${name} is left out, so ${value} holds: it is Kubernetes' link to the Service ${service}; set it, or enableServiceLinks: false`;
}

function lookUp(
  setting: Setting,
  environment: Readonly<Record<string, string | undefined>>,
  flags: Flags,
): { readonly text: string; readonly source: string; readonly isGiven: boolean; readonly isLink: boolean } {
  const { name } = setting;
  const flag = flags[name];
  if (flag !== undefined) return { text: flag, source: setting.flag, isGiven: true, isLink: false };
  const variable = environment[name];
  const isLink = setting.type === 'port' && SERVICE_LINK.test(variable ?? '');
  const text = variable === '' ? setting.reference?.whenEmpty : variable;
  if (text !== undefined && !isLink) return { text, source: name, isGiven: true, isLink };
  return { text: setting.default, source: name, isGiven: false, isLink };
}
