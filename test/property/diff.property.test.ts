import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { diffPolicies } from '../../src/config/diff/diff-policies.js';
import type { Entry } from '../../src/limiter/entry.js';
import type { CompiledPolicy } from '../../src/policy/compiled-policy.js';
import type { Rule } from '../../src/policy/rule.js';
import { expectEqual, expectSame } from '../support/assert/quick-expect.js';
import { runs } from '../support/assert/runs.js';
import { parse } from '../support/policy/policies.js';

const NOW = 1_700_000_000_000_000;

/** Nodes whose matches overlap in all ways. */
const matchers = fc.constantFrom<Record<string, unknown>>(
  {},
  { value: '10.0.0.1' },
  { value: '10.1.0.1' },
  { value: '10.*' },
  { value: '*.1' },
  { value: '*' },
  { value_cidr: '10.0.0.0/8' },
  { value_cidr: ['10.0.0.0/16', '192.168.0.0/16'] },
  { value_cidr: ['10.0.0.0/16', '10.1.0.0/16'] },
  { value_regex: '10[.].*' },
  { value_regex: ['.*1', 'x'] },
);
const limit = fc.constantFrom<Record<string, unknown>>(
  { unit: 'day', requests_per_unit: 0 },
  { unit: 'day', requests_per_unit: 1 },
  { unit: 'day', requests_per_unit: 5 },
  { unlimited: true },
);
const limits = fc.oneof(
  { weight: 4, arbitrary: limit.map((one) => ({ rate_limit: one })) },
  { weight: 2, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 5 })).map((numbers) => ({
      rate_limits: numbers.map((number) => ({ unit: 'day', requests_per_unit: number })),
    })),
  },
);
const phase = fc.constantFrom<Record<string, unknown>>(
  {},
  {},
  {},
  { phase: 'monitoring' },
  { shadow_mode: true },
);
const node = (depth: number): fc.Arbitrary<Record<string, unknown>> =>
  fc
    .tuple(
      fc.constantFrom('k', 'k', 'l'),
      matchers,
      limits,
      phase,
      depth === 0 ? fc.constant([]) : fc.array(node(depth - 1), { maxLength: 3 }),
    )
    .map(([key, matcher, rules, when, descriptors]) => ({ key, ...matcher, ...rules, ...when, descriptors }));
const nodes = fc.array(node(1), { maxLength: 5 });
/** Two similar policies. */
const pair = fc.tuple(nodes, nodes, nodes, fc.boolean()).map(([common, before, after, turned]) => {
  return [
    [...common, ...before],
    turned ? [...after, ...[...common].reverse()] : [...common, ...after],
  ] as const;
});

const VALUES = ['10.0.0.1', '10.1.0.1', '10.9.0.2', '192.168.0.1', '10.x', 'x', 'y1', ''];
const descriptors: readonly (readonly Entry[])[] = ['k', 'l'].flatMap((key) =>
  VALUES.flatMap((value) => [
    [{ key, value }],
    ...['k', 'l'].flatMap((below) =>
      VALUES.map((inner) => [
        { key, value },
        { key: below, value: inner },
      ]),
    ),
  ]),
);

/** Returns the number of requests that are allowed in a day. */
function passing(policy: CompiledPolicy, entries: readonly Entry[]): number {
  const most = ({ rate, shadowMode, phase: { activeAtMicros } }: Rule): number =>
    rate?.kind !== 'window' || shadowMode || activeAtMicros > NOW ? Infinity : rate.requestsPerUnit;
  return Math.min(Infinity, ...policy.match(entries).rules.map(most));
}

const policyOf = (descriptorList: readonly unknown[]): CompiledPolicy | undefined =>
  parse(stringify({ domain: 'd', descriptors: descriptorList }, { aliasDuplicateObjects: false })).policy;

test('diff reports a tighter limit if fewer requests are allowed, and not only these if more are', () => {
  let compared = 0;
  fc.assert(
    fc.property(pair, ([first, second]) => {
      const [before, after] = [policyOf(first), policyOf(second)];
      if (before === undefined || after === undefined) return;
      compared += 1;
      const sets = [before, after].map((policy) => ({ domains: new Map([['d', policy]]), version: '' }));
      const changes = diffPolicies(sets[0]!, sets[1]!, NOW);
      const back = diffPolicies(sets[1]!, sets[0]!, NOW);
      const counts = descriptors.map(
        (entries) => [passing(before, entries), passing(after, entries)] as const,
      );
      if (counts.some(([was, is]) => is < was))
        expectSame(
          changes.some(({ tightens }) => tightens),
          true,
        );
      if (counts.some(([was, is]) => is > was))
        expectSame(
          back.some(({ tightens }) => tightens),
          true,
        );
      expectEqual(diffPolicies(sets[0]!, sets[0]!, NOW), []);
    }),
    runs(1500),
  );
  expect(compared).toBeGreaterThan(65);
});
