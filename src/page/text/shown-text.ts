import { UNPRINTABLE } from '../../runtime/printable.js';

/* Displays names and values from outside. Their characters are always visible and have no effect on the page. */

/** Maximum number of characters of such a string that are shown at once. */
export const MAX_SHOWN_TEXT = 160;

const ALL_UNPRINTABLE = new RegExp(UNPRINTABLE.source, 'gu');
/** Two of these characters join emoji and letters of some scripts, and are legitimate. */
const JOINERS = /^[\u200c\u200d]$/;

/** Returns a string with all invisible characters written out, such as `\n` or `\u{202e}`. */
export function visibleText(text: string): string {
  return text.replaceAll(ALL_UNPRINTABLE, (char) => {
    if (JOINERS.test(char)) return char;
    if (char === '\n') return '\\n';
    if (char === '\r') return '\\r';
    if (char === '\t') return '\\t';
    return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/**
 * Returns the beginning of a string with more than `most` characters, followed by an ellipsis. Returns shorter strings
 * unchanged.
 */
export function cutText(text: string, most = MAX_SHOWN_TEXT): string {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]/.test(text[most - 2] ?? '') ? most - 2 : most - 1;
  return `${text.slice(0, end)}…`;
}

/** Returns a visible, shortened text on one line. */
export function briefText(text: string, most = MAX_SHOWN_TEXT): string {
  return visibleText(cutText(text, most));
}
