/** An entry of a descriptor. */
export interface NamedEntry {
  readonly key: string;
  readonly value: string;
}

/** The text that replaces a secret in answers. */
const REDACTED = /^\[redacted sha256:[\da-f]{8}\]$/;

/**
 * Parses one `key=value` entry per line. Returns an error message, which does not quote the text, for any other line.
 */
export function entriesOfLines(text: string): readonly NamedEntry[] | string {
  const entries: NamedEntry[] = [];
  for (const [at, line] of text.split(/\r\n|\r|\n/).entries()) {
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    if (equals < 1) return `Line ${at + 1} does not have the form key=value.`;
    entries.push({ key: line.slice(0, equals).trim(), value: line.slice(equals + 1) });
  }
  return entries.length === 0 ? 'Enter at least one line of the form key=value.' : entries;
}

/** Returns the reason why entries of an answer do not identify a bucket, or undefined if they do. */
export function noLookupReason(entries: readonly NamedEntry[]): string | undefined {
  if (entries.length === 0) return 'This bucket has no link because it has no entries.';
  if (entries.some(({ value }) => REDACTED.test(value))) {
    return (
      'This bucket has no link because an entry contains a secret, which weir never shows. In the view Caller, ' +
      'enter the entries manually.'
    );
  }
  if (entries.some(({ key, value }) => key === '…' || key.endsWith('…') || value.endsWith('…'))) {
    return (
      'This bucket has no link because weir stores only the beginning of long values. In the view Caller, enter the ' +
      'entries manually.'
    );
  }
  return undefined;
}
