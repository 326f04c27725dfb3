import { PerformanceObserver } from 'node:perf_hooks';
import { expect, test } from '@jest/globals';
import { MinorCollector } from '../../../../src/config/threads/load-thread.js';
import { waitFor } from '../../../support/process/wait-for.js';

test('V8 collects young objects on request, with this Node.js', async () => {
  const kinds: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      kinds.push((entry as unknown as { detail: { kind: number } }).detail.kind);
  });
  observer.observe({ entryTypes: ['gc'] });
  const garbage = new MinorCollector();
  expect(garbage.works).toBe(true);
  for (let slice = 0; slice < 40; slice++) garbage.slice();
  // 1 is perf_hooks.constants.NODE_PERFORMANCE_GC_MINOR.
  await waitFor('ten collections', () => kinds.filter((kind) => kind === 1).length >= 10 || undefined);
  observer.disconnect();
});
