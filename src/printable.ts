/**
 * A character that steers a terminal, begins a line, turns the direction of a text round or is not seen: controls (C0,
 * C1), format characters (bidirectional marks and overrides, zero-width characters), line and paragraph separators,
 * private, unassigned and unpaired code points.
 */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Cs}]/u;
const EACH = new RegExp(UNPRINTABLE.source, 'gu');
const EACH_BUT_NEWLINE = new RegExp(`(?!\\n)${UNPRINTABLE.source}`, 'gu');
/** Finds quickly that a text, as most are, has nothing that needs a closer look. */
const NOT_PLAIN = /[^\n\x20-\x7e]/;

/** A text on one line, each unprintable character written as JSON escapes it: `\u202e`. */
export function printableLine(text: string): string {
  return text.replaceAll(EACH, escaped);
}

/** The same for several lines. JSON stays the same JSON. */
export function printableLines(text: string): string {
  return NOT_PLAIN.test(text) ? text.replaceAll(EACH_BUT_NEWLINE, escaped) : text;
}

/** A value as JSON that steers no terminal: JSON itself leaves most characters as they are that could. */
export function printableJson(value: unknown, indent?: number): string {
  return printableLines(JSON.stringify(value, null, indent));
}

/** A text with a sign in the place of each unprintable character, for columns. */
export function printable(text: string): string {
  return text.replaceAll(EACH, '\ufffd');
}

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
