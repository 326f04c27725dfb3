/** What pieces of a text make together; those that are no text are pauses. */
export function textOf(pieces: Iterable<unknown>): string {
  let text = '';
  for (const piece of pieces) if (typeof piece === 'string') text += piece;
  return text;
}
