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
