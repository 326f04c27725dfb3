/** Quotas deny only together, so a change that removes one from a request lets the others deny. */
import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;
const LIMIT = 'unit: minute, requests_per_unit: 10';

const nodes = (descriptors: string) => setOf(`domain: d\ndescriptors: [${descriptors}]\n`);

/** Returns the changes of `a`, without and with another quota next to it. */
function changesOf(before: string, after: string): readonly string[] {
  return ['', `, { key: b, quota_mode: true, rate_limit: { ${LIMIT} } }`].map((other) =>
    diffPolicies(nodes(before + other), nodes(after + other), NOW)
      .map(({ tightens, text }) => `${tightens ? 'tightens' : 'not'}: ${text}`)
      .join('; '),
  );
}

const quota = (more = '', limit = LIMIT): string =>
  `{ key: a, quota_mode: true, ${more} rate_limit: { ${limit} } }`;

describe('a quota that no longer suppresses other quotas tightens', () => {
  test.each([
    ['in a phase that cannot deny', quota(), quota('phase: monitoring,'), 'phase: active becomes monitoring'],
    [
      'in a phase that ends later',
      quota(),
      quota('phase: { active: 2026-06-01T00:00:00Z },'),
      'phase: active becomes monitoring (active from 2026-06-01T00:00:00.000Z)',
    ],
    [
      'without a limit',
      quota(),
      quota('', 'unlimited: true'),
      '10 per minute becomes unlimited; there is no longer a limit',
    ],
    [
      'no longer in shadow mode, before its phase',
      quota('shadow_mode: true, phase: monitoring,'),
      quota('phase: monitoring,'),
      'shadow_mode: on becomes off',
    ],
    [
      'in shadow mode, without a limit',
      quota('shadow_mode: true,'),
      quota('shadow_mode: true,', 'unlimited: true'),
      '10 per minute becomes unlimited; the rule never denies',
    ],
  ])('%s', (_, before, after, text) => {
    expect(changesOf(before, after)).toEqual([
      `not: ${text}`,
      `tightens: ${text}; other limits may now deny more`,
    ]);
  });

  test('replaced by another rule', () => {
    const rules = (replaces: string): string =>
      `${quota('', `${LIMIT}, name: own`)}, { key: c, rate_limit: { unlimited: true, ${replaces} } }`;
    expect(changesOf(rules(''), rules('replaces: [{ name: own }]'))[1]).toBe(
      'tightens: replaces: none becomes "own"',
    );
  });
});

test('the limit of a quota that is never enforced counts next to other quotas', () => {
  const of = (limit: string): string => quota('enforce_percent: 0,', limit);
  const lower = 'unit: minute, requests_per_unit: 5';
  const text = '10 per minute becomes 5 per minute; ';
  expect(changesOf(of(LIMIT), of(lower))).toEqual([
    `not: ${text}the rule never denies`,
    `tightens: ${text}the rule never denies; other limits may now deny more`,
  ]);
});
