/* Times are in seconds since 1970, and are shown in UTC. */

const DATE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' });
const SHORT_DATE = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Returns the time of day: `09:05`, or with seconds `09:05:30`. */
export function timeOfDay(seconds: number, withSeconds = false): string {
  return new Date(seconds * 1000).toISOString().slice(11, withSeconds ? 19 : 16);
}

/** Returns the date: `25 November 2026`. */
export function dateText(seconds: number): string {
  return DATE.format(seconds * 1000);
}

/** Returns the date without the year: `25 Nov`. */
export function shortDate(seconds: number): string {
  return SHORT_DATE.format(seconds * 1000);
}

/** Returns a period: `25 November 2026, 09:00 to 09:05`, or with two dates if it ends on another day. */
export function periodText(start: number, end: number): string {
  const withSeconds = start % 60 !== 0 || end % 60 !== 0;
  const [from, to] = [timeOfDay(start, withSeconds), timeOfDay(end, withSeconds)];
  const day = dateText(start);
  return `${day}, ${from} to ${day === dateText(end) ? '' : `${dateText(end)}, `}${to}`;
}
