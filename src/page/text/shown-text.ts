/* Names and values that others chose: whatever stands in them is shown, and steers nothing. */

/** Most characters of such a text that are shown at once. */
export const MAX_SHOWN_TEXT = 160;

/** What is not seen, or changes how the rest is read: controls, marks of direction, unassigned characters. */
export const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Cs}]/gu;
/** Two of them join emoji and letters of some scripts, and are part of honest texts. */
const JOINERS = /^[\u200c\u200d]$/;

/** A text with everything in it that is not seen written out, as `\n` or `\u{202e}`. */
export function visibleText(text: string): string {
  return text.replaceAll(UNSEEN, (char) => {
    if (JOINERS.test(char)) return char;
    if (char === '\n') return '\\n';
    if (char === '\r') return '\\r';
    if (char === '\t') return '\\t';
    return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** The beginning of a text of more than `most` characters, with what tells that it is cut; a short text as it is. */
export function cutText(text: string, most = MAX_SHOWN_TEXT): string {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]/.test(text[most - 2] ?? '') ? most - 2 : most - 1;
  return `${text.slice(0, end)}…`;
}

/** A text of one line, to be read: made visible and cut. */
export function briefText(text: string, most = MAX_SHOWN_TEXT): string {
  return visibleText(cutText(text, most));
}
