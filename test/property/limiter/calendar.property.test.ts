import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  CALENDAR_UNITS,
  Calendars,
  type CalendarUnit,
  CalendarWindows,
} from '../../../src/limiter/calendar.js';
import { expectAtMost, expectEqual, expectSame } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';

const DAY_MICROS = 86_400_000_000;
/** Maximum number of days in each unit. */
const MOST_DAYS: Readonly<Record<CalendarUnit, number>> = { day: 1, week: 7, month: 31, year: 366 };
/** Covers clock changes by a whole day, and the change of 7 hours in Vostok. */
const SLACK_DAYS = 1.3;

const zones = fc.constantFrom('UTC', 'Asia/Kolkata', ...Intl.supportedValuesOf('timeZone'));
const units = fc.constantFrom(...CALENDAR_UNITS);
/** Times from 1970 to 2100, many of them close to a whole hour, when clocks change. */
const times = fc.oneof(
  fc.integer({ min: 0, max: 4_102_444_800_000_000 }),
  fc
    .tuple(fc.integer({ min: 0, max: 1_139_568 }), fc.integer({ min: -1, max: 1 }))
    .map(([hour, off]) => Math.max(0, hour * 3_600_000_000 + off)),
);

/** Returns the local date, in days since the epoch. */
function shownDay(timeZone: string, micros: number): number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' });
  return Date.parse(`${format.format(Math.floor(micros / 1000))}T00:00Z`) / 86_400_000;
}

/** Returns a number for the unit that a day belongs to, which increases with the days. */
function unitOfDay(day: number, unit: CalendarUnit): number {
  const date = new Date(day * 86_400_000);
  if (unit === 'day') return day;
  if (unit === 'week') return Math.floor((day + 3) / 7);
  return unit === 'year' ? date.getUTCFullYear() : date.getUTCFullYear() * 12 + date.getUTCMonth();
}

test('windows contain their times, have no gaps, and begin when clocks first show their date', () => {
  fc.assert(
    fc.property(zones, units, times, (timeZone, unit, micros) => {
      const windows = CalendarWindows.of(timeZone, unit);
      const start = windows.startAt(micros);
      const end = windows.endOf(start);
      expectAtMost(start, micros);
      expect(end).toBeGreaterThan(micros);
      expectAtMost(end - start, (MOST_DAYS[unit] + SLACK_DAYS) * DAY_MICROS);
      expectSame(windows.startAt(end - 1), start);
      expectSame(windows.startAt(end), end);
      expectSame(windows.endOf(start - 1), start);
      const before = unitOfDay(shownDay(timeZone, start - 1000), unit);
      expect(unitOfDay(shownDay(timeZone, start), unit)).toBeGreaterThan(before);
      expect(unitOfDay(shownDay(timeZone, end), unit)).toBeGreaterThan(
        unitOfDay(shownDay(timeZone, start), unit),
      );
    }),
    runs(2000),
  );
});

test('earlier calls do not change an answer', () => {
  const questions = fc.array(fc.tuple(fc.constantFrom('start', 'end', 'next', 'around'), times), {
    minLength: 1,
    maxLength: 8,
  });
  fc.assert(
    fc.property(zones, units, questions, (timeZone, unit, asked) => {
      const windows = CalendarWindows.of(timeZone, unit, new Calendars());
      const ask = (one: CalendarWindows, what: string, micros: number): unknown => {
        if (what === 'start') return one.startAt(micros);
        if (what === 'around') return one.boundariesAround(micros);
        const end = one.endOf(micros);
        return what === 'end' ? end : one.endOf(end);
      };
      for (const [what, micros] of asked) {
        const fresh = CalendarWindows.of(timeZone, unit, new Calendars());
        expectEqual(ask(windows, what, micros), ask(fresh, what, micros));
      }
    }),
    runs(300),
  );
});

test('boundaries are those of four successive windows, of which the second contains the time', () => {
  fc.assert(
    fc.property(zones, units, times, (timeZone, unit, micros) => {
      const around = CalendarWindows.of(timeZone, unit).boundariesAround(micros);
      expect(around).toHaveLength(5);
      expectAtMost(around[1], micros);
      expect(around[2]).toBeGreaterThan(micros);
      const windows = CalendarWindows.of(timeZone, unit);
      for (let i = 0; i < 4; i++) expectSame(windows.endOf(around[i] as number), around[i + 1]);
    }),
    runs(300),
  );
});
