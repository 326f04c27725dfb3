/** Chains of limits (`then`): a limit that pays lets more requests pass, and the last limit decides for the chain. */
import { expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;

const limit = (name: string, requests: number, more = '') =>
  `{ name: ${name}, unit: day, requests_per_unit: ${requests}${more} }`;
const plan = (more = '', requests = 1000) => limit('plan', requests, more);
const spilling = (requests = 1000, to = 'credits') => plan(`, then: ${to}`, requests);
const credits = (more = '', requests = 10) => limit('credits', requests, more);
const BOUGHT = limit('bought', 10);

const policy = (nodes: string) => setOf(`domain: d\ndescriptors: [${nodes}]\n`);
const list = (limits: readonly string[]) => `rate_limits: [${limits.join(', ')}]`;

/** Returns the changes of a list of limits. */
function changesOf(before: readonly string[], after: readonly string[]): readonly string[] {
  const [old, now] = [before, after].map((limits) => policy(`{ key: k, ${list(limits)} }`));
  return diffPolicies(old as ReturnType<typeof policy>, now as ReturnType<typeof policy>, NOW).map(
    ({ path, tightens, text }) => `${path.slice(2, -1)} ${tightens ? 'tightens' : 'not'}: ${text}`,
  );
}

test('a changed chain tightens, because chains are not compared', () => {
  expect(changesOf([plan()], [spilling(), credits()])).toEqual([
    'plan tightens: then: none becomes "credits"; the effect of limits on each other is not compared',
    'credits tightens: 10 per day',
  ]);
  expect(changesOf([spilling(), credits()], [spilling(), credits('', 20)])).toEqual([
    'credits not: 10 per day becomes 20 per day; more hits per window',
  ]);
});

test('a new chain tightens', () => {
  const changes = changesOf([BOUGHT], [BOUGHT, spilling(), credits()]);
  expect(changes.filter((change) => / tightens: /.test(change))).not.toEqual([]);
});

test.each<readonly [what: string, before: readonly string[], after: readonly string[]]>([
  ['a smaller plan, next to new credits', [plan()], [spilling(1), credits()]],
  ['a smaller plan in a chain', [spilling(), credits()], [spilling(1), credits()]],
  ['smaller credits', [spilling(), credits('', 20)], [spilling(), credits()]],
  ['more percent', [plan(', enforce_percent: 10')], [spilling(), credits()]],
  ['an earlier phase', [plan(', phase: { active: 2099-01-01T00:00:00Z }')], [spilling(), credits()]],
  ['a phase that denies', [plan(', phase: monitoring')], [spilling(), credits()]],
  ['a stricter failure policy', [plan()], [spilling(), credits(', on_store_failure: deny')]],
  ['no plan', [spilling(), credits()], [credits()]],
  ['no credits', [spilling(), credits()], [plan()]],
  [
    'no limit in the middle',
    [spilling(), credits(', then: bought'), BOUGHT],
    [spilling(1000, 'bought'), BOUGHT],
  ],
  ['separate limits', [spilling(), credits()], [plan(), credits()]],
])('%s tightens', (_what, before, after) => {
  const changes = changesOf(before, after);
  expect(changes.filter((change) => / tightens: /.test(change))).not.toEqual([]);
});

test('removing a chain tightens, whatever its values meet now', () => {
  const tightens = (from: readonly string[], to: readonly string[]): boolean => {
    const rest = `{ key: k, ${list(to)} }`;
    const before = policy(`{ key: k, value: a, ${list(from)} }, ${rest}`);
    return diffPolicies(before, policy(rest), NOW).some((change) => change.tightens);
  };
  expect(tightens([spilling(), credits()], [credits()])).toBe(true);
  expect(tightens([spilling(), credits()], [spilling(), credits()])).toBe(true);
});
