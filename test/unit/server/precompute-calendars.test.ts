import { afterEach, expect, jest, test } from '@jest/globals';
import { CalendarWindows } from '../../../src/limiter/calendar.js';
import { turn } from '../../../src/runtime/turns.js';
import { precomputeCalendars } from '../../../src/server/grpc-service.js';
import { FakeClock } from '../../support/clock/fake-clock.js';

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

test('windows are computed before requests need them, until it is stopped', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'performance'] });
  const clock = new FakeClock();
  const end = precomputeCalendars(clock);
  const zones = ['Asia/Tokyo', 'Europe/Berlin', 'America/Lima', 'Africa/Cairo', 'Asia/Kabul', 'Asia/Seoul'];
  const all = zones.map((zone) => CalendarWindows.of(zone, 'month'));
  const look = async (): Promise<void> => {
    jest.advanceTimersByTime(60_000);
    for (let turns = 0; turns < zones.length; turns++) await turn();
  };
  await look();
  const lookUps = jest.spyOn(Intl.DateTimeFormat.prototype, 'formatToParts');
  for (const windows of all) windows.boundariesAround(clock.wallMicros());
  expect(lookUps).not.toHaveBeenCalled();
  end();
  clock.advance(365 * 86_400_000_000);
  await look();
  expect(lookUps).not.toHaveBeenCalled();
});
