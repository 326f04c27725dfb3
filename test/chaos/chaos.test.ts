/*
 * Runs every fault of Redis, one after another, under two real weirs and callers that never stop, and checks every
 * answer. See docs/internals/testing.md, "Chaos". The long form is `npm run chaos`.
 */
import { expect, test } from '@jest/globals';
import { SUITES } from './all-faults.js';
import { textTable } from './report/table.js';
import { SHORT_SCALE } from './short-scale.js';

/**
 * The seed is fixed, so faults and their order are always the same. `npm run chaos` chooses a new seed for each run.
 */
const seed = 1;
const again = `npm run chaos -- --short --minutes 0 --seed ${seed}`;

for (const suite of SUITES) {
  // Each suite has its own servers and mostly waits, so several run at once. The cluster starts many processes, which
  // delay one another's recovery on two cores, so it runs alone, after the others.
  const run = suite.name === 'cluster' ? test : test.concurrent;
  const runIfPossible = suite.impossible() === undefined ? run : test.skip;
  runIfPossible(
    `whatever becomes of Redis, every answer is right and in time: ${suite.name}`,
    async () => {
      const lines: string[] = [];
      const { rows, wrongs } = await suite.run({
        seed,
        ms: 0,
        scale: SHORT_SCALE,
        say: (line) => lines.push(line),
      });
      process.stdout.write(`\n${textTable(rows)}\n`);
      if (wrongs.length > 0) process.stdout.write(`${lines.join('\n')}\n`);
      expect({ wrongs, again: `${again} --topology ${suite.name}` }).toMatchObject({ wrongs: [] });
    },
    300_000,
  );
}
