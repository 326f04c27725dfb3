import type { WindowUnit } from './rate.js';

/** Units that a calendar has. */
export const CALENDAR_UNITS = ['day', 'week', 'month', 'year'] as const;
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

/** Whether a calendar has windows of this unit. */
export function isCalendarUnit(unit: WindowUnit): unit is CalendarUnit {
  return CALENDAR_UNITS.some((known) => known === unit);
}

/** Numbers of {@link CalendarWindows.boundariesAround}, which are those of four windows. */
export const BOUNDARIES = 5;

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

/** UTC by its own names; all other zones have a region, as in `Europe/Berlin`. */
const UTC_NAMES: readonly string[] = ['UTC', 'GMT'];
/** Region and place, and perhaps a place within: `America/Argentina/Ushuaia`, `Etc/GMT+5`. */
const ZONE_NAME = /^[A-Za-z]+(?:\/[A-Za-z0-9_+-]+){1,2}$/;

/** All zones by their names in lower case, as far as this Node lists them: it knows more, older names above all. */
let listed: ReadonlyMap<string, string> | undefined;

function listedZones(): ReadonlyMap<string, string> {
  listed ??= new Map(
    [...UTC_NAMES, ...Intl.supportedValuesOf('timeZone')].map((name) => [name.toLowerCase(), name]),
  );
  return listed;
}

/**
 * The name of a time zone of the IANA database, such as `Europe/Berlin` or UTC; undefined for what is none. Case does not matter there (RFC 9557),
 * so a name that this Node lists is spelt as it is listed. Not taken: names without region such as EST or PST, which are an offset to some
 * Nodes and a place to others, or unknown; and offsets.
 */
export function timeZoneName(name: string): string | undefined {
  const known = listedZones().get(name.toLowerCase());
  if (known !== undefined) return known;
  if (!ZONE_NAME.test(name) || /^systemv\//i.test(name)) return undefined;
  try {
    formatterOf(name);
    return name;
  } catch {
    return undefined;
  }
}

/** The zone that was meant by a place without its region, in any spelling: `berlin`, `New York`. */
export function nearTimeZone(name: string): string | undefined {
  const place = name.toLowerCase().replaceAll(/[ -]/g, '_');
  return [...listedZones()].find(([zone]) => zone.endsWith(`/${place}`))?.[1];
}

/**
 * The days, weeks (from Monday, ISO 8601), months or years of a time zone as windows, for times from 1970 on. A window starts at the first instant
 * at which clocks there show its date, so those in which clocks change are longer or shorter, and where midnight is skipped a day starts
 * later. The window asked for last is remembered: one that moves forward is computed once per window.
 */
export class CalendarWindows {
  readonly timeZone: string;
  readonly unit: CalendarUnit;
  private startMicros = 0;
  private endMicros = 0;
  /** End of the window after that; 0 until somebody asks. */
  private nextEndMicros = 0;
  private boundaries: readonly number[] = [];

  private constructor(timeZone: string, unit: CalendarUnit) {
    this.timeZone = timeZone;
    this.unit = unit;
    // Not kept: policies go from thread to thread, which a formatter cannot.
    formatterOf(timeZone);
  }

  /** Throws a RangeError for a time zone that this Node does not know; see {@link timeZoneName}. */
  static of(timeZone: string, unit: CalendarUnit): CalendarWindows {
    return new CalendarWindows(timeZone, unit);
  }

  /** Start of the window that holds `micros`, in microseconds since the epoch. */
  startAt(micros: number): number {
    if (micros < this.startMicros || micros >= this.endMicros) this.find(micros);
    return this.startMicros;
  }

  /** End of the window that holds `micros`, such as its start. Asked about the one after the remembered one, both are. */
  endOf(micros: number): number {
    if (micros === this.endMicros && micros > 0) {
      if (this.nextEndMicros === 0) this.nextEndMicros = this.windowAt(micros).end;
      return this.nextEndMicros;
    }
    if (micros < this.startMicros || micros >= this.endMicros) this.find(micros);
    return this.endMicros;
  }

  /** In JSON the windows are their time zone: the unit stands beside them. */
  toJSON(): string {
    return this.timeZone;
  }

  /**
   * Boundaries of the windows around `micros`: the start of the one before, of its own, of the next and of the one after that, and the end of
   * that one. For a store that goes by another clock and picks the window itself.
   */
  boundariesAround(micros: number): readonly number[] {
    const start = this.startAt(micros);
    if (this.boundaries[1] !== start) {
      const boundaries = [this.windowAt(start - 1).start, start];
      for (let at = this.endMicros; boundaries.length < BOUNDARIES; at = this.windowAt(at).end)
        boundaries.push(at);
      this.boundaries = boundaries;
    }
    return this.boundaries;
  }

  private find(micros: number): void {
    const { start, end } = this.windowAt(micros);
    this.startMicros = start;
    this.endMicros = end;
    this.nextEndMicros = 0;
  }

  private windowAt(micros: number): { readonly start: number; readonly end: number } {
    const ms = Math.floor(micros / 1000);
    let first = firstDayOf(this.localDay(ms), this.unit);
    let start = this.dayStart(first);
    let end = start;
    // Where clocks were turned back over midnight, the date that they show again has ended; and a day that a zone skips (Samoa, 30 December
    // 2011) is no window.
    while (end <= ms) {
      start = end;
      first = nextFirstDay(first, this.unit);
      end = this.dayStart(first);
    }
    return { start: start * 1000, end: end * 1000 };
  }

  /** What clocks show at `ms`, as if it were UTC. */
  private localMs(ms: number): number {
    const fields: Record<string, number> = {};
    for (const { type, value } of formatterOf(this.timeZone).formatToParts(ms)) fields[type] = Number(value);
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
