import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CallerClock } from '../../../../src/storage/redis/clock/caller-clock.js';
import { runs } from '../../../support/assert/runs.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';

const SECOND = 1_000_000;

/** A clock that reads the wall time of a fake clock, by default without delay. */
function clockOf(machine: FakeClock): {
  clock: CallerClock;
  read(requestMicros?: number, replyMicros?: number): void;
} {
  const clock = new CallerClock(() => machine.monotonicMicros());
  const read = (requestMicros = 0, replyMicros = 0): void => {
    const asked = machine.monotonicMicros();
    machine.advance(requestMicros);
    const time = machine.wallMicros();
    machine.advance(replyMicros);
    clock.read(time, asked, machine.monotonicMicros());
  };
  return { clock, read };
}

test('advances between readings, slower by a thousandth because clocks drift', () => {
  const machine = new FakeClock();
  const { clock, read } = clockOf(machine);
  expect(clock.isSet).toBe(false);
  read();
  expect(clock.isSet).toBe(true);
  expect(clock.nowMicros()).toBe(machine.wall);
  machine.advance(5 * SECOND);
  expect(clock.nowMicros()).toBe(machine.wall - 5000);
  machine.advance(3600 * SECOND);
  expect(clock.nowMicros()).toBe(machine.wall - SECOND / 2);
});

test('is behind by the duration of the reply, and uses the best of the latest readings', () => {
  const machine = new FakeClock();
  const { clock, read } = clockOf(machine);
  read(100, 300);
  expect(machine.wall - clock.nowMicros()).toBe(300);
  // This reply was slow, so the previous reading is better.
  read(0, 50_000);
  expect(machine.wall - clock.nowMicros()).toBe(350);
  read(90_000, 200);
  expect(machine.wall - clock.nowMicros()).toBe(200);
});

test('stops while Redis has stepped back by up to a second, and then continues', () => {
  const machine = new FakeClock();
  const { clock, read } = clockOf(machine);
  read();
  const before = clock.nowMicros();
  machine.stepWall(-SECOND);
  read();
  expect(clock.nowMicros()).toBe(before);
  machine.advance(SECOND / 2);
  expect(clock.nowMicros()).toBe(before);
  machine.advance(SECOND);
  read();
  expect(clock.nowMicros()).toBe(machine.wall);
});

test('follows a step forward at once, and a large step back after three readings', () => {
  const machine = new FakeClock();
  const { clock, read } = clockOf(machine);
  read();
  machine.stepWall(3600 * SECOND);
  read();
  expect(clock.nowMicros()).toBe(machine.wall);
  machine.stepWall(-1800 * SECOND);
  for (let i = 0; i < 2; i++) {
    const before = clock.nowMicros();
    machine.advance(5 * SECOND);
    read();
    expect(clock.nowMicros() - before).toBeGreaterThan(4.9 * SECOND);
  }
  read();
  expect(clock.nowMicros()).toBe(machine.wall);
});

test('does not follow a single reading from another machine', () => {
  const machine = new FakeClock();
  const { clock, read } = clockOf(machine);
  read();
  for (let i = 0; i < 10; i++) {
    const before = clock.nowMicros();
    machine.stepWall(-10 * SECOND);
    read();
    machine.stepWall(10 * SECOND);
    machine.advance(5 * SECOND);
    read();
    expect(clock.nowMicros()).toBeGreaterThan(before);
    expect(clock.nowMicros()).toBe(machine.wall);
  }
});

test('never goes back and is never ahead, for any network and drift', () => {
  const wait = fc.integer({ min: 0, max: 60_000_000 });
  const trip = fc.oneof(fc.integer({ min: 0, max: 1000 }), fc.integer({ min: 0, max: 2_000_000 }));
  const readings = fc.array(fc.tuple(wait, trip, trip), { minLength: 1, maxLength: 50 });
  fc.assert(
    fc.property(fc.integer({ min: -500, max: 500 }), readings, (drift, all) => {
      const machine = new FakeClock();
      const { clock, read } = clockOf(machine);
      read();
      let latest = 0;
      for (const [pause, requestMicros, replyMicros] of all) {
        machine.advance(pause);
        // Rounded towards zero, because an additional microsecond within a short pause would exceed the maximum drift.
        machine.stepWall(Math.trunc((pause * drift) / 1e6));
        const before = clock.nowMicros();
        expect(before).toBeGreaterThanOrEqual(latest);
        read(requestMicros, replyMicros);
        latest = clock.nowMicros();
        expect(latest).toBeGreaterThanOrEqual(before);
        expect(latest).toBeLessThanOrEqual(machine.wall);
        // The clock is behind by at most the duration of the reply.
        expect(machine.wall - latest).toBeLessThanOrEqual(replyMicros + 1);
      }
    }),
    runs(300),
  );
});
