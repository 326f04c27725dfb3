/**
 * Characters that control a terminal, break a line, change the text direction or are invisible. The classes are
 * controls (C0, C1), format characters (bidirectional marks and overrides, zero-width characters), line and paragraph
 * separators, and private, unassigned and unpaired code points.
 */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Cs}]/u;
const ALL_UNPRINTABLE = new RegExp(UNPRINTABLE.source, 'gu');
const ALL_BUT_NEWLINE = new RegExp(`(?!\\n)${UNPRINTABLE.source}`, 'gu');
/** Fast check: most strings do not match, and need no further processing. */
const NOT_PLAIN = /[^\n\x20-\x7e]/;

/** Escapes unprintable characters as in JSON: `\u202e`. The result is one line. */
export function printableLine(text: string): string {
  return text.replaceAll(ALL_UNPRINTABLE, escaped);
}

/** Escapes unprintable characters other than line breaks. JSON keeps its meaning. */
export function printableLines(text: string): string {
  return NOT_PLAIN.test(text) ? text.replaceAll(ALL_BUT_NEWLINE, escaped) : text;
}

/** Escapes more than JSON.stringify, which leaves most unprintable characters unescaped. */
export function printableJson(value: unknown, indent?: number): string {
  return printableLines(JSON.stringify(value, null, indent));
}

/** Returns a string with a placeholder for each unprintable character, so that columns stay aligned. */
export function printable(text: string): string {
  return text.replaceAll(ALL_UNPRINTABLE, '\ufffd');
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}

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
