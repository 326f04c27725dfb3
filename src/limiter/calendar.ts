import type { WindowUnit } from './rate.js';

/** Units that a calendar has. */
export const CALENDAR_UNITS = ['day', 'week', 'month', 'year'] as const;
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

/** Whether a calendar has windows of this unit. */
export function isCalendarUnit(unit: WindowUnit): unit is CalendarUnit {
  return CALENDAR_UNITS.some((known) => known === unit);
}

/** Of four windows. */
const BOUNDARIES = 5;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Zones whose formatters are kept: making one takes a hundred times as long as using it. */
const formatters = new Map<string, Intl.DateTimeFormat>();

/** Throws a RangeError for a time zone that this Node does not know. */
function formatterOf(timeZone: string): Intl.DateTimeFormat {
  let formatter = formatters.get(timeZone);
  if (formatter === undefined) {
    formatter = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    formatters.set(timeZone, formatter);
  }
  return formatter;
}

/** Whether `name` is a time zone of the IANA database, as in `Europe/Berlin`, or UTC. */
export function isTimeZone(name: string): boolean {
  // Newer Nodes take offsets such as +02:00, too, which no calendar has.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    formatterOf(name);
    return true;
  } catch {
    return false;
  }
}

/**
 * The days, weeks (from Monday, ISO 8601), months or years of a time zone as windows, for times from 1970 on. A window starts at the first instant
 * at which clocks there show its date, so those in which clocks change are longer or shorter, and where midnight is skipped a day starts
 * later. The window asked for last is remembered: one that moves forward is computed once per window.
 */
export class CalendarWindows {
  readonly timeZone: string;
  readonly unit: CalendarUnit;
  private readonly formatter: Intl.DateTimeFormat;
  private startMicros = 0;
  private endMicros = 0;
  private boundaries: readonly number[] = [];

  private constructor(timeZone: string, unit: CalendarUnit) {
    this.timeZone = timeZone;
    this.unit = unit;
    this.formatter = formatterOf(timeZone);
  }

  /** Throws a RangeError for a `timeZone` that {@link isTimeZone} does not know. */
  static of(timeZone: string, unit: CalendarUnit): CalendarWindows {
    return new CalendarWindows(timeZone, unit);
  }

  /** Start of the window that holds `micros`, in microseconds since the epoch. */
  startAt(micros: number): number {
    if (micros < this.startMicros || micros >= this.endMicros) this.find(micros);
    return this.startMicros;
  }

  /** End of the window that holds `micros`, such as its start. */
  endOf(micros: number): number {
    if (micros < this.startMicros || micros >= this.endMicros) this.find(micros);
    return this.endMicros;
  }

  /**
   * Boundaries of the windows around `micros`: the start of the one before, of its own, of the next and of the one after that, and the end of
   * that one. For a store that goes by another clock and picks the window itself.
   */
  boundariesAround(micros: number): readonly number[] {
    const start = this.startAt(micros);
    if (this.boundaries[1] !== start) {
      const boundaries = [this.startAt(start - 1)];
      for (let at = start; boundaries.length < BOUNDARIES; at = this.endOf(at)) boundaries.push(at);
      this.boundaries = boundaries;
      this.startAt(micros);
    }
    return this.boundaries;
  }

  private find(micros: number): void {
    const ms = Math.floor(micros / 1000);
    let first = firstDayOf(this.localDay(ms), this.unit);
    let start = this.dayStart(first);
    // A zone may turn its clocks back over midnight: the date of a moment is then one that has begun before, or not yet for good.
    while (start > ms) {
      first = firstDayOf(first - 1, this.unit);
      start = this.dayStart(first);
    }
    let end = start;
    // A day that a zone skips (Samoa, 30 December 2011) is no window.
    while (end <= ms) {
      start = end;
      first = nextFirstDay(first, this.unit);
      end = this.dayStart(first);
    }
    this.startMicros = start * 1000;
    this.endMicros = end * 1000;
  }

  /** What clocks show at `ms`, as if it were UTC. */
  private localMs(ms: number): number {
    const fields: Record<string, number> = {};
    for (const { type, value } of this.formatter.formatToParts(ms)) fields[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = fields;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  }

  /** The date at `ms`, as days since 1970-01-01. */
  private localDay(ms: number): number {
    return Math.floor(this.localMs(ms) / DAY_MS);
  }

  /** The first millisecond at which clocks show the date `day`, or a later one where it is skipped. */
  private dayStart(day: number): number {
    // Clocks are at most 26 hours apart from UTC, and what changes them lies at least a day from the next change.
    let before = day * DAY_MS - 30 * HOUR_MS;
    let after = day * DAY_MS + 30 * HOUR_MS;
    // Where the offset before midnight holds up to midnight, the search is over at once.
    const guess = day * DAY_MS - (this.localMs(before) - before);
    if (this.localDay(guess) >= day && this.localDay(guess - 1) < day) return guess;
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (this.localDay(middle) >= day) after = middle;
      else before = middle;
    }
    return after;
  }
}

/** First day of the unit that holds `day`, as days since 1970-01-01, a Thursday. */
function firstDayOf(day: number, unit: CalendarUnit): number {
  if (unit === 'day') return day;
  if (unit === 'week') return day - ((((day + 3) % 7) + 7) % 7);
  const date = new Date(day * DAY_MS);
  return Date.UTC(date.getUTCFullYear(), unit === 'month' ? date.getUTCMonth() : 0) / DAY_MS;
}

/** First day of the unit after the one that begins with `first`. */
function nextFirstDay(first: number, unit: CalendarUnit): number {
  if (unit === 'day') return first + 1;
  if (unit === 'week') return first + 7;
  const date = new Date(first * DAY_MS);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return (unit === 'month' ? Date.UTC(year, month + 1) : Date.UTC(year + 1, 0)) / DAY_MS;
}
