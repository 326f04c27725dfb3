import type { WindowUnit } from './window-unit.js';

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
/**
 * More than there are zones and usual other names of them; how a name that this Node does not list is spelt has no
 * bound.
 */
const MAX_FORMATTERS = 1000;

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
    if (formatters.size >= MAX_FORMATTERS) formatters.clear();
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
 * The name of a time zone of the IANA database, such as `Europe/Berlin` or UTC; undefined for what is none. Case does
 * not matter there (RFC 9557), so a name that this Node lists is spelt as it is listed. Not taken: names without region
 * such as EST or PST, which are an offset to some Nodes and a place to others, or unknown; and offsets.
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
export function suggestTimeZone(name: string): string | undefined {
  const place = name.toLowerCase().replaceAll(/[ -]/g, '_');
  return [...listedZones()].find(([zone]) => zone.endsWith(`/${place}`))?.[1];
}

/**
 * The days, weeks (from Monday, ISO 8601), months or years of a time zone as windows, for times from 1970 on. A window
 * starts at the first instant at which clocks there show its date, so those in which clocks change are longer or
 * shorter, and where midnight is skipped a day starts later. What is computed is shared by all windows of one zone and
 * unit ({@link Calendars}).
 */
export class CalendarWindows {
  readonly timeZone: string;
  readonly unit: CalendarUnit;
  /** Shared by all windows of the zone and unit. */
  readonly #sequence: WindowSequence;

  private constructor(timeZone: string, unit: CalendarUnit, row: WindowSequence) {
    this.timeZone = timeZone;
    this.unit = unit;
    this.#sequence = row;
  }

  /** Throws a RangeError for a time zone that this Node does not know; see {@link timeZoneName}. */
  static of(timeZone: string, unit: CalendarUnit, calendars: Calendars = CALENDARS): CalendarWindows {
    return new CalendarWindows(timeZone, unit, calendars.sequenceOf(timeZone, unit));
  }

  /** Start of the window that holds `micros`, in microseconds since the epoch. */
  startAt(micros: number): number {
    const row = this.#sequence;
    if (micros < row.startMicros || micros >= row.endMicros) row.find(micros);
    return row.startMicros;
  }

  /**
   * End of the window that holds `micros`, such as its start. Asked about the one after the remembered one, both are.
   */
  endOf(micros: number): number {
    const row = this.#sequence;
    if (micros === row.endMicros && micros > 0) return row.nextEnd();
    if (micros < row.startMicros || micros >= row.endMicros) row.find(micros);
    return row.endMicros;
  }

  /** In JSON the windows are their time zone: the unit stands beside them. */
  toJSON(): string {
    return this.timeZone;
  }

  /**
   * Boundaries of the windows around `micros`: the start of the one before, of its own, of the next and of the one
   * after that, and the end of that one. For a store that goes by another clock and picks the window itself.
   */
  boundariesAround(micros: number): readonly number[] {
    this.startAt(micros);
    return this.#sequence.around();
  }
}

/**
 * Zones and units have so few names that a process meets all of them once at most, but for spellings that this Node
 * does not list.
 */
const MAX_NAMES = 4096;
/** Rows that may take work in one turn of the event loop: each takes a quarter of a millisecond at first. */
const SEQUENCES_PER_TURN = 4;

/**
 * What is known of calendars: once for each zone, however it is spelt, and unit, as a zone's boundaries take long to
 * compute. There are some 450 zones, and nothing is forgotten.
 */
export class Calendars {
  readonly #sequences = new Map<string, WindowSequence>();
  /** By unit and time zone as it is spelt. */
  readonly #byName = new Map<string, WindowSequence>();

  /** Throws a RangeError for a time zone that this Node does not know. */
  sequenceOf(timeZone: string, unit: CalendarUnit): WindowSequence {
    const name = `${unit} ${timeZone}`;
    let row = this.#byName.get(name);
    if (row !== undefined) return row;
    const zone = zoneOf(timeZone);
    const key = `${unit} ${zone}`;
    row = this.#sequences.get(key);
    if (row === undefined) {
      row = new WindowSequence(zone, unit);
      this.#sequences.set(key, row);
    }
    if (this.#byName.size >= MAX_NAMES) this.#byName.clear();
    this.#byName.set(name, row);
    return row;
  }

  /**
   * Computes what requests around `micros`, and in the window after it, will ask, so that none has to wait for many
   * calendars. Yields where the event loop should have a turn.
   */
  *prepare(micros: number): Generator<void, void> {
    let worked = 0;
    // A row that is added meanwhile comes at the end.
    for (const row of this.#sequences.values()) {
      if (!row.prepare(micros)) continue;
      worked++;
      if (worked % SEQUENCES_PER_TURN === 0) yield;
    }
  }
}

/** Those of this thread. */
export const CALENDARS = new Calendars();

/** A time zone as this Node calls it, whatever name or spelling it goes by. Throws a RangeError where there is none. */
function zoneOf(timeZone: string): string {
  // Making a formatter takes a fifth of a millisecond, so it waits until it is needed.
  const listedName = listedZones().get(timeZone.toLowerCase());
  return listedName ?? formatterOf(timeZone).resolvedOptions().timeZone;
}

/** Boundaries kept ahead of the window that is asked for: those that it needs, and one for the window after it. */
const BOUNDARIES_AHEAD = 4;
/** More are not kept; those of long ago go first. */
const MAX_BOUNDARIES = 12;

/** Windows of one zone and unit that follow each other, as far as somebody asked. */
class WindowSequence {
  /** The window asked for last. */
  startMicros = 0;
  endMicros = 0;
  readonly #zone: string;
  readonly #unit: CalendarUnit;
  /** Microseconds, rising, without gap: each is the start of a window and the end of the one before. */
  #boundaries: number[] = [];
  #around: readonly number[] = [];

  constructor(zone: string, unit: CalendarUnit) {
    this.#zone = zone;
    this.#unit = unit;
  }

  /** Makes the window that holds `micros` that of {@link startMicros} and {@link endMicros}. */
  find(micros: number): void {
    const at = this.#indexOf(micros);
    this.startMicros = this.#boundaries[at] as number;
    this.endMicros = this.#boundaries[at + 1] as number;
  }

  /** End of the window after the one asked for last. */
  nextEnd(): number {
    const at = this.#indexOf(this.startMicros);
    this.#ensureBoundary(at + 2);
    return this.#boundaries[at + 2] as number;
  }

  /** The boundaries around the window asked for last. */
  around(): readonly number[] {
    if (this.#around[1] !== this.startMicros) {
      const at = this.#ensureBoundaryBefore(this.#indexOf(this.startMicros));
      this.#ensureBoundary(at + BOUNDARIES - 2);
      this.#around = this.#boundaries.slice(at - 1, at - 1 + BOUNDARIES);
    }
    return this.#around;
  }

  /**
   * Computes what is asked around `micros` and in the window after it. Returns whether there was anything to compute.
   */
  prepare(micros: number): boolean {
    const before = this.#boundaries;
    const { length } = before;
    const at = this.#ensureBoundaryBefore(this.#indexOf(micros));
    this.#ensureBoundary(at + BOUNDARIES_AHEAD);
    return this.#boundaries !== before || this.#boundaries.length !== length;
  }

  /** Index of the start of the window that holds `micros`. */
  #indexOf(micros: number): number {
    let boundaries = this.#boundaries;
    const last = boundaries.at(-1);
    // What comes next is computed from what is known.
    if (last !== undefined && micros >= last) {
      const end = this.#endAt(last);
      if (micros < end) boundaries.push(end);
    }
    if (
      boundaries.length < 2 ||
      micros < (boundaries[0] as number) ||
      micros >= (boundaries.at(-1) as number)
    ) {
      const { start, end } = this.#windowAt(micros);
      boundaries = [start, end];
      this.#boundaries = boundaries;
    }
    let at = 0;
    while ((boundaries[at + 1] as number) <= micros) at++;
    if (boundaries.length <= MAX_BOUNDARIES || at < 2) return at;
    this.#boundaries = boundaries.slice(at - 1);
    return 1;
  }

  /** Sees to a boundary before the one at `at`; returns where that is then. */
  #ensureBoundaryBefore(at: number): number {
    if (at > 0) return at;
    this.#boundaries.unshift(this.#windowAt((this.#boundaries[0] as number) - 1).start);
    return 1;
  }

  /** Sees to the boundary at `index`. */
  #ensureBoundary(index: number): void {
    const boundaries = this.#boundaries;
    while (boundaries.length <= index) boundaries.push(this.#endAt(boundaries.at(-1) as number));
  }

  #windowAt(micros: number): { readonly start: number; readonly end: number } {
    const ms = Math.floor(micros / 1000);
    let first = firstDayOf(this.#localDay(ms), this.#unit);
    let start = this.#dayStart(first);
    let end = start;
    // Where clocks were turned back over midnight, the date that they show again has ended; and a day that a zone skips
    // (Samoa, 30 December 2011) is no window.
    while (end <= ms) {
      start = end;
      first = nextFirstDay(first, this.#unit);
      end = this.#dayStart(first);
    }
    return { start: start * 1000, end: end * 1000 };
  }

  /** End of the window that holds `micros`, for half of the work. */
  #endAt(micros: number): number {
    const ms = Math.floor(micros / 1000);
    let first = firstDayOf(this.#localDay(ms), this.#unit);
    let end: number;
    do {
      first = nextFirstDay(first, this.#unit);
      end = this.#dayStart(first);
    } while (end <= ms);
    return end * 1000;
  }

  /** What clocks show at `ms`, as if it were UTC. */
  #localMs(ms: number): number {
    const fields: Record<string, number> = {};
    for (const { type, value } of formatterOf(this.#zone).formatToParts(ms)) fields[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = fields;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  }

  /** The date at `ms`, as days since 1970-01-01. */
  #localDay(ms: number): number {
    return Math.floor(this.#localMs(ms) / DAY_MS);
  }

  /** The first millisecond at which clocks show the date `day`, or a later one where it is skipped. */
  #dayStart(day: number): number {
    // Clocks are at most 26 hours apart from UTC, and what changes them lies at least a day from the next change.
    let before = day * DAY_MS - 30 * HOUR_MS;
    let after = day * DAY_MS + 30 * HOUR_MS;
    // Where the offset before midnight holds up to midnight, the search is over at once.
    const guess = day * DAY_MS - (this.#localMs(before) - before);
    if (this.#localDay(guess) >= day && this.#localDay(guess - 1) < day) return guess;
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (this.#localDay(middle) >= day) after = middle;
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
