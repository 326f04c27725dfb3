/*
 * Redis goes wrong in every way there is, one after the other, under two real weirs and callers that never stop; every
 * answer is looked at. See docs/internals/testing.md, "Chaos". The long form is `npm run chaos`.
 */
import { expect, test } from '@jest/globals';
import { SUITES } from './all-faults.js';
import { textTable } from './report/table.js';
import { SHORT_SCALE } from './short-form.js';

/** Always the same faults in the same order. `npm run chaos` chooses a new seed for each run. */
const seed = 1;
const again = `npm run chaos -- --short --minutes 0 --seed ${seed}`;

for (const suite of SUITES) {
  // Each suite has servers of its own and waits for most of its time.
  const doIt = suite.impossible() === undefined ? test.concurrent : test.skip;
  doIt(
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
