import { describe, expect, test } from '@jest/globals';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { cases } from '../../../support/assert/cases.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;
const policy = (nodes: string) => setOf(`domain: d\ndescriptors: [${nodes}]\n`);
const diff = (before: string, after: string) => diffPolicies(policy(before), policy(after), NOW);
const limited = (limit: string): string => `{ key: k, rate_limit: { ${limit} } }`;
const changes = (before: string, after: string): readonly string[] =>
  diff(before, after).map(({ effect, text }) => `${effect}: ${text}`);

const TEN = 'unit: minute, requests_per_unit: 10';
const held = (hold: string): string => `${TEN}, hold: { ${hold} }`;
const HELD = '10 per minute, debt up to 10, holds';

describe('a change of holds', () => {
  test.each(cases`
    concurrency: { max: 5 }
      concurrency: { max: 4 }
      tightens: concurrency: 5 requests, expires after 1m becomes concurrency: 4 requests, expires after 1m; fewer
        concurrent requests
    concurrency: { max: 4 }
      concurrency: { max: 5, retry_after: 2s }
      loosens: concurrency: 4 requests, expires after 1m becomes concurrency: 5 requests, expires after 1m, retry
        after 2s; more concurrent requests
    concurrency: { max: 5 }
      concurrency: { max: 5, retry_after: 2s }
      changes: concurrency: 5 requests, expires after 1m becomes concurrency: 5 requests, expires after 1m, retry
        after 2s
    unlimited: true
      ${held('amount: 2')}
      tightens: unlimited becomes ${HELD} 2 hits, expires after 10m; there was no limit
    ${held('amount: 2')}
      unit: minute, requests_per_unit: 0
      tightens: ${HELD} 2 hits, expires after 10m becomes 0 per minute; every request is now denied
    ${held('amount: 2')}, max_debt: 3
      ${`${held('amount: 2')}, max_debt: 3`.replace('10,', '20,')}
      loosens: 10 per minute, debt up to 3, holds 2 hits, expires after 10m becomes 20 per minute, debt up to 3,
        holds 2 hits, expires after 10m; more hits per window
  `)('from %s to %s', (before, after, expected) => {
    expect(changes(limited(before), limited(after))).toEqual([expected]);
  });

  test.each([
    ['concurrency: { max: 5 }', 'concurrency: { max: 5, expires_after: 90s }'],
    [TEN, 'concurrency: { max: 5 }'],
    [TEN, held('amount: 2')],
    [held('amount: 2'), held('amount: 2, pair: oldest')],
    [TEN, held('from: first_call')],
    [held('amount: 2'), held('amount: 3')],
    [held('amount: 3'), held('amount: 3, expires_after: 5m')],
    [held('amount: 3, unknown: free'), held('amount: 3')],
    [held('amount: 3'), `${held('amount: 3')}, max_debt: 0`],
    [`${TEN}, allow_debt: true`, held('from: first_call')],
  ])('cannot be compared, so %s and %s each tighten the other', (one, other) => {
    const text = /^tightens: .*; the two limits cannot be compared$/;
    expect(changes(limited(one), limited(other))).toEqual([expect.stringMatching(text)]);
    expect(changes(limited(other), limited(one))).toEqual([expect.stringMatching(text)]);
  });

  test('has no effect if only the spelling differs', () => {
    const [one, other] = ['concurrency: { max: 5 }', 'concurrency: { max: 5, expires_after: 60000ms }'];
    expect(changes(limited(one), limited(other))).toEqual([]);
    expect(
      changes(limited(held('amount: 2')), limited(`${held('amount: 2, unknown: keep')}, max_debt: 10`)),
    ).toEqual([]);
  });
});

/** Quotas deny only together, so no change of a quota is compared: each change counts as tightening. */
describe('a quota', () => {
  const HIGHER = 'unit: minute, requests_per_unit: 20';
  const NOT_COMPARED = 'the effect of limits on each other is not compared';

  const changesOf = (before: string, after: string): readonly string[] =>
    diff(before, after).map(({ tightens, text }) => `${tightens ? 'tightens' : 'not'}: ${text}`);

  const quota = (more = '', limit = TEN): string =>
    `{ key: a, quota_mode: true, ${more} rate_limit: { ${limit} } }`;

  test.each(cases`
    a higher limit
      ${quota()}
      ${quota('', HIGHER)}
      10 per minute becomes 20 per minute; more hits per window
    a phase that cannot deny
      ${quota()}
      ${quota('phase: monitoring,')}
      phase: active becomes monitoring
    a phase that ends later
      ${quota()}
      ${quota('phase: { active: 2026-06-01T00:00:00Z },')}
      phase: active becomes monitoring (active from 2026-06-01T00:00:00.000Z)
    no limit
      ${quota()}
      ${quota('', 'unlimited: true')}
      10 per minute becomes unlimited; there is no longer a limit
    shadow mode that ends before its phase
      ${quota('shadow_mode: true, phase: monitoring,')}
      ${quota('phase: monitoring,')}
      shadow_mode: on becomes off
    another limit that is never enforced
      ${quota('enforce_percent: 0,')}
      ${quota('enforce_percent: 0,', HIGHER)}
      10 per minute becomes 20 per minute; the rule never denies
    the end of the quota
      ${quota('shadow_mode: true,')}
      ${quota('shadow_mode: true,').replace('quota_mode: true, ', '')}
      quota_mode: on becomes off
  `)('a quota with %s tightens', (_, before, after, text) => {
    expect(changesOf(before, after)).toEqual([`tightens: ${text}; ${NOT_COMPARED}`]);
  });

  test('a rule that begins to replace a quota tightens', () => {
    const rules = (replaces: string): string =>
      `${quota('', `${TEN}, name: own`)}, { key: c, rate_limit: { unlimited: true, ${replaces} } }`;
    const replaces = 'replaces: [{ name: own }]';
    expect(changesOf(rules(''), rules(replaces))).toEqual([
      `tightens: replaces: none becomes "own"; ${NOT_COMPARED}`,
    ]);
    // Without the quota, other quotas may deny.
    expect(
      changesOf(quota('', `${TEN}, name: own`), rules(replaces)).map((text) => text.split(':')[0]),
    ).toEqual(['tightens']);
  });

  test('other settings of a quota are compared', () => {
    expect(changesOf(quota(), quota('metadata: { team: a },'))).toEqual(['not: metadata is set']);
  });
});

/** Chains of limits (`then`): a limit that pays lets more requests pass, and the last limit decides for the chain. */
describe('a chain', () => {
  const limit = (name: string, requests: number, more = '') =>
    `{ name: ${name}, unit: day, requests_per_unit: ${requests}${more} }`;
  const plan = (more = '', requests = 1000) => limit('plan', requests, more);
  const spilling = (requests = 1000, to = 'credits') => plan(`, then: ${to}`, requests);
  const credits = (more = '', requests = 10) => limit('credits', requests, more);
  const BOUGHT = limit('bought', 10);

  const list = (limits: readonly string[]) => `rate_limits: [${limits.join(', ')}]`;

  /** Returns the changes of a list of limits. */
  function changesOf(before: readonly string[], after: readonly string[]): readonly string[] {
    return diff(`{ key: k, ${list(before)} }`, `{ key: k, ${list(after)} }`).map(
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
      return diff(`{ key: k, value: a, ${list(from)} }, ${rest}`, rest).some((change) => change.tightens);
    };
    expect(tightens([spilling(), credits()], [credits()])).toBe(true);
    expect(tightens([spilling(), credits()], [spilling(), credits()])).toBe(true);
  });
});

/** Limits that callers send (`limit` of a descriptor) use the phase of the node where the descriptor ends. */
describe('the phase of limits in requests', () => {
  const LIMIT = 'rate_limit: { unit: minute, requests_per_unit: 10 }';
  const CHILD = `descriptors: [{ key: below, phase: active, ${LIMIT} }]`;

  const linesOf = (before: string, after: string): readonly string[] =>
    diff(before, after).map(
      ({ path, effect, tightens, text }) => `${path}: ${effect}${tightens ? ' !' : ''}: ${text}`,
    );

  const LIST = 'rate_limits: [{ unit: day, requests_per_unit: 1, phase: active }]';

  test.each(cases`
    of a node without limits
      { key: a, phase: monitoring, ${CHILD} }
      { key: a, ${CHILD} }
      a: tightens !: phase: monitoring becomes active; applies only to limits in requests
    of a list whose limits have their own
      { key: a, phase: active, ${LIST} }
      { key: a, phase: monitoring, ${LIST} }
      a: loosens: phase: active becomes monitoring; applies only to limits in requests
    of a node without limits that is new
      ${''}
      { key: a, phase: monitoring }
      a: appears: no limit; previously no limit
    of a node without limits that is removed
      { key: a, phase: monitoring }
      ${''}
      a: vanishes !: no limit; now no limit; phase: monitoring becomes active; applies only to limits in requests
  `)('the phase %s', (_, before, after, line) => {
    expect(linesOf(before, after)).toEqual([line]);
  });

  test("an effect on a node's limits, or on the node above, is reported only once", () => {
    const of = (phase: string): string =>
      `{ key: a, phase: ${phase}, ${LIMIT}, descriptors: [{ key: b, descriptors: [{ key: c, ${LIMIT} }] }] }`;
    const text = 'loosens: phase: active becomes monitoring';
    expect(linesOf(of('active'), of('monitoring'))).toEqual([`a: ${text}`, `a/b/c: ${text}`]);
  });

  test("an effect is reported if the node's limit never denies", () => {
    const of = (settings: string): string => `{ key: a, ${settings}, ${LIMIT} }`;
    expect(
      linesOf(of('phase: monitoring, enforce_percent: 0'), of('phase: active, enforce_percent: 0')),
    ).toEqual([
      'a: changes: phase: monitoring becomes active',
      'a: tightens !: phase: monitoring becomes active; applies only to limits in requests',
    ]);
  });
});
