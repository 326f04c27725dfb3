/** An entry of a descriptor. */
export interface NamedEntry {
  readonly key: string;
  readonly value: string;
}

/** What stands for a secret in answers. */
const REDACTED = /^\[redacted sha256:[\da-f]{8}\]$/;

/** The entries of a text with a line `key=value` for each; where a line is none, a sentence that does not quote it. */
export function entriesOfLines(text: string): readonly NamedEntry[] | string {
  const entries: NamedEntry[] = [];
  for (const [at, line] of text.split(/\r\n|\r|\n/).entries()) {
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    if (equals < 1) return `Line ${at + 1} is not of the form key=value.`;
    entries.push({ key: line.slice(0, equals).trim(), value: line.slice(equals + 1) });
  }
  return entries.length === 0 ? 'There is no line key=value.' : entries;
}

/** Why entries of an answer do not name a bucket, a sentence; undefined where they do. */
export function whyNotLookedUp(entries: readonly NamedEntry[]): string | undefined {
  if (entries.length === 0) return 'It has no entries.';
  if (entries.some(({ value }) => REDACTED.test(value))) {
    return 'It cannot be looked up from here: a value is a secret, which weir shows to nobody. Enter it by hand.';
  }
  if (entries.some(({ key, value }) => key === '…' || key.endsWith('…') || value.endsWith('…'))) {
    return 'It cannot be looked up from here: weir keeps long values only in part. Enter them by hand.';
  }
  return undefined;
}
