/*
 * Checks that weir answers every caller while attackers send each kind of expensive input. An innocent caller sends 500
 * requests per second at the same time. The tests print its latencies and the delays of weir's event loop, but do not
 * fail because of them: `npm run stall` does (docs/internals/testing.md).
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { STALL_GROUPS } from './all-groups.js';
import { GroupRun } from './group-run.js';
import { type Row, textTable } from './table.js';

/** Duration of each attack: long enough for several of the most expensive requests. */
const ATTACK_MS = 300;

const rows: Row[] = [];

afterAll(() => {
  process.stdout.write(`\n${textTable(rows)}\n`);
});

describe.each(STALL_GROUPS.map((group) => [group.setup.name, group] as const))('%s', (_name, group) => {
  let run: GroupRun;
  beforeAll(async () => {
    run = new GroupRun(group, { ms: ATTACK_MS, judgesDelays: false });
    await run.start();
  });

  test.each(group.cases.map((one) => [one.name, one] as const))(
    '%s',
    async (_case, one) => {
      const row = await run.run(one);
      rows.push(row);
      expect(row.failures).toEqual([]);
    },
    180_000,
  );
});
