import { describe, expect, test } from '@jest/globals';
import { MAX_TOP_ENTRIES, MAX_TOP_TEXTS, TopCounts } from '../../../../src/admin/top/top-counts.js';
import type { Rate } from '../../../../src/limiter/rate.js';
import { exposeUsedRatio } from '../../../../src/server/metrics/server-metrics.js';
import { FamilyRegistry } from '../../../../src/telemetry/family-registry.js';
import { TopBuckets, type TopMeasure, type TopRow } from '../../../../src/telemetry/top/top-buckets.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';
import { Decider, type DeciderOptions, descriptor } from '../../../support/policy/decider.js';
import { entries, policyOf } from '../../../support/policy/policies.js';

const POLICY = `
domain: d
plans: { by: customer, define: { gold: { calls: 5 }, free: { calls: 1 } }, default: free }
descriptors:
  - key: tenant
    rate_limits:
      - { name: burst, unit: minute, requests_per_unit: 4, algorithm: token_bucket }
      - { name: daily, unit: day, requests_per_unit: 100 }
  - key: api_key
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - { key: seen, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: free, rate_limit: { unlimited: true } }
  - { key: customer, rate_limit: { unit: minute, requests_per_unit: { plan: calls } } }
  - key: tried
    rate_limit: { unit: minute, requests_per_unit: 10 }
`;

class Bench {
  readonly top = new TopBuckets({ capacity: 100, nowMicros: () => 0, random: seededRandom(1) });
  readonly decider: Decider;

  constructor(options: DeciderOptions = {}) {
    this.decider = new Decider(POLICY, options);
    this.decider.observer.buckets = new TopCounts(this.top);
  }

  ask(texts: readonly string[], times = 1, more = {}): void {
    for (let at = 0; at < times; at++) this.decider.answer([descriptor(texts, more)]);
  }

  /** Returns the rows with a count. */
  rows(by: TopMeasure): readonly TopRow[] {
    return this.top.rank(by, { of: 'minute' }, 100).filter((row) => row[by] > 0);
  }

  /** Returns the rows as `rule denied used`, in descending order. */
  shown(by: TopMeasure): readonly string[] {
    return this.rows(by).map(({ about, denied, used }) => `${about?.rule} ${denied} ${used}`);
  }
}

test('each limit counts the hits that it allowed, and the requests that it denied', () => {
  const bench = new Bench();
  bench.ask(['tenant=acme'], 6);
  expect(bench.shown('denied')).toEqual(['tenant[burst] 2 4']);
  expect(bench.shown('used').toSorted()).toEqual(['tenant[burst] 2 4', 'tenant[daily] 0 4']);
  const [row] = bench.rows('denied');
  expect(row?.about).toEqual({
    key: row?.key,
    domain: 'd',
    rule: 'tenant[burst]',
    entries: [{ key: 'tenant', value: 'acme' }],
    usedRatio: 1,
  });
});

test('a bucket whose limit has values of plans has the plan of its customer', () => {
  const bench = new Bench();
  bench.ask(['customer=gold']);
  bench.ask(['customer=x']);
  bench.ask(['tenant=acme']);
  const plans = bench.rows('used').map(({ about }) => [about?.entries[0]?.value, about?.plan]);
  expect(new Map(plans as [string, string][])).toEqual(
    new Map([
      ['gold', 'gold'],
      ['x', 'free'],
      ['acme', undefined],
    ]),
  );
});

test('each class of a bucket has a row, with its name as the value', () => {
  const decider = new Decider(`
domain: d
descriptors:
  - key: tenant
    descriptors:
      - key: class
        rate_limit:
          token_bucket: { max_tokens: 10, fill_interval: 1h }
          priorities: { by: class, keep: { batch: 6, users: 0 } }
`);
  const top = new TopBuckets({ capacity: 100, nowMicros: () => 0, random: seededRandom(1) });
  decider.observer.buckets = new TopCounts(top);
  for (const name of ['class=other', 'class=batch', 'class=users', 'class=unknown', 'class=batch', ''])
    decider.answer([descriptor(['tenant=acme', ...(name === '' ? [] : [name])])]);
  const rows = top.rank('used', { of: 'minute' }, 100).map(({ about, denied, used }) => {
    const asked = about?.entries.map(({ key, value }) => `${key}=${value}`).join();
    return `${asked} ${denied} ${used} ${about?.usedRatio}`;
  });
  expect(rows).toEqual(['tenant=acme,class=batch 2 3 1', 'tenant=acme,class=users 0 1 0.3']);
});

test('every hit counts, and peeks and refunds do not', () => {
  const bench = new Bench();
  bench.ask(['tenant=acme'], 1, { hitsAddend: 3 });
  bench.ask(['tenant=acme'], 1, { hitsAddend: 0 });
  bench.ask(['tenant=acme'], 1, { hitsAddend: 2, isNegativeHits: true });
  expect(bench.shown('used').toSorted()).toEqual(['tenant[burst] 0 3', 'tenant[daily] 0 3']);
  expect(bench.rows('denied')).toEqual([]);
});

test('if one limit denies a request, the hits for its other limits do not count as used', () => {
  const bench = new Bench();
  bench.ask(['api_key=k'], 2);
  bench.decider.answer([descriptor(['api_key=k']), descriptor(['tenant=acme'])]);
  expect(bench.shown('used')).toEqual(['api_key 1 2']);
});

test.each([
  ['by its rule', {}, 'seen=x', 'seen 0 3'],
  ['by SHADOW_MODE', { answers: { shadowMode: true } }, 'api_key=k', 'api_key 0 3'],
])('requests over a limit that is not enforced %s count as used', (_how, options, text, shown) => {
  const bench = new Bench(options);
  bench.ask([text], 3);
  expect(bench.shown('used')).toEqual([shown]);
  expect(bench.rows('denied')).toEqual([]);
});

test('unlimited rules do not count, but limit overrides do', () => {
  const bench = new Bench();
  bench.ask(['free=x'], 2);
  bench.ask(['unknown=x'], 2);
  bench.ask(['tried=x'], 2);
  bench.ask(['tenant=acme'], 3, { limit: { requestsPerUnit: 2, unit: 2 } });
  expect(bench.shown('used').toSorted()).toEqual(['override 1 2', 'tried 0 2']);
});

test.each([
  ['tenant=acme', 2, '2/minute'],
  ['tenant=!9/day', 0, '0/minute'],
  [`tenant=${'x'.repeat(1000)}`, 4_294_967_295, '4294967295/minute'],
])('a limit override is stored with %s', (text, requestsPerUnit, limit) => {
  const bench = new Bench();
  bench.ask([text], 1, { limit: { requestsPerUnit, unit: 2 } });
  const by = requestsPerUnit === 0 ? 'denied' : 'used';
  expect(bench.rows(by).map(({ about }) => [about?.rule, about?.limit])).toEqual([['override', limit]]);
});

test('a rule has no such limit, whatever the names of its callers', () => {
  const bench = new Bench();
  bench.ask(['api_key=!9/day'], 1);
  bench.ask(['tried=!9/day'], 1);
  expect(bench.rows('used').map(({ about }) => about?.limit)).toEqual([undefined, undefined]);
});

test('secrets are never stored, including secrets that only the policy declares', () => {
  const bench = new Bench();
  bench.ask(['api_key=sk-very-secret'], 3);
  const [row] = bench.rows('denied');
  expect(row?.about?.entries).toEqual([
    { key: 'api_key', value: expect.stringMatching(/^\[redacted sha256:[0-9a-f]{8}\]$/) },
  ]);
  expect(JSON.stringify(row)).not.toContain('very');
});

test('long strings and long lists are truncated', () => {
  const bench = new Bench();
  const policy = policyOf(POLICY);
  const all = Array.from({ length: 40 }, (_, at) => `${'k'.repeat(150)}${at}=${'v'.repeat(5000)}`);
  const [rule] = policy.rules;
  const take = { key: 'k', rate: rule?.rate as Rate, hits: 1, rulePath: 'k', rule, outcome: undefined };
  bench.decider.observer.buckets?.count('denied', 1, policy, policy.match(entries(...all)), take);
  const [row] = bench.rows('denied');
  const kept = row?.about?.entries ?? [];
  expect(kept).toHaveLength(MAX_TOP_ENTRIES + 1);
  expect(kept.at(-1)).toEqual({ key: '…', value: 'and 24 more' });
  expect(kept[0]).toEqual({ key: `${'k'.repeat(99)}…`, value: `${'v'.repeat(99)}…` });
  expect(JSON.stringify(row).length).toBeLessThan(MAX_TOP_TEXTS + 40 * MAX_TOP_ENTRIES + 500);
});

describe('weir_bucket_used_ratio', () => {
  async function series(
    top: TopBuckets,
    most: number,
    secretKeys: ReadonlySet<string> = new Set(),
  ): Promise<readonly string[]> {
    const registry = new FamilyRegistry();
    exposeUsedRatio(registry, top, () => secretKeys, most);
    const text = String(await registry.text());
    return text.split('\n').filter((line) => line.startsWith('weir_'));
  }

  test('shows the most requested buckets, without secrets', async () => {
    const bench = new Bench();
    bench.ask(['api_key=sk-very-secret'], 5);
    bench.ask(['tenant=a "b"'], 3);
    bench.ask(['tried=x'], 1);
    expect(await series(bench.top, 1)).toEqual([
      expect.stringMatching(
        /^weir_bucket_used_ratio\{domain="d",rule="api_key",bucket="api_key=\[redacted sha256:[0-9a-f]{8}\]"\} 2.5$/,
      ),
    ]);
    expect((await series(bench.top, 3)).slice(1).toSorted()).toEqual([
      'weir_bucket_used_ratio{domain="d",rule="tenant[burst]",bucket="tenant=a \\"b\\""} 0.75',
      'weir_bucket_used_ratio{domain="d",rule="tenant[daily]",bucket="tenant=a \\"b\\""} 0.03',
    ]);
    expect(await series(bench.top, 100)).toHaveLength(4);
    expect(await series(bench.top, 0)).toEqual([]);
  });

  test('hides values that became secrets after they were counted', async () => {
    const bench = new Bench();
    bench.ask(['tried=sk-very-secret'], 1);
    const [line] = await series(bench.top, 100, new Set(['tried']));
    expect(line).toMatch(/bucket="tried=\[redacted sha256:[0-9a-f]{8}\]"/);
  });

  test('has one series for buckets with the same labels, with the highest ratio', async () => {
    const bench = new Bench();
    bench.ask([`tried=${'x'.repeat(200)}1`], 2);
    bench.ask([`tried=${'x'.repeat(200)}2`], 5);
    expect(await series(bench.top, 100)).toEqual([
      `weir_bucket_used_ratio{domain="d",rule="tried",bucket="tried=${'x'.repeat(99)}…"} 0.5`,
    ]);
  });
});
