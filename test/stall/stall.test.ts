/*
 * Checks that no request delays other callers. While an attacker sends each kind of valid input, one innocent caller
 * sends 200 requests per second, and the test monitors weir's event loop from inside. At the end, the test prints a
 * table. Only this tier fails because of measured times: see docs/internals/testing.md.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { STALL_GROUPS } from './all-groups.js';
import { calibrationMs } from './calibration.js';
import { GroupRun } from './group-run.js';
import { readRecorded } from './recorded.js';
import { type Row, textTable } from './table.js';
import { TEST_ATTACK_MS } from './test-attack-ms.js';

const rows: Row[] = [];
const calibration = calibrationMs();
const recorded = readRecorded();

afterAll(() => {
  process.stdout.write(`\n${textTable(rows)}\n`);
});

describe.each(STALL_GROUPS.map((group) => [group.setup.name, group] as const))('%s', (_name, group) => {
  let run: GroupRun;
  beforeAll(() => {
    run = new GroupRun(group, { ms: TEST_ATTACK_MS, recorded, calibration });
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
      expect(row.failures).toEqual([]);
    },
    180_000,
  );
});
