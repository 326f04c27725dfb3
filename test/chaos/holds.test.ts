/*
 * Sends many concurrent requests to a concurrency limit for some seconds, with the same choices in every run. See
 * docs/internals/holds.md, "Tests". `npm run holds` runs longer.
 */
import { expect, test } from '@jest/globals';
import { holdLoad } from './holds/hold-load.js';

test.each([
  ['use all of it', false],
  ['free the slots of killed processes in time', true],
])(
  'two Envoys and three weir servers never exceed a limit on concurrent requests, and %s',
  async (_, kills) => {
    const seed = 1;
    const lines: string[] = [];
    const failures = await holdLoad({ ms: 3000, seed, kills, print: (line) => lines.push(line) });
    process.stdout.write(`\n${lines.join('\n')}\n`);
    const again = `npm run holds -- --minutes 0.05 --seed ${seed}${kills ? ' --kills' : ''}`;
    expect({ failures, again }).toMatchObject({ failures: [] });
  },
);
