import type { GoRegExp } from '../go-regexp.js';

/** Turns names that match into another name and tags. */
export interface Mogrifier {
  readonly pattern: GoRegExp;
  /** With `$1` for what the first group matched. */
  readonly name: string;
  readonly tags: readonly (readonly [string, string])[];
}

export interface Mogrified {
  readonly name: string;
  readonly tags: readonly (readonly [string, string])[];
}

/** `$1` by the group's text; numbers without a group stay as they are written. */
function fillIn(template: string, match: RegExpExecArray): string {
  return template.replaceAll(/\$(\d+)/g, (variable, digits: string) => {
    const group = Number(digits);
    return group < match.length ? (match[group] ?? '') : variable;
  });
}

/** What the first mogrifier that matches makes of a name. */
export function mogrify(mogrifiers: readonly Mogrifier[], name: string): Mogrified {
  for (const mogrifier of mogrifiers) {
    const match = mogrifier.pattern.exec(name);
    if (match === null) continue;
    return {
      name: fillIn(mogrifier.name, match),
      tags: mogrifier.tags.map(([tag, value]) => [tag, fillIn(value, match)] as const),
    };
  }
  return { name, tags: [] };
}
