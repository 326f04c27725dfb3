import { shellText } from '../../config/show/shell-text.js';
import { nearest } from '../../nearest-name.js';
import { REMOVED_VARIABLE_NAMES } from '../../runtime/removed-names.js';
import type { GivenSettings } from './settings-check.js';
import { VARIABLES } from './settings-table.js';

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
