import { SETTINGS, type Setting, type Settings } from './settings-table.js';
import { parseValue } from './settings-values.js';

/** Values given on the command line, by environment variable name. They beat the environment. */
export type Flags = Readonly<Record<string, string | undefined>>;

export type SettingsResult =
  | { readonly ok: true; readonly settings: Settings }
  | { readonly ok: false; readonly errors: readonly string[] };

/**
 * Reads every setting from flags, environment and defaults. A variable that is set to nothing counts as unset: compose files and Helm
 * charts pass empty strings for what nobody filled in. Unknown variables are ignored; every bad value is reported.
 */
export function readSettings(
  environment: Readonly<Record<string, string | undefined>>,
  flags: Flags = {},
): SettingsResult {
  const errors: string[] = [];
  const values: Record<string, unknown> = {};
  for (const setting of SETTINGS) {
    const { text, source } = lookUp(setting, environment, flags);
    const parsed = parseValue(setting.type, text, setting.max);
    if (parsed.ok) values[setting.key] = parsed.value;
    else
      errors.push(
        `${source}: ${setting.secret ? 'the value' : JSON.stringify(text)} is not ${parsed.expected}`,
      );
  }
  if (errors.length > 0) return { ok: false, errors };
  return { ok: true, settings: values as Settings };
}

function lookUp(
  setting: Setting,
  environment: Readonly<Record<string, string | undefined>>,
  flags: Flags,
): { text: string; source: string } {
  const flag = flags[setting.name];
  if (flag !== undefined) return { text: flag, source: setting.flag };
  const variable = environment[setting.name];
  if (variable !== undefined && variable !== '') return { text: variable, source: setting.name };
  return { text: setting.default, source: setting.name };
}
