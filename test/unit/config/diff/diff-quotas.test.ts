/** Quotas deny only together, so no change of a quota is compared: each change counts as tightening. */
import { expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;
const LIMIT = 'unit: minute, requests_per_unit: 10';
const HIGHER = 'unit: minute, requests_per_unit: 20';
const NOT_COMPARED = 'the effect of limits on each other is not compared';

const nodes = (descriptors: string) => setOf(`domain: d\ndescriptors: [${descriptors}]\n`);
const changesOf = (before: string, after: string): readonly string[] =>
  diffPolicies(nodes(before), nodes(after), NOW).map(
    ({ tightens, text }) => `${tightens ? 'tightens' : 'not'}: ${text}`,
  );

const quota = (more = '', limit = LIMIT): string =>
  `{ key: a, quota_mode: true, ${more} rate_limit: { ${limit} } }`;

test.each([
  ['a higher limit', quota(), quota('', HIGHER), '10 per minute becomes 20 per minute; more hits per window'],
  ['a phase that cannot deny', quota(), quota('phase: monitoring,'), 'phase: active becomes monitoring'],
  [
    'a phase that ends later',
    quota(),
    quota('phase: { active: 2026-06-01T00:00:00Z },'),
    'phase: active becomes monitoring (active from 2026-06-01T00:00:00.000Z)',
  ],
  [
    'no limit',
    quota(),
    quota('', 'unlimited: true'),
    '10 per minute becomes unlimited; there is no longer a limit',
  ],
  [
    'shadow mode that ends before its phase',
    quota('shadow_mode: true, phase: monitoring,'),
    quota('phase: monitoring,'),
    'shadow_mode: on becomes off',
  ],
  [
    'another limit that is never enforced',
    quota('enforce_percent: 0,'),
    quota('enforce_percent: 0,', HIGHER),
    '10 per minute becomes 20 per minute; the rule never denies',
  ],
  [
    'the end of the quota',
    quota('shadow_mode: true,'),
    quota('shadow_mode: true,').replace('quota_mode: true, ', ''),
    'quota_mode: on becomes off',
  ],
])('a quota with %s tightens', (_, before, after, text) => {
  expect(changesOf(before, after)).toEqual([`tightens: ${text}; ${NOT_COMPARED}`]);
});

test('a rule that begins to replace a quota tightens', () => {
  const rules = (replaces: string): string =>
    `${quota('', `${LIMIT}, name: own`)}, { key: c, rate_limit: { unlimited: true, ${replaces} } }`;
  const replaces = 'replaces: [{ name: own }]';
  expect(changesOf(rules(''), rules(replaces))).toEqual([
    `tightens: replaces: none becomes "own"; ${NOT_COMPARED}`,
  ]);
  // Without the quota, other quotas may deny.
  expect(
    changesOf(quota('', `${LIMIT}, name: own`), rules(replaces)).map((text) => text.split(':')[0]),
  ).toEqual(['tightens']);
});

test('other settings of a quota are compared', () => {
  expect(changesOf(quota(), quota('metadata: { team: a },'))).toEqual(['not: metadata is set']);
});
