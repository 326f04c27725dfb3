/*
 * The soak of docs/internals/testing.md, "Chaos", for some seconds and under little load, with the same faults in every
 * run. `npm run soak` chooses a new seed for each run.
 */
import { expect, test } from '@jest/globals';
import { soak } from './soak/soak.js';

test('memory, open files and event loop delay remain stable under load and faults', async () => {
  const seed = 1;
  const failures = await soak({ ms: 3000, seed, rate: 1000, print: () => {} });
  expect({ failures, again: `npm run soak -- --minutes 0.05 --rate 1000 --seed ${seed}` }).toMatchObject({
    failures: [],
  });
});
