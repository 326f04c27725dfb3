/**
 * Whether what is printed may have colours: on a terminal only, unless NO_COLOR (https://no-color.org) is set to
 * anything but an empty text, or TERM says that the terminal has none.
 */
export function showsColours(
  terminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  return terminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
}
