import { UNPRINTABLE } from '../../runtime/printable.js';

/** Maximum number of characters shown. Longer strings are cut, because a line is for people to read. */
const MAX_CHARACTERS = 100;
const PLAIN = /^[\w@%+:,./-]+$/;

/**
 * Returns a string from a caller as a shell argument: quoted if necessary, without characters that control a terminal
 * or break the line, and cut if it is long.
 */
export function shellText(text: string): string {
  const shown = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
  if (PLAIN.test(shown)) return shown;
  if (!UNPRINTABLE.test(shown)) return quoted(shown);
  const escaped = Array.from(shown, (character) => {
    if (character === "'" || character === '\\') return `\\${character}`;
    return UNPRINTABLE.test(character) ? codePointEscape(character) : character;
  });
  return `$'${escaped.join('')}'`;
}

/** Returns a complete word for a command line, in quotes if a shell would interpret it. */
export function shellWord(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : quoted(text);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Returns an escape such as `\\U0000000a`, which bash and zsh read between `$'` and `'`. */
function codePointEscape(character: string): string {
  return `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`;
}
