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

const number = fc.integer({ min: 1, max: 3 });
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
const NAMES = ['a', 'b', 'c'];
const named = fc
  .tuple(limit, fc.constantFrom(...NAMES), fc.option(fc.constantFrom(...NAMES), { freq: 2 }))
  .map(([one, name, other]) => ({
    rate_limit: { ...one, name, ...(other !== null && other !== name && { replaces: [{ name: other }] }) },
  }));
const single = limit.map((one) => ({ rate_limit: one }));
const others = fc.constantFrom<Json>(
  ...[{ phase: 'monitoring' }, { phase: 'active' }, { shadow_mode: true }, { enforce_percent: 0 }],
);
const settings = fc.oneof({ weight: 2, arbitrary: fc.constant<Json>({}) }, { weight: 1, arbitrary: others });
const isQuota = fc.constantFrom(true, true, true, false);
const quota = fc
  .tuple(single, settings, isQuota)
  .map(([one, more, quotaMode]): Json => ({ ...one, ...more, quota_mode: quotaMode }));
/** Limits of nodes in one policy, so that those that affect each other meet often. */
const STYLES: readonly fc.Arbitrary<Json>[] = [
  fc.tuple(single, settings).map(([one, more]) => ({ ...one, ...more })),
  quota,
  named,
  list.map((all) => ({ rate_limits: all })),
];
const VALUES: readonly Json[] = [{}, { value: 'x' }, { value: 'xy' }, { value: 'x*' }, { value: '*y' }];
const SHARED = { value: 'x*', share_threshold: true };
const matcher = fc.constantFrom<Json>(
  ...[{}, {}, {}, {}],
  ...VALUES,
  {},
  {},
  SHARED,
  SHARED,
  { value_regex: '.y' },
  { value_regex: ['x', 'xy'] },
  { value_regex: ['x', 'xy'] },
);
const isUnique = (one: Json): string => JSON.stringify([one['key'], one['value'], one['value_regex']]);
const nodesOf = (style: fc.Arbitrary<Json>): fc.Arbitrary<readonly Json[]> => {
  const limits = fc.oneof({ weight: 6, arbitrary: style }, { weight: 1, arbitrary: fc.constant({}) });
  const leaf = fc.tuple(matcher, limits).map(([values, rules]): Json => ({ key: 'l', ...values, ...rules }));
  const leaves = fc.uniqueArray(leaf, { selector: isUnique, maxLength: 2 });
  const below = fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: leaves });
  const node = fc
    .tuple(fc.constantFrom('k', 'm', 'n'), matcher, limits, below)
    .map(([key, values, rules, descriptors]): Json => ({ key, ...values, ...rules, descriptors }));
  return fc.uniqueArray(node, { selector: isUnique, minLength: 2, maxLength: 6 });
};
const phase = fc.constantFrom<Json>({}, {}, {}, { phase: 'monitoring' });

/**
 * A policy, and a version of it in which one node is added, removed, moved or different, one chain ends,
 * values begin to share a bucket, or a rule gets another name.
 */
const pair = fc
  .oneof(...STYLES.map((style) => fc.tuple(nodesOf(style), nodesOf(style))))
  .chain(([all, others]) => fc.tuple(fc.constant(all), fc.constant(others), fc.nat(), phase, fc.nat(9)))
  .map(([all, others, place, top, kind]) => {
    const at = place % all.length;
    const other = others[place % others.length] as Json;
    const { key, value, value_regex, ...own } = all[at] as Json;
    const separate = (own['rate_limits'] as readonly Json[] | undefined)?.map((one) => {
      return { name: one['name'], unit: one['unit'], requests_per_unit: one['requests_per_unit'] };
    });
    const rule = own['rate_limit'] as Json | undefined;
    const takesMany = value_regex !== undefined || `${value ?? ''}`.includes('*');
    const versions: readonly (readonly Json[])[] = [
      [other],
      [],
      [{ ...all[at], descriptors: other['descriptors'] }],
      [{ ...other, key, value, value_regex }],
      [{ ...own, key, value: other['value'], value_regex: other['value_regex'] }],
      // The limits of a chain side by side.
      [{ ...all[at], rate_limits: separate }],
      [{ ...all[at], ...(takesMany && { share_threshold: own['share_threshold'] !== true }) }],
      [{ ...all[at], ...(rule?.['name'] !== undefined && { rate_limit: { ...rule, name: 'd' } }) }],
      [{ ...all[at], ...(Array.isArray(value_regex) && { value_regex: ['x', '.y'] }) }],
    ];
    // The last version has another order.
    const changed = versions[kind] ? all.toSpliced(at, 1, ...versions[kind]) : all.toReversed();
    const text = (descriptors: readonly Json[]): string =>
      stringify({ domain: 'd', ...top, descriptors }, { aliasDuplicateObjects: false, keepUndefined: false });
    return [text(all), text(changed)] as const;
  });

const override = fc.constantFrom(...Array<null>(9).fill(null), { requestsPerUnit: 1, unit: 1 });
const below = fc.constantFrom<readonly string[]>([], [], [], ['l=x'], ['l=xy']);
const value = fc.constantFrom('x', 'xy', 'zy', 'q');
const descriptorOf = (key: string) =>
  fc
    .tuple(value, below, override)
    .map(([own, entries, limited]) => [[`${key}=${own}`, ...entries], limited] as const);
const request = fc.tuple(
  fc
    .shuffledSubarray(['k', 'k', 'm', 'n'], { minLength: 2 })
    .chain((keys) => fc.tuple(...keys.map(descriptorOf))),
  fc.integer({ min: 1, max: 3 }),
);

test('a request is denied only if it was denied before, unless a change tightens', () => {
  let compared = 0;
  fc.assert(
    fc.property(pair, fc.array(request, { minLength: 40, maxLength: 40 }), ([one, other], requests) => {
      const policies = new Map([one, other].map((text) => [text, parse(text).policy]));
      for (const [before, after] of [
        [one, other],
        [other, one],
      ] as const) {
        const [old, now] = [policies.get(before), policies.get(after)];
        if (old === undefined || now === undefined) return;
        const sets = [old, now].map((policy) => ({ domains: new Map([['d', policy]]), version: '' }));
        const changes = diffPolicies(sets[0] as (typeof sets)[0], sets[1] as (typeof sets)[0], 0);
        if (before === after || changes.some(({ tightens }) => tightens)) continue;
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
    runs(3000),
  );
  expect(compared).toBeGreaterThan(60);
});
