import { readMogrifiers } from './settings/mogrifier-settings.js';
import { type GivenSettings, refusedSettings } from './settings-check.js';
import { SETTINGS, type Setting, type Settings } from './settings-table.js';
import { parseValue } from './settings-values.js';

/** Values given on the command line, by environment variable name. They beat the environment. */
export type Flags = Readonly<Record<string, string | undefined>>;

export type SettingsResult =
  | { readonly ok: true; readonly settings: Settings; readonly given: GivenSettings }
  | { readonly ok: false; readonly errors: readonly string[] };

/**
 * Reads every setting from flags, environment and defaults. A variable that is set to nothing counts as unset: compose files and Helm
 * charts pass empty strings for what nobody filled in. Unknown variables are ignored; every bad value is reported. Good values that
 * cannot be served together are errors, too (settings-check.ts).
 */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
  flags: Flags = {},
): SettingsResult {
  const errors: string[] = [];
  const values: Record<string, unknown> = {};
  const given = new Set<string>();
  for (const setting of SETTINGS) {
    const { text, source, isGiven } = lookUp(setting, environment, flags);
    if (isGiven) given.add(setting.name);
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
  return refused.length > 0 ? { ok: false, errors: refused } : { ok: true, settings, given };
}

function lookUp(
  setting: Setting,
  environment: Readonly<Record<string, string | undefined>>,
  flags: Flags,
): { readonly text: string; readonly source: string; readonly isGiven: boolean } {
  const flag = flags[setting.name];
  if (flag !== undefined) return { text: flag, source: setting.flag, isGiven: true };
  const variable = environment[setting.name];
  if (variable !== undefined && variable !== '')
    return { text: variable, source: setting.name, isGiven: true };
  return { text: setting.default, source: setting.name, isGiven: false };
}
