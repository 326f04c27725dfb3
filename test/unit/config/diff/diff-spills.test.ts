/** A limit that pays for another one (`then`) only lets more requests pass, unless the other one never denied. */
import { expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;
const RATE = 'unit: day, requests_per_unit: 10';
const plan = (more = '') => `{ name: plan, ${RATE}${more} }`;
const CREDITS = `{ name: credits, ${RATE} }`;
const SPILLING_CREDITS = `{ name: credits, ${RATE}, then: bought }`;
const BOUGHT = `{ name: bought, ${RATE} }`;

const changesOf = (before: readonly string[], after: readonly string[]): readonly string[] => {
  const [old, now] = [before, after].map((limits) =>
    setOf(`domain: d\ndescriptors: [{ key: k, rate_limits: [${limits.join(', ')}] }]\n`),
  );
  return diffPolicies(old as ReturnType<typeof setOf>, now as ReturnType<typeof setOf>, NOW).map(
    ({ path, tightens, text }) => `${path.slice(2, -1)} ${tightens ? 'tightens' : 'not'}: ${text}`,
  );
};

const PAYS = '10 per day; it only pays for requests that would be denied';

test('a new limit that pays for a limit that denies does not tighten', () => {
  expect(changesOf([plan()], [plan(', then: credits'), CREDITS])).toEqual([
    'plan not: then: unset becomes "credits"',
    `credits not: ${PAYS}`,
  ]);
  expect(changesOf([plan()], [plan(', then: credits'), SPILLING_CREDITS, BOUGHT])).toEqual([
    'plan not: then: unset becomes "credits"',
    `credits not: ${PAYS}`,
    `bought not: ${PAYS}`,
  ]);
});

test('a new chain, and one whose first limit did not deny, tightens', () => {
  expect(changesOf([CREDITS], [CREDITS, plan(', then: bought'), BOUGHT])).toContainEqual(
    expect.stringMatching(/^bought tightens/),
  );
  expect(changesOf([plan(', phase: monitoring')], [plan(', then: credits'), CREDITS])).toContainEqual(
    expect.stringMatching(/^credits tightens/),
  );
});

test('a limit that no longer pays tightens', () => {
  expect(changesOf([plan(', then: credits'), CREDITS], [plan()])).toContainEqual(
    'plan tightens: then: "credits" becomes unset',
  );
});
