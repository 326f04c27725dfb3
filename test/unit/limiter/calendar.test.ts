import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  CALENDAR_UNITS,
  CALENDARS,
  Calendars,
  type CalendarUnit,
  CalendarWindows,
  isCalendarUnit,
  suggestTimeZone,
  timeZoneName,
} from '../../../src/limiter/calendar.js';
import { windowRate } from '../../../src/limiter/fixed-window.js';
import { WINDOW_UNITS } from '../../../src/limiter/window-unit.js';
import { cases } from '../../support/assert/cases.js';
import { FakeClock } from '../../support/clock/fake-clock.js';

/** Converts an ISO 8601 time such as `2024-03-31T01:00Z` to microseconds. */
function at(time: string): number {
  return Date.parse(time) * 1000;
}

function text(micros: number): string {
  return new Date(micros / 1000).toISOString().replace(/(:00)?\.000Z$/, 'Z');
}

/** Returns the window around `time`, as `start/end`. */
function windowOf(timeZone: string, unit: CalendarUnit, time: string): string {
  const windows = CalendarWindows.of(timeZone, unit);
  const start = windows.startAt(at(time));
  return `${text(start)}/${text(windows.endOf(start))}`;
}

describe('days on which clocks change', () => {
  // Zone, times within the day, start, end.
  test.each(cases`
    Europe/Berlin of 23 hours => 2024-03-31T00:59:59.999Z 2024-03-31T01:00Z => 2024-03-30T23:00Z => 2024-03-31T22:00Z
    Europe/Berlin of 25 hours => 2024-10-27T00:30Z 2024-10-27T01:30Z => 2024-10-26T22:00Z => 2024-10-27T23:00Z
    America/New_York of 23 hours => 2024-03-10T07:00Z => 2024-03-10T05:00Z => 2024-03-11T04:00Z
    America/New_York of 25 hours => 2024-11-03T06:00Z => 2024-11-03T04:00Z => 2024-11-04T05:00Z
    // At midnight clocks show 01:00.
    Africa/Cairo without a midnight => 2024-04-26T12:00Z => 2024-04-25T22:00Z => 2024-04-26T21:00Z
    Africa/Cairo before it => 2024-04-25T21:59:59.999Z => 2024-04-24T22:00Z => 2024-04-25T22:00Z
    // At midnight clocks show 23:00 again.
    Africa/Cairo of 25 hours => 2024-10-31T20:30Z 2024-10-31T21:30Z => 2024-10-30T21:00Z => 2024-10-31T22:00Z
    America/Sao_Paulo without a midnight => 2018-11-04T03:00Z => 2018-11-04T03:00Z => 2018-11-05T02:00Z
    America/Sao_Paulo of 25 hours => 2019-02-17T01:30Z 2019-02-17T02:30Z => 2019-02-16T02:00Z => 2019-02-17T03:00Z
    America/Sao_Paulo, no longer => 2024-11-03T12:00Z => 2024-11-03T03:00Z => 2024-11-04T03:00Z
    Asia/Beirut without a midnight => 2024-03-31T12:00Z => 2024-03-30T22:00Z => 2024-03-31T21:00Z
    Asia/Beirut of 25 hours => 2024-10-26T21:30Z => 2024-10-25T21:00Z => 2024-10-26T22:00Z
    // Midnight comes twice: the first one counts.
    America/Havana with two midnights
      2024-11-03T04:30Z 2024-11-03T05:00Z 2024-11-03T05:30Z
      2024-11-03T04:00Z
      2024-11-04T05:00Z
    America/Havana without one => 2024-03-10T05:00Z => 2024-03-10T05:00Z => 2024-03-11T04:00Z
    // At 00:01 clocks show 23:01 of the previous day, whose window has already ended.
    America/St_Johns, twice at its midnight
      2010-11-07T02:30:30Z 2010-11-07T02:31Z 2010-11-07T03:29Z 2010-11-07T03:30Z
      2010-11-07T02:30Z
      2010-11-08T03:30Z
    America/St_Johns before it => 2010-11-07T02:29:59.999Z => 2010-11-06T02:30Z => 2010-11-07T02:30Z
    America/St_Johns of 23 hours => 2010-03-14T12:00Z => 2010-03-14T03:30Z => 2010-03-15T02:30Z
    Australia/Lord_Howe of 24 hours and a half => 2024-04-07T00:00Z => 2024-04-06T13:00Z => 2024-04-07T13:30Z
    Australia/Lord_Howe of 23 hours and a half => 2024-10-06T00:00Z => 2024-10-05T13:30Z => 2024-10-06T13:00Z
    Antarctica/Vostok of 31 hours => 1994-01-31T23:00Z => 1994-01-30T17:00Z => 1994-02-01T00:00Z
  `)('%s', (name, times, start, end) => {
    const zone = name.split(/[ ,]/)[0] as string;
    for (const time of times.split(' ')) expect(windowOf(zone, 'day', time)).toBe(`${start}/${end}`);
  });
});

describe('Pacific/Apia, where 30 December 2011 was skipped', () => {
  test.each<[CalendarUnit, string, string, string]>([
    ['day', '2011-12-30T09:59:59Z', '2011-12-29T10:00Z', '2011-12-30T10:00Z'],
    ['day', '2011-12-30T10:00Z', '2011-12-30T10:00Z', '2011-12-31T10:00Z'],
    ['week', '2011-12-30T10:00Z', '2011-12-26T10:00Z', '2012-01-01T10:00Z'],
    ['month', '2011-12-30T10:00Z', '2011-12-01T10:00Z', '2011-12-31T10:00Z'],
    ['year', '2011-12-30T10:00Z', '2011-01-01T10:00Z', '2011-12-31T10:00Z'],
  ])('its %s at %s', (unit, time, start, end) => {
    expect(windowOf('Pacific/Apia', unit, time)).toBe(`${start}/${end}`);
  });
});

describe('units', () => {
  test.each<[string, CalendarUnit, string, string, string]>([
    ['Asia/Kolkata', 'day', '2024-02-29T12:00Z', '2024-02-28T18:30Z', '2024-02-29T18:30Z'],
    ['Pacific/Kiritimati', 'day', '2024-01-01T09:59:59Z', '2023-12-31T10:00Z', '2024-01-01T10:00Z'],
    ['Pacific/Kiritimati', 'year', '2023-12-31T10:00Z', '2023-12-31T10:00Z', '2024-12-31T10:00Z'],
    ['Etc/GMT+12', 'year', '2024-01-01T11:59Z', '2023-01-01T12:00Z', '2024-01-01T12:00Z'],
    // Monday to Sunday, over the turn of the year (ISO 8601: week 53 of 2020, week 1 of 2025).
    ['UTC', 'week', '2021-01-03T23:59:59Z', '2020-12-28T00:00Z', '2021-01-04T00:00Z'],
    ['UTC', 'week', '2024-12-30T00:00Z', '2024-12-30T00:00Z', '2025-01-06T00:00Z'],
    ['UTC', 'week', '1970-01-01T00:00Z', '1969-12-29T00:00Z', '1970-01-05T00:00Z'],
    ['Europe/Berlin', 'week', '2024-03-31T21:59Z', '2024-03-24T23:00Z', '2024-03-31T22:00Z'],
    ['America/New_York', 'week', '2024-11-04T04:59Z', '2024-10-28T04:00Z', '2024-11-04T05:00Z'],
    // Leap years, and 2100, which is not a leap year.
    ['UTC', 'month', '2024-02-29T23:59:59Z', '2024-02-01T00:00Z', '2024-03-01T00:00Z'],
    ['UTC', 'month', '2023-02-28T23:59:59Z', '2023-02-01T00:00Z', '2023-03-01T00:00Z'],
    ['UTC', 'month', '2100-02-28T23:59:59Z', '2100-02-01T00:00Z', '2100-03-01T00:00Z'],
    ['UTC', 'day', '2024-02-29T00:00Z', '2024-02-29T00:00Z', '2024-03-01T00:00Z'],
    ['Europe/Berlin', 'month', '2024-03-31T21:59:59Z', '2024-02-29T23:00Z', '2024-03-31T22:00Z'],
    ['Europe/Berlin', 'month', '2024-12-31T22:59:59Z', '2024-11-30T23:00Z', '2024-12-31T23:00Z'],
    ['America/New_York', 'year', '2025-01-01T04:59:59.999Z', '2024-01-01T05:00Z', '2025-01-01T05:00Z'],
    // Local clocks were 44 minutes and 30 seconds behind UTC.
    ['Africa/Monrovia', 'day', '1971-05-05T12:00Z', '1971-05-05T00:44:30Z', '1971-05-06T00:44:30Z'],
  ])('%s, %s at %s', (zone, unit, time, start, end) => {
    expect(windowOf(zone, unit, time)).toBe(`${start}/${end}`);
  });

  test('a calendar has those from a day on', () => {
    expect(WINDOW_UNITS.filter(isCalendarUnit)).toEqual(['day', 'week', 'month', 'year']);
  });
});

describe('boundariesAround', () => {
  test('is the same array for one window, whatever was requested in between', () => {
    const windows = CalendarWindows.of('UTC', 'day');
    const around = windows.boundariesAround(at('2024-02-29T12:00Z'));
    windows.startAt(at('2030-01-01T00:00Z'));
    windows.endOf(at('2024-03-01T00:00Z'));
    expect(windows.boundariesAround(at('2024-02-29T23:59Z'))).toBe(around);
    const next = windows.boundariesAround(at('2024-03-01T00:00Z'));
    expect(next.slice(0, 4)).toEqual(around.slice(1));
  });

  test('is valid before the first window', () => {
    const around = CalendarWindows.of('Asia/Tokyo', 'year').boundariesAround(0).map(text);
    expect(around.slice(0, 3)).toEqual(['1968-12-31T15:00Z', '1969-12-31T15:00Z', '1970-12-31T15:00Z']);
  });
});

describe('computed windows', () => {
  /** Number of conversions to local time; each takes some microseconds. */
  let lookUps: jest.SpiedFunction<Intl.DateTimeFormat['formatToParts']>;

  beforeEach(() => {
    lookUps = jest.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts');
  });

  afterEach(() => {
    lookUps.mockRestore();
  });

  /** Maximum number of conversions for one zone and unit. */
  const MOST = 150;

  test('are shared by all rates with the same zone and unit', () => {
    const now = at('2031-02-03T04:05Z');
    const rates = Array.from({ length: 1000 }, (_, n) =>
      windowRate('week', n, { timeZone: n % 2 === 0 ? 'Asia/Calcutta' : 'asia/kolkata' }),
    );
    for (const { calendar } of rates) calendar?.boundariesAround(now);
    for (const { calendar } of rates) calendar?.boundariesAround(now + 7 * 86_400e6);
    expect(lookUps.mock.calls.length).toBeLessThan(MOST);
    expect(rates[1]?.calendar?.timeZone).toBe('asia/kolkata');
  });

  test('continue from known windows', () => {
    const windows = CalendarWindows.of('Europe/Berlin', 'day', new Calendars());
    windows.boundariesAround(at('2031-02-03T12:00Z'));
    lookUps.mockClear();
    windows.boundariesAround(at('2031-02-04T12:00Z'));
    expect(lookUps.mock.calls.length).toBeLessThan(10);
  });

  test('are computed in advance, in small steps', () => {
    const clock = new FakeClock();
    const calendars = new Calendars();
    const zones = Intl.supportedValuesOf('timeZone');
    const all = zones.flatMap((zone) =>
      CALENDAR_UNITS.map((unit) => CalendarWindows.of(zone, unit, calendars)),
    );
    expect(lookUps).not.toHaveBeenCalled();
    let largest = 0;
    const prepare = (): void => {
      for (const steps = calendars.prepare(clock.wallMicros()); ; ) {
        lookUps.mockClear();
        const { done } = steps.next();
        largest = Math.max(largest, lookUps.mock.calls.length);
        if (done === true) return;
      }
    };
    const ask = (): void => {
      lookUps.mockClear();
      for (const windows of all) {
        windows.endOf(windows.startAt(clock.wallMicros()));
        windows.boundariesAround(clock.wallMicros());
      }
      expect(lookUps).not.toHaveBeenCalled();
    };
    prepare();
    ask();
    // All zones have midnight within these two days; a request arrives each hour.
    for (let hour = 0; hour < 48; hour++) {
      clock.advance(3_600_000_000);
      ask();
      prepare();
    }
    // No request arrives for a day.
    clock.advance(86_400_000_000);
    ask();
    expect(largest).toBeLessThan(4 * MOST);
  });

  test('are shared with new rates in the process', () => {
    for (const _ of [...CALENDARS.prepare(at('2032-01-01T00:00Z'))]);
    windowRate('day', 5, { timeZone: 'Europe/Paris' }).calendar?.startAt(at('2032-01-01T00:00Z'));
    lookUps.mockClear();
    windowRate('day', 6, { timeZone: 'Europe/Paris' }).calendar?.startAt(at('2032-01-01T00:00Z'));
    expect(lookUps).not.toHaveBeenCalled();
  });
});

describe('names of time zones', () => {
  test.each([
    ['Europe/Berlin', 'Europe/Berlin'],
    ['europe/berlin', 'Europe/Berlin'],
    ['AMERICA/ARGENTINA/USHUAIA', 'America/Argentina/Ushuaia'],
    ['America/Port-au-Prince', 'America/Port-au-Prince'],
    ['UTC', 'UTC'],
    ['utc', 'UTC'],
    ['GMT', 'GMT'],
    ['Etc/UTC', 'Etc/UTC'],
    ['Etc/GMT+5', 'Etc/GMT+5'],
    // Names that Node.js does not list, because it lists other names for these places.
    ['Asia/Kolkata', 'Asia/Kolkata'],
    ['Europe/Kyiv', 'Europe/Kyiv'],
    ['US/Pacific', 'US/Pacific'],
  ])('%s is %s', (name, expected) => {
    expect(timeZoneName(name)).toBe(expected);
  });

  test.each([
    '',
    'Berlin',
    'Europe',
    'Europe/',
    'Europe/Atlantis',
    ' Europe/Berlin',
    'Europe/Berlin ',
    'Europe\\Berlin',
    // Offsets, which newer versions of Node.js accept.
    '+02:00',
    '-08',
    'GMT+2',
    'UTC+02:00',
    // An offset in the IANA database, but a place with daylight saving time in Node.js.
    'EST',
    'PST',
    'CET',
    'PST8PDT',
    'SystemV/PST8',
    'Z',
    'local',
    'Etc/Unknown',
    '__proto__',
    `Europe/${'a'.repeat(100_000)}`,
  ])('%j is invalid', (name) => {
    expect(timeZoneName(name)).toBeUndefined();
  });

  test.each([
    ['berlin', 'Europe/Berlin'],
    ['New York', 'America/New_York'],
    ['port au prince', undefined],
    ['', undefined],
    ['Atlantis', undefined],
  ])('the place %j is %s', (name, expected) => {
    expect(suggestTimeZone(name)).toBe(expected);
  });

  test('windows of an invalid zone throw an error', () => {
    expect(() => CalendarWindows.of('Europe/Atlantis', 'day')).toThrow(RangeError);
  });
});

test('windows can be copied as plain data, and are their time zone in JSON', () => {
  const windows = CalendarWindows.of('Europe/Berlin', 'day');
  windows.startAt(at('2024-02-29T12:00Z'));
  expect(structuredClone(windows)).toMatchObject({ timeZone: 'Europe/Berlin', unit: 'day' });
  expect(JSON.stringify({ calendar: windows })).toBe('{"calendar":"Europe/Berlin"}');
});
