/** Formats a count with its noun: `1 rule`, `2 rules`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Returns the first names for a message, and the number of the others: `a, b, and 3 more`. `show` quotes a name. */
export function listSome(names: readonly string[], max: number, show = (name: string) => name): string {
  const more = names.length - max;
  return names.slice(0, max).map(show).join(', ') + (more > 0 ? `, and ${more} more` : '');
}

/** Maximum number of characters of a string in a log line. */
export const MAX_CHARACTERS = 256;

/** Returns the beginning of a string with more than `most` characters, and the number of missing characters. */
export function shown(text: string, most = MAX_CHARACTERS): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most)}… (${plural(text.length - most, 'more character')})`;
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** Formats a duration in words, rounded down to one unit: `1 second`, `59 minutes`, `47 hours`, `2 days`. */
export function spanInWords(seconds: number): string {
  if (seconds < MINUTE) return plural(Math.floor(seconds), 'second');
  if (seconds < HOUR) return plural(Math.floor(seconds / MINUTE), 'minute');
  if (seconds < 2 * DAY) return plural(Math.floor(seconds / HOUR), 'hour');
  return plural(Math.floor(seconds / DAY), 'day');
}

/** Formats a duration for people: `0.3s`, `42s`, `9m58s`, `5h04m`, `3d02h`. */
export function secondsText(seconds: number): string {
  if (seconds < 9.95) return `${seconds <= 0 ? 0 : Math.max(0.1, Math.round(seconds * 10) / 10)}s`;
  const whole = Math.ceil(seconds - 0.001);
  const two = (number: number): string => String(number).padStart(2, '0');
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m${two(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h${two(Math.floor(whole / 60) % 60)}m`;
  return `${Math.floor(whole / 86_400)}d${two(Math.floor(whole / 3600) % 24)}h`;
}

/**
 * Returns whether output may have colors. It may on a terminal, unless NO_COLOR (https://no-color.org) is set to a
 * non-empty text, or TERM names a terminal without colors.
 */
export function showsColours(
  terminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  return terminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
}

/**
 * Returns the message of an error of a connection. For a host with several addresses, the error contains one error per
 * address and no message.
 */
export function networkMessage(error: Error): string {
  if (error.message !== '') return error.message;
  const { errors = [] } = error as Partial<AggregateError>;
  return errors.map(({ message }: Error) => message).join(', ') || error.name;
}

/**
 * Returns OpenSSL's reason for rejecting a certificate, without the advice about Node.js options that newer versions of
 * Node.js append to `message`.
 */
export function certificateFault(message: string): string {
  return message.replace(/; if the root CA is installed locally, [^)]*$/, '');
}
