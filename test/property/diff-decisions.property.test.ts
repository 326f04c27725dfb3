/* If `weir diff` says that no change tightens, no request that the old policy allows is denied by the new one. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { stringify } from 'yaml';
import { diffPolicies } from '../../src/config/diff/diff-policies.js';
import { Refusal } from '../../src/service/refusal.js';
import { runs } from '../support/assert/runs.js';
import { Decider, descriptor } from '../support/policy/decider.js';
import { parse } from '../support/policy/policies.js';

type Json = Readonly<Record<string, unknown>>;

const number = fc.integer({ min: 1, max: 4 });
const limit: fc.Arbitrary<Json> = fc.oneof(
  { weight: 4, arbitrary: number.map((requests) => ({ unit: 'second', requests_per_unit: requests })) },
  {
    weight: 1,
    arbitrary: fc.tuple(number, number).map(([max, fill]) => ({
      token_bucket: { max_tokens: max, tokens_per_fill: fill, fill_interval: '1s' },
    })),
  },
  { weight: 1, arbitrary: fc.constant({ unlimited: true }) },
);
const NAMES = ['a', 'b'];
const rule: fc.Arbitrary<Json> = fc
  .tuple(
    limit,
    fc.option(fc.constantFrom(...NAMES), { freq: 2 }),
    fc.option(fc.constantFrom(...NAMES), { freq: 1 }),
  )
  .map(([one, name, replaced]) => ({
    ...one,
    ...(name !== null && { name }),
    ...(replaced !== null && replaced !== name && { replaces: [{ name: replaced }] }),
  }));
/** Several limits, perhaps as a chain. */
const list = fc
  .tuple(fc.array(number, { minLength: 2, maxLength: 3 }), fc.boolean())
  .map(([numbers, isChain]) =>
    numbers.map((requests, i) => ({
      ...{ name: `c${i}`, unit: 'second', requests_per_unit: requests },
      // biome-ignore lint/suspicious/noThenProperty: a key of policies
      ...(isChain && i + 1 < numbers.length && { then: `c${i + 1}` }),
    })),
  );
const limits: fc.Arbitrary<Json> = fc.oneof(
  { weight: 5, arbitrary: rule.map((one) => ({ rate_limit: one })) },
  { weight: 1, arbitrary: list.map((all) => ({ rate_limits: all })) },
  { weight: 1, arbitrary: fc.constant({}) },
);
const settings = fc.constantFrom<Json>(
  ...[{}, {}, {}, { quota_mode: true }, { quota_mode: true }, { quota_mode: true }, { phase: 'monitoring' }],
  ...[{ shadow_mode: true }, { enforce_percent: 0 }, { phase: 'active' }],
);
const matcher = fc.constantFrom<Json>(
  ...[{}, {}, { value: 'x' }, { value: 'xy' }, { value: 'x*' }, { value: '*y' }],
  ...[{ value: 'x*', share_threshold: true }, { value_regex: '.y' }, { value_regex: ['x', 'xy'] }],
);
const match = fc.tuple(fc.constantFrom('k', 'k', 'm'), matcher).map(([key, values]) => ({ key, ...values }));
const isUnique = (one: Json): string => JSON.stringify([one['key'], one['value'], one['value_regex']]);
const leaf = fc
  .tuple(matcher, limits, settings)
  .map(([values, rules, more]): Json => ({ key: 'l', ...values, ...rules, ...more }));
const leaves = fc.oneof(
  { weight: 2, arbitrary: fc.constant<readonly Json[]>([]) },
  { weight: 1, arbitrary: fc.uniqueArray(leaf, { selector: isUnique, maxLength: 2 }) },
);
const node = fc
  .tuple(match, limits, settings, leaves)
  .map(([values, rules, more, descriptors]): Json => ({ ...values, ...rules, ...more, descriptors }));
const nodes = fc.uniqueArray(node, { selector: isUnique, minLength: 2, maxLength: 5 });
const phase = fc.constantFrom<Json>({}, {}, {}, { phase: 'monitoring' });

/** A policy, and a version of it with one or two other nodes. */
const pair = fc
  .tuple(
    nodes,
    nodes,
    fc.array(fc.nat(), { minLength: 1, maxLength: 2 }),
    phase,
    fc.integer({ min: 0, max: 3 }),
  )
  .map(([all, others, places, top, kind]) => {
    const changed = [...all];
    for (const place of places) {
      const at = place % (changed.length + 1);
      const other = others[place % others.length] as Json;
      const own = changed[at];
      if (kind === 0 || own === undefined) changed.splice(at, 0, other);
      else if (kind === 1) changed.splice(at, 1);
      else if (kind === 2) changed[at] = { ...own, descriptors: other['descriptors'] };
      else changed[at] = { ...other, key: own['key'], value: own['value'], value_regex: own['value_regex'] };
    }
    const text = (descriptors: readonly Json[]): string =>
      stringify({ domain: 'd', ...top, descriptors }, { aliasDuplicateObjects: false, keepUndefined: false });
    return [text(all), text(changed)] as const;
  });

const DESCRIPTORS = ['k=x', 'k=xy', 'k=zy', 'm=x', 'm=xy', 'k=q'].flatMap((entry) => [
  [entry],
  [entry],
  [entry, 'l=x'],
  [entry, 'l=xy'],
]);
const override = fc.option(fc.constant({ requestsPerUnit: 1, unit: 1 }), { freq: 8 });
const request = fc.tuple(
  fc.array(fc.tuple(fc.constantFrom(...DESCRIPTORS), override), { minLength: 1, maxLength: 3 }),
  fc.integer({ min: 1, max: 4 }),
);

test('a request is denied only if it was denied before, unless a change tightens', () => {
  let compared = 0;
  fc.assert(
    fc.property(pair, fc.array(request, { minLength: 40, maxLength: 40 }), ([one, other], requests) => {
      for (const [before, after] of [
        [one, other],
        [other, one],
      ] as const) {
        const [old, now] = [before, after].map((text) => parse(text).policy);
        if (old === undefined || now === undefined) return;
        const sets = [old, now].map((policy) => ({ domains: new Map([['d', policy]]), version: '' }));
        const changes = diffPolicies(sets[0] as (typeof sets)[0], sets[1] as (typeof sets)[0], 0);
        if (changes.length === 0 || changes.some(({ tightens }) => tightens)) continue;
        compared += 1;
        const deciders = [before, after].map((text) => new Decider(text));
        for (const [descriptors, hits] of requests) {
          const codes = deciders.map((decider) => {
            // All buckets are full again.
            decider.clock.advance(60_000_000);
            const asked = descriptors.map(([entries, limited]) =>
              descriptor(entries, { hitsAddend: hits, limit: limited ?? undefined }),
            );
            const answer = decider.ask(asked);
            return answer instanceof Refusal ? 'refused' : answer.overallCode;
          });
          if (codes[0] === 1)
            expect([before, after, descriptors, hits, codes[1]]).toEqual([
              before,
              after,
              descriptors,
              hits,
              1,
            ]);
        }
      }
    }),
    runs(2000),
  );
  expect(compared).toBeGreaterThan(60);
});
