import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeAll, expect, test } from '@jest/globals';
import { DenialTable } from '../../../src/storage/denial-table.js';
import { entries, policyOf } from '../../support/policy/policies.js';

const BOUND = 8_000_000;
const POLICY = policyOf(`
domain: d
descriptors:
  - key: tenant
    descriptors:
      - key: group
        rate_limit: { unit: hour, requests_per_unit: 10 }
`);

let collectGarbage: () => void;

beforeAll(() => {
  setFlagsFromString('--expose-gc');
  collectGarbage = runInNewContext('gc') as () => void;
});

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

test.each([
  ['short', ''],
  ['long', 'x'.repeat(60)],
  ['not ASCII', 'ю'.repeat(30)],
])('a table uses no more of the heap than its bound: %s keys', (_, padding) => {
  const before = heapUsed();
  const table = new DenialTable({ maxEntries: 1e9, maxBytes: BOUND, generationMicros: 1 });
  let largest = 0;
  for (let count = 1; count <= 60_000; count++) {
    const {
      keys: [key = ''],
    } = POLICY.match(entries(`tenant=${count}${padding}`, 'group=g'));
    table.set(
      key,
      {
        kind: 'window',
        timeZone: undefined,
        lengthMicros: 3.6e9,
        used: count,
        untilMicros: 1e12 + count / 3,
      },
      0,
    );
    if (count % 20_000 === 0) largest = Math.max(largest, heapUsed() - before);
  }
  expect(table.size).toBeGreaterThan(10_000);
  expect(largest).toBeLessThan(BOUND);
});
