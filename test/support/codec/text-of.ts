/** Joins the pieces of a text. Pieces that are not strings are pauses, and are left out. */
export function textOf(pieces: Iterable<unknown>): string {
  let text = '';
  for (const piece of pieces) if (typeof piece === 'string') text += piece;
  return text;
}
