/** Units of `rate_limit.unit`. As in envoyproxy/ratelimit, a month has 30 days and a year 365. */
export const WINDOW_UNITS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'year'] as const;
export type WindowUnit = (typeof WINDOW_UNITS)[number];

const SECOND = 1_000_000;
const DAY = 86_400 * SECOND;

/** Length of each unit in microseconds. */
export const UNIT_MICROS: Readonly<Record<WindowUnit, number>> = {
  second: SECOND,
  minute: 60 * SECOND,
  hour: 3600 * SECOND,
  day: DAY,
  week: 7 * DAY,
  month: 30 * DAY,
  year: 365 * DAY,
};
