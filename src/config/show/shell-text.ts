import { UNPRINTABLE } from '../../printable.js';

/** Longer texts are cut: a line is for people to read. */
const MAX_CHARACTERS = 100;
const PLAIN = /^[\w@%+:,./-]+$/;

/**
 * A text that callers choose, as a shell reads it: quoted where need be, without any character that could steer a
 * terminal or begin a line, and cut when it is long.
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

/** A word of a command line to be run, whole: in quotes where a shell would take it for anything else. */
export function shellWord(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : quoted(text);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** `\\U0000000a`, as bash and zsh read it between `$'` and `'`. */
function codePointEscape(character: string): string {
  return `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`;
}
