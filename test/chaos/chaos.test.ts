/*
 * Causes every Redis fault while callers send requests to two weir servers, and checks every answer. See
 * docs/internals/testing.md, "Chaos". `npm run chaos` runs longer.
 */
import { expect, test } from '@jest/globals';
import { textTable } from './report/table.js';
import { SHORT_SCALE } from './short-scale.js';
import { SUITES } from './suites.js';

/**
 * The seed is fixed, so faults and their order are always the same. `npm run chaos` chooses a new seed for each run.
 */
const seed = 1;
const again = `npm run chaos -- --short --minutes 0 --seed ${seed}`;

for (const suite of SUITES) {
  // Each suite has its own servers and mostly waits, so they run at once.
  const runIfPossible = suite.impossible() === undefined ? test.concurrent : test.skip;
  runIfPossible(
    `every answer is correct and in time during Redis faults: ${suite.name}`,
    async () => {
      const lines: string[] = [];
      const { rows, failures } = await suite.run({
        seed,
        ms: 0,
        scale: SHORT_SCALE,
        print: (line) => lines.push(line),
      });
      process.stdout.write(`\n${textTable(rows)}\n`);
      if (failures.length > 0) process.stdout.write(`${lines.join('\n')}\n`);
      expect({ failures, again: `${again} --topology ${suite.name}` }).toMatchObject({ failures: [] });
    },
    300_000,
  );
}
