import { expect, test } from '@jest/globals';
import { concurrencyRate } from '../../../src/limiter/holds/concurrency.js';
import { memoryStore } from '../../../src/server/store/store.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { holdItem } from '../../support/limiter/hold-items.js';
import { settingsOf } from '../../support/weir/settings.js';

test('a hold without memory is logged, with what to do, and not for each request', () => {
  const lines: unknown[] = [];
  const settings = { ...settingsOf({}), memoryMaxBytes: 1 };
  const store = memoryStore(settings, new FakeClock(), { warn: (line: unknown) => lines.push(line) });
  for (let i = 0; i < 3; i++) store.take([holdItem('a', concurrencyRate(10))]);
  expect(lines).toEqual([
    'the memory for holds is full, so weir denies requests of limits with concurrency or hold. Raise ' +
      'MEMORY_MAX_BYTES, or lower expires_after of these limits; see docs/runbooks.md#weirmemoryholdsrefused',
  ]);
  expect(store.refusedHolds).toBe(3);
});
