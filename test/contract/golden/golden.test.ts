/*
 * Checks that output to callers, Redis and operators stays the same, byte for byte. `npm run docs -- --check` covers
 * `--help`, and the names of metrics and settings.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { everyKeyPolicy, GOLDEN_NAMES, goldenText, makeGolden } from '../../support/golden/golden.js';
import { repositoryRoot } from '../../support/process/tools.js';

test.each(GOLDEN_NAMES)(
  '%s is as it was; if it is meant to change, run npm run docs:golden',
  async (name) => {
    expect(await makeGolden(name)).toBe(goldenText(name));
  },
);

test('every-key.yaml has every key of policy files', () => {
  const schema = readFileSync(join(repositoryRoot, 'deploy/policy.schema.json'), 'utf8');
  const keys = new Set<string>();
  JSON.parse(schema, (name, value: unknown) => {
    if (name === 'properties') for (const key of Object.keys(value as object)) keys.add(key);
    return value;
  });
  const policy = everyKeyPolicy();
  expect(keys.size).toBeGreaterThan(40);
  expect(
    [...keys].filter((key) => !new RegExp(`\\b${key}: `).test(policy.replaceAll(':\n', ': \n'))),
  ).toEqual([]);
});
