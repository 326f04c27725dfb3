import { expect, test } from '@jest/globals';
import { MAX_TIMER_MS } from '../../../../src/limiter/clock.js';
import { readSettings } from '../../../../src/server/settings/read-settings.js';
import { mainRedis } from '../../../../src/server/settings/redis-settings.js';

function startupOf(environment: Record<string, string>) {
  const read = readSettings({ REDIS_URL: 'redis:6379', ...environment });
  if (!read.ok) throw new Error(read.errors.join('\n'));
  return mainRedis(read.settings).startup;
}

test('pauses until Redis was reached are those of the settings, and fit a timer', () => {
  expect(
    startupOf({ REDIS_STARTUP_INITIAL_INTERVAL: '1s', REDIS_STARTUP_MAX_INTERVAL: '30s' }),
  ).toMatchObject({ firstMs: 1000, longestMs: 30_000 });
  // Node.js takes a timer that is too long for one of a millisecond: a Redis that is away would be asked all the time.
  expect(
    startupOf({ REDIS_STARTUP_INITIAL_INTERVAL: '2000000h', REDIS_STARTUP_MAX_INTERVAL: '2000000h' }),
  ).toMatchObject({ firstMs: MAX_TIMER_MS, longestMs: MAX_TIMER_MS });
  expect(startupOf({ REDIS_STARTUP_INITIAL_INTERVAL: '2000000h' })).toMatchObject({
    longestMs: MAX_TIMER_MS,
  });
});
