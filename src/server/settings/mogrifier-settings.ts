import { compileGoRegExp, GoRegExp } from '../../telemetry/go-regexp.js';
import type { Mogrifier } from '../../telemetry/statsd/mogrifier.js';

const PREFIX = 'DOG_STATSD_MOGRIFIER';

export type MogrifiersResult =
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
