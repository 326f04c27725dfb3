import type { GoRegExp } from '../go-regexp.js';

/** Replaces a matching name by another name and tags. */
export interface Mogrifier {
  readonly pattern: GoRegExp;
  /** May contain `$1` for the text of the first group. */
  readonly name: string;
  readonly tags: readonly (readonly [string, string])[];
}

export interface Mogrified {
  readonly name: string;
  readonly tags: readonly (readonly [string, string])[];
}

/** Replaces `$1` by the text of the group. Numbers without a group stay unchanged. */
function substitute(template: string, match: RegExpExecArray): string {
  return template.replaceAll(/\$(\d+)/g, (variable, digits: string) => {
    const group = Number(digits);
    return group < match.length ? (match[group] ?? '') : variable;
  });
}

/** Returns the result of the first mogrifier that matches a name. */
export function mogrify(mogrifiers: readonly Mogrifier[], name: string): Mogrified {
  for (const mogrifier of mogrifiers) {
    const match = mogrifier.pattern.exec(name);
    if (match === null) continue;
    return {
      name: substitute(mogrifier.name, match),
      tags: mogrifier.tags.map(([tag, value]) => [tag, substitute(value, match)] as const),
    };
  }
  return { name, tags: [] };
}
