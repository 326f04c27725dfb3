import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ALL_KEYS, MISPLACED_KEYS, WEIR_KEYS } from '../../../../src/config/read/field-values.js';
import { keysOf } from '../../../../src/config/read/policy-fields.js';
import { repositoryRoot } from '../../../support/process/tools.js';

const page = readFileSync(join(repositoryRoot, 'docs/policy/format.md'), 'utf8');

/** Keys in the table of policy keys, each with the places in the second column. */
const rows = [...page.matchAll(/^\| (`[^|]*) \| ([^|]*) \| /gm)].flatMap(([, keys = '', places = '']) =>
  [...keys.matchAll(/`(\w+)`/g)].map(([, key = '']) => ({ key, places: places.split(', ') })),
);
const keysIn = (place: string): readonly string[] =>
  rows
    .filter(({ places }) => places.includes(place))
    .map(({ key }) => key)
    .sort();

describe("the manual's table of policy keys", () => {
  test('contains every key once', () => {
    const keys = rows.map(({ key }) => key);
    expect([...keys].sort()).toEqual([...ALL_KEYS].sort());
  });

  test.each([
    ['file', keysOf('file')],
    ['node', keysOf('descriptor')],
    ['`rate_limit`', keysOf('rate_limit')],
    // Items may have the keys of a `rate_limit`. The table lists only their additional keys.
    [
      'item of `rate_limits`',
      keysOf('rate_limits_item').filter((key) => !keysOf('rate_limit').includes(key)),
    ],
  ])('lists the keys of %s', (place, keys) => {
    expect(keysIn(place)).toEqual([...keys].sort());
  });
});

describe('the page of all keys', () => {
  const reference = readFileSync(join(repositoryRoot, 'docs/reference/policy-keys.md'), 'utf8');
  /** `key in place` for every row and each of its places. */
  const told = [...reference.matchAll(/^\| `(\w+)` \| ([^|]*) \| /gm)].flatMap(([, key = '', places = '']) =>
    places.split(', ').map((place) => `${key} in ${place}`),
  );

  test.each([
    ['top of the file', 'file'],
    ['descriptor', 'descriptor'],
    ['`rate_limit`', 'rate_limit'],
    ['item of `rate_limits`', 'rate_limits_item'],
    ['`token_bucket`', 'token_bucket'],
    ['`concurrency`', 'concurrency'],
    ['`hold`', 'hold'],
    ['`priorities`', 'priorities'],
    ['`lease`', 'lease'],
    ['item of `replaces`', 'replaced_rule'],
    ['`denied_response`', 'denied_response'],
    ['`phase`', 'phase_schedule'],
    ['`on_store_failure`', 'local_share'],
    ['item of `derive`', 'derive_item'],
    ['item of `rules`', 'derive_rule'],
  ] as const)('has a description for each key in %s', (place, mapping) => {
    const expected = keysOf(mapping).map((key) => `${key} in ${place}`);
    expect(told.filter((one) => one.endsWith(` in ${place}`)).sort()).toEqual([...expected].sort());
  });
});

test('each key has the correct place if it was written elsewhere', () => {
  expect([...MISPLACED_KEYS.keys(), ...WEIR_KEYS.keys()].sort()).toEqual([...ALL_KEYS].sort());
});
