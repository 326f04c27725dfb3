import { invariant } from '../runtime/invariant.js';
import type { WindowUnit } from './window-unit.js';

/** Units for which calendar windows exist. */
export const CALENDAR_UNITS = ['day', 'week', 'month', 'year'] as const;
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

export function isCalendarUnit(unit: WindowUnit): unit is CalendarUnit {
  return CALENDAR_UNITS.some((known) => known === unit);
}

/** Number of values that {@link CalendarWindows.boundariesAround} returns: the boundaries of four windows. */
const BOUNDARIES = 5;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Caches formatters by time zone, because creating one takes a hundred times as long as using it. */
const formatters = new Map<string, Intl.DateTimeFormat>();
/**
 * Exceeds the number of time zones and their common aliases. Names that this Node.js does not list can be spelled in
 * any case, so their number has no bound.
 */
const MAX_FORMATTERS = 1000;

/** Throws a RangeError if this Node.js does not know the time zone. */
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

/** Names of UTC that are accepted without a region. All other zones have a region, as in `Europe/Berlin`. */
const UTC_NAMES: readonly string[] = ['UTC', 'GMT'];
/** A region and a place, and optionally a place within it: `America/Argentina/Ushuaia`, `Etc/GMT+5`. */
const ZONE_NAME = /^[A-Za-z]+(?:\/[A-Za-z0-9_+-]+){1,2}$/;

/** The time zones that this Node.js lists, by their lowercase names. Node.js accepts further, mostly older names. */
let listed: ReadonlyMap<string, string> | undefined;

function listedZones(): ReadonlyMap<string, string> {
  listed ??= new Map(
    [...UTC_NAMES, ...Intl.supportedValuesOf('timeZone')].map((name) => [name.toLowerCase(), name]),
  );
  return listed;
}

/**
 * Returns the name of a time zone of the IANA database, such as `Europe/Berlin` or UTC, or undefined if `name` is not
 * valid. Names are case-insensitive (RFC 9557), so a name that this Node.js lists is returned in its listed spelling.
 * Names without a region, such as EST or PST, are not accepted, because Node.js versions interpret them as an offset,
 * as a place, or not at all. Offsets are not accepted.
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

/** Returns the time zone of a place that was given without its region, in any spelling: `berlin`, `New York`. */
export function suggestTimeZone(name: string): string | undefined {
  const place = name.toLowerCase().replaceAll(/[ -]/g, '_');
  return [...listedZones()].find(([zone]) => zone.endsWith(`/${place}`))?.[1];
}

/**
 * The days, weeks (from Monday, ISO 8601), months or years of a time zone as windows, for times from 1970 on. A window
 * starts at the first instant at which local clocks show its date. A window in which clocks change is therefore shorter
 * or longer, and a day whose midnight is skipped starts later. All windows of one zone and unit share the computed
 * boundaries ({@link Calendars}).
 */
export class CalendarWindows {
  readonly timeZone: string;
  readonly unit: CalendarUnit;
  /** Shared by all windows of the zone and unit. */
  readonly #sequence: WindowSequence;

  private constructor(timeZone: string, unit: CalendarUnit, sequence: WindowSequence) {
    this.timeZone = timeZone;
    this.unit = unit;
    this.#sequence = sequence;
  }

  /** Throws a RangeError if this Node.js does not know the time zone; see {@link timeZoneName}. */
  static of(timeZone: string, unit: CalendarUnit, calendars: Calendars = CALENDARS): CalendarWindows {
    return new CalendarWindows(timeZone, unit, calendars.sequenceOf(timeZone, unit));
  }

  /** Returns the start of the window that contains `micros`, in microseconds since the epoch. */
  startAt(micros: number): number {
    const sequence = this.#sequence;
    if (micros < sequence.startMicros || micros >= sequence.endMicros) sequence.find(micros);
    return sequence.startMicros;
  }

  /**
   * Returns the end of the window that contains `micros`, for example the start of the window. Asking for the window
   * after the cached one keeps the cached one.
   */
  endOf(micros: number): number {
    const sequence = this.#sequence;
    if (micros === sequence.endMicros && micros > 0) return sequence.nextEnd();
    if (micros < sequence.startMicros || micros >= sequence.endMicros) sequence.find(micros);
    return sequence.endMicros;
  }

  /** Serializes the windows as their time zone. The unit is a separate field in JSON. */
  toJSON(): string {
    return this.timeZone;
  }

  /**
   * Returns the boundaries of the windows around `micros`: the starts of the previous, current and next windows and of
   * the window after that, and the end of this last window. A store whose clock differs from this one uses them to
   * select the window itself.
   */
  boundariesAround(micros: number): readonly number[] {
    this.startAt(micros);
    return this.#sequence.around();
  }
}

/**
 * Zones and units have few names, so a process rarely reaches this bound, except with spellings that this Node.js does
 * not list.
 */
const MAX_NAMES = 4096;
/**
 * Number of sequences that are extended in one turn of the event loop. The first extension of a sequence takes a
 * quarter of a millisecond.
 */
const SEQUENCES_PER_TURN = 4;

/**
 * Caches calendar boundaries, which take long to compute, once for each zone (under any spelling) and unit. There are
 * about 450 zones, so nothing is evicted.
 */
export class Calendars {
  readonly #sequences = new Map<string, WindowSequence>();
  /** By unit and time zone, as spelled by the caller. */
  readonly #byName = new Map<string, WindowSequence>();

  /** Throws a RangeError if this Node.js does not know the time zone. */
  sequenceOf(timeZone: string, unit: CalendarUnit): WindowSequence {
    const name = `${unit} ${timeZone}`;
    let sequence = this.#byName.get(name);
    if (sequence !== undefined) return sequence;
    const zone = zoneOf(timeZone);
    const key = `${unit} ${zone}`;
    sequence = this.#sequences.get(key);
    if (sequence === undefined) {
      sequence = new WindowSequence(zone, unit);
      this.#sequences.set(key, sequence);
    }
    if (this.#byName.size >= MAX_NAMES) this.#byName.clear();
    this.#byName.set(name, sequence);
    return sequence;
  }

  /**
   * Precomputes what requests around `micros` and in the following window need, so that no request waits for the
   * computation. Yields where the event loop should have a turn.
   */
  *prepare(micros: number): Generator<void, void> {
    let worked = 0;
    // A sequence that is added meanwhile is visited last.
    for (const sequence of this.#sequences.values()) {
      if (!sequence.prepare(micros)) continue;
      worked++;
      if (worked % SEQUENCES_PER_TURN === 0) yield;
    }
  }
}

/** The calendars of this thread. */
export const CALENDARS = new Calendars();

/**
 * Returns the canonical name of a time zone in this Node.js for any alias or spelling. Throws a RangeError if the zone
 * is unknown.
 */
function zoneOf(timeZone: string): string {
  // Creating a formatter takes a fifth of a millisecond, so the list of zones is tried first.
  const listedName = listedZones().get(timeZone.toLowerCase());
  return listedName ?? formatterOf(timeZone).resolvedOptions().timeZone;
}

/**
 * Number of boundaries computed after the start of the current window: those that the current window needs, and one for
 * the window after it.
 */
const BOUNDARIES_AHEAD = 4;
/** Maximum number of boundaries kept; the oldest are dropped first. */
const MAX_BOUNDARIES = 12;

/** Consecutive windows of one zone and unit, as far as requests needed them. */
class WindowSequence {
  /** Bounds of the window that was requested last, in microseconds. */
  startMicros = 0;
  endMicros = 0;
  readonly #zone: string;
  readonly #unit: CalendarUnit;
  /**
   * Ascending and without gaps, in microseconds: each boundary is the start of a window and the end of the previous
   * one.
   */
  #boundaries: number[] = [];
  #around: readonly number[] = [];

  constructor(zone: string, unit: CalendarUnit) {
    this.#zone = zone;
    this.#unit = unit;
  }

  /** Sets {@link startMicros} and {@link endMicros} to the window that contains `micros`. */
  find(micros: number): void {
    const at = this.#indexOf(micros);
    this.startMicros = this.#boundaries[at] as number;
    this.endMicros = this.#boundaries[at + 1] as number;
  }

  /** Returns the end of the window after the one requested last. */
  nextEnd(): number {
    const at = this.#indexOf(this.startMicros);
    this.#ensureBoundary(at + 2);
    return this.#boundaries[at + 2] as number;
  }

  /** Returns the boundaries around the window requested last. */
  around(): readonly number[] {
    if (this.#around[1] !== this.startMicros) {
      const at = this.#ensureBoundaryBefore(this.#indexOf(this.startMicros));
      this.#ensureBoundary(at + BOUNDARIES - 2);
      this.#around = this.#boundaries.slice(at - 1, at - 1 + BOUNDARIES);
    }
    return this.#around;
  }

  /**
   * Computes the boundaries that are needed around `micros` and in the following window. Returns whether any were
   * missing.
   */
  prepare(micros: number): boolean {
    const before = this.#boundaries;
    const { length } = before;
    const at = this.#ensureBoundaryBefore(this.#indexOf(micros));
    this.#ensureBoundary(at + BOUNDARIES_AHEAD);
    return this.#boundaries !== before || this.#boundaries.length !== length;
  }

  #indexOf(micros: number): number {
    let boundaries = this.#boundaries;
    const last = boundaries.at(-1);
    // The next boundary follows from the last known one, at half the cost.
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

  /** Ensures that a boundary exists before the one at `at`. Returns the new index of the latter. */
  #ensureBoundaryBefore(at: number): number {
    if (at > 0) return at;
    this.#boundaries.unshift(this.#windowAt((this.#boundaries[0] as number) - 1).start);
    return 1;
  }

  /** Ensures that the boundary at `index` exists. */
  #ensureBoundary(index: number): void {
    const boundaries = this.#boundaries;
    while (boundaries.length <= index) boundaries.push(this.#endAt(boundaries.at(-1) as number));
  }

  #windowAt(micros: number): { readonly start: number; readonly end: number } {
    const ms = Math.floor(micros / 1000);
    let first = firstDayOf(this.#localDay(ms), this.#unit);
    let start = this.#dayStart(first);
    let end = start;
    // If clocks are turned back across midnight, they show a date again whose window has already ended. A day that a
    // zone skips (Samoa, 30 December 2011) is not a window.
    while (end <= ms) {
      start = end;
      first = nextFirstDay(first, this.#unit);
      end = this.#dayStart(first);
    }
    return { start: start * 1000, end: end * 1000 };
  }

  /** Returns the end of the window that contains `micros`, at half the cost of #windowAt. */
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

  /** Returns the local time at `ms`, as if it were UTC. */
  #localMs(ms: number): number {
    const fields: Record<string, number> = {};
    for (const { type, value } of formatterOf(this.#zone).formatToParts(ms)) fields[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = fields;
    return Date.UTC(year, month - 1, day, hour, minute, second);
  }

  /** Returns the local date at `ms`, in days since 1970-01-01. */
  #localDay(ms: number): number {
    return Math.floor(this.#localMs(ms) / DAY_MS);
  }

  /** Returns the first millisecond at which local clocks show the date `day`, or a later date if `day` is skipped. */
  #dayStart(day: number): number {
    // Local clocks differ from UTC by at most 26 hours, and changes of the offset are at least a day apart.
    let before = day * DAY_MS - 30 * HOUR_MS;
    let after = day * DAY_MS + 30 * HOUR_MS;
    // If the offset before midnight still applies at midnight, no search is needed.
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

/** Returns the first day of the unit that contains `day`, in days since 1970-01-01, a Thursday. */
function firstDayOf(day: number, unit: CalendarUnit): number {
  if (unit === 'day') return day;
  if (unit === 'week') return day - ((((day + 3) % 7) + 7) % 7);
  const date = new Date(day * DAY_MS);
  return Date.UTC(date.getUTCFullYear(), unit === 'month' ? date.getUTCMonth() : 0) / DAY_MS;
}

/** Returns the first day of the unit after the one that begins with `first`. It is later, so that searches end. */
function nextFirstDay(first: number, unit: CalendarUnit): number {
  const next = dayAfterUnit(first, unit);
  invariant(next > first, 'a calendar window ends after its start');
  return next;
}

function dayAfterUnit(first: number, unit: CalendarUnit): number {
  if (unit === 'day') return first + 1;
  if (unit === 'week') return first + 7;
  const date = new Date(first * DAY_MS);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return (unit === 'month' ? Date.UTC(year, month + 1) : Date.UTC(year + 1, 0)) / DAY_MS;
}
