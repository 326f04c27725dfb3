import { LANGUAGE } from './numbers.js';

/* Times are in seconds since the epoch, and spans in seconds. */

const CLOCK = new Intl.DateTimeFormat(LANGUAGE, { timeStyle: 'medium' });
const MINUTES = new Intl.DateTimeFormat(LANGUAGE, { timeStyle: 'short' });
const DATE = new Intl.DateTimeFormat(LANGUAGE, { dateStyle: 'medium', timeStyle: 'medium' });
const RELATIVE = new Intl.RelativeTimeFormat(LANGUAGE);
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** Formats the local time of day: `12:03:04`. */
export function clockText(seconds: number): string {
  return CLOCK.format(seconds * 1000);
}

/** Formats the local time of day in hours and minutes: `12:03`. */
export function minuteText(seconds: number): string {
  return MINUTES.format(seconds * 1000);
}

/** Formats the local date and time: `24 Nov 2026, 12:03:04`. */
export function dateText(seconds: number): string {
  return DATE.format(seconds * 1000);
}

/** Formats the date and time in UTC: `2026-11-24 12:03:04 UTC`. */
export function utcText(seconds: number): string {
  const text = new Date(seconds * 1000).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)} UTC`;
}

/** Formats a span in words, with at most two units: `0.3 s`, `42 s`, `9 min 58 s`, `5 h 4 min`, `3 d 2 h`. */
export function spanText(span: number): string {
  if (span < 9.95) return `${span <= 0 ? 0 : Math.max(0.1, Math.round(span * 10) / 10)} s`;
  const whole = Math.ceil(span - 0.001);
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return units(whole, MINUTE, 'min', 1, 's');
  if (whole < DAY) return units(whole, HOUR, 'h', MINUTE, 'min');
  return units(whole, DAY, 'd', HOUR, 'h');
}

function units(span: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((span % large) / small);
  return `${Math.floor(span / large)} ${largeName}${rest === 0 ? '' : ` ${rest} ${smallName}`}`;
}

/** Formats the distance of a time from now in words: `in 6 days`, `3 minutes ago`, `just now`. */
export function relativeText(seconds: number, nowSeconds: number): string {
  const span = Math.abs(seconds - nowSeconds);
  if (span < 2) return 'just now';
  const sign = Math.sign(seconds - nowSeconds);
  if (span < MINUTE) return RELATIVE.format(sign * Math.floor(span), 'second');
  if (span < HOUR) return RELATIVE.format(sign * Math.floor(span / MINUTE), 'minute');
  if (span < 2 * DAY) return RELATIVE.format(sign * Math.floor(span / HOUR), 'hour');
  return RELATIVE.format(sign * Math.floor(span / DAY), 'day');
}
