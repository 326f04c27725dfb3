/*
 * Checks that no request delays others. While an attacker sends each kind of legal input, one innocent caller sends 200
 * requests a second, and the test monitors weir's event loop from inside. Only this tier measures time: see
 * docs/internals/testing.md. The table is printed at the end.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { STALL_GROUPS } from './all-groups.js';
import { yardstickMs } from './calibration.js';
import { GroupRun } from './group-run.js';
import { readRecorded } from './recorded.js';
import { type Row, textTable } from './table.js';
import { SHORT_MS } from './test-attack-ms.js';

const rows: Row[] = [];
const yardstick = yardstickMs();
const recorded = readRecorded();

afterAll(() => {
  process.stdout.write(`\n${textTable(rows)}\n`);
});

describe.each(STALL_GROUPS.map((group) => [group.setup.name, group] as const))('%s', (_name, group) => {
  let run: GroupRun;
  beforeAll(() => {
    run = new GroupRun(group, { ms: SHORT_MS, recorded, yardstick });
  });
  afterAll(() => run.close());

  const all = group.cases.flatMap((one) =>
    (one.connections ?? [1, 16]).map((connections) => [one.name, connections, one] as const),
  );
  test.each(all)(
    '%s, connections: %d',
    async (_case, connections, one) => {
      const row = await run.run(one, connections);
      rows.push(row);
      expect(row.faults).toEqual([]);
    },
    180_000,
  );
});
