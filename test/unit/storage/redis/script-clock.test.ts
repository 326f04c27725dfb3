import { expect, test } from '@jest/globals';
import { ScriptClock } from '../../../../src/storage/redis/clock/script-clock.js';
import type { SendCommand } from '../../../../src/storage/redis/connection/connection-options.js';
import { parseRedisUrl } from '../../../../src/storage/redis/connection/redis-address.js';
import { RedisReplyError } from '../../../../src/storage/redis/connection/redis-error.js';
import type { RedisClock } from '../../../../src/storage/redis/redis-store-options.js';
import { RedisTime } from '../../../../src/storage/redis/redis-time.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { REDIS } from '../../../support/limiter/store-options.js';

const SECOND = 1_000_000;
const REFUSAL = new RedisReplyError("NOTIME ERR The user executing the script can't run this command");

/** Returns a clock, and a fake connection that replies to TIME with `answers`, and then no more. */
function bench(clockOf: RedisClock, answers: (readonly number[] | Error)[] = []) {
  const machine = new FakeClock();
  const log: string[] = [];
  let asked = 0;
  const send: SendCommand = async (name) => {
    expect(name).toBe('time');
    asked++;
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer ?? new Promise(() => {});
  };
  const options = {
    ...REDIS,
    clockOf,
    address: parseRedisUrl('127.0.0.1:1'),
    log: (_: string, text: string) => void log.push(text),
  };
  const time = new RedisTime(() => machine.monotonicMicros());
  const clock = new ScriptClock(options, time, () => machine.monotonicMicros());
  return { machine, log, send, clock, time, asked: () => asked };
}

test('a TIME without a reply delays no call, and is not repeated during that time', async () => {
  const { machine, send, clock, asked } = bench('caller', [[1_700_000_000, 500]]);
  await clock.begin(send);
  expect(clock.argument(send)).toBe('+1700000000000500');
  machine.advance(4 * SECOND);
  expect(clock.argument(send)).toBe('+1700000003996500');
  expect(asked()).toBe(1);
  machine.advance(SECOND);
  expect(clock.argument(send)).toBe('+1700000004995500');
  expect(asked()).toBe(2);
  machine.advance(100 * SECOND);
  expect(clock.argument(send)).toBe('+1700000104895500');
  expect(asked()).toBe(2);
});

test("auto supplies no time until Redis refuses it to a script, and then starts with Redis's time", async () => {
  const { machine, log, send, clock, time, asked } = bench('auto');
  await clock.begin(send);
  expect(clock.argument(send)).toBe('');
  time.note(1_600_000_000_000_000);
  machine.advance(SECOND);
  expect(await clock.canSupplyTimeAfter(new RedisReplyError('OOM full'), send)).toBe(false);
  expect(await clock.canSupplyTimeAfter(new Error('NOTIME of a connection'), send)).toBe(false);
  expect([clock.argument(send), asked()]).toEqual(['', 0]);
  // The call does not wait for the reply to TIME, which never arrives.
  expect(await clock.canSupplyTimeAfter(REFUSAL, send)).toBe(true);
  expect(await clock.canSupplyTimeAfter(REFUSAL, send)).toBe(true);
  expect(clock.argument(send)).toBe('+1600000001000000');
  expect(asked()).toBe(1);
  expect(log).toEqual([expect.stringContaining('does not allow scripts to read the time')]);
});

test('server never supplies the time, even after refusals', async () => {
  const { send, clock } = bench('server');
  expect(await clock.canSupplyTimeAfter(REFUSAL, send)).toBe(false);
  expect(clock.argument(send)).toBe('');
});

test.each([
  "NOPERM this user has no permissions to run the 'time' command",
  "ERR unknown command 'TIME'",
  'ERR unsupported command',
  'ERR This Redis command is not allowed',
])('uses the clock of the machine if TIME is answered with %j', async (text) => {
  const { log, send, clock } = bench('caller', [new RedisReplyError(text), new RedisReplyError(text)]);
  await clock.begin(send);
  const off = Number(clock.argument(send)) - Date.now() * 1000;
  expect(Math.abs(off)).toBeLessThan(10 * SECOND);
  await clock.begin(send);
  expect(log).toEqual([expect.stringContaining("weir uses this machine's clock")]);
});

test('continues as before if Redis is only not ready for TIME', async () => {
  const loading = new RedisReplyError('LOADING Redis is loading the dataset in memory');
  const { log, send, clock } = bench('caller', [[1_600_000_000, 0], loading]);
  await clock.begin(send);
  await clock.begin(send);
  expect(clock.argument(send)).toBe('+1600000000000000');
  expect(log).toEqual([]);
});
