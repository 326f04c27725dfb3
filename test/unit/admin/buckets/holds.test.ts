import { beforeEach, describe, expect, test } from '@jest/globals';
import { decodeHoldId, encodeHoldId } from '../../../../src/admin/buckets/holds/hold-id.js';
import type { BucketQuestion, ShownHold } from '../../../../src/admin/buckets/messages.js';
import { StorageError, type Take } from '../../../../src/limiter/bucket-store.js';
import type { NewHold } from '../../../../src/limiter/holds/hold.js';
import { AdminBench, entriesOf, policiesOf } from '../../../support/buckets/admin-bench.js';
import { settlementTake } from '../../../support/limiter/hold-items.js';

const POLICY = `
domain: d
descriptors:
  - { key: stream, rate_limit: { name: streams, concurrency: { max: 5000, expires_after: 1m } } }
  - key: llm
    rate_limits:
      - { name: parallel, concurrency: { max: 10, expires_after: 30s } }
      - name: tokens
        token_bucket: { max_tokens: 100000, tokens_per_fill: 1, fill_interval: 1m }
        hold: { amount: 100, expires_after: 10m }
      - { name: calls, unit: hour, requests_per_unit: 10 }
  - key: free
    rate_limit: { unit: hour, requests_per_unit: 100, hold: { amount: 10, expires_after: 10m, unknown: free } }
  - { key: tenant, rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 1s } } }
  - key: batch
    rate_limits:
      - { name: one, concurrency: { max: 5000, expires_after: 1m } }
      - { name: two, concurrency: { max: 5000, expires_after: 1m } }
  - key: team
    descriptors:
      - { key: job, value: all, rate_limit: { name: jobs, concurrency: { max: 10, expires_after: 1m } } }
      - { key: job, value: weekly, rate_limit: { name: weekly, unit: week, requests_per_unit: 10 } }
      - { key: user, rate_limit: { name: exports, concurrency: { max: 10, expires_after: 1m } } }
      - { key: host, rate_limit: { name: hosts, unit: hour, requests_per_unit: 10 } }
`;

let bench: AdminBench;
beforeEach(() => {
  bench = new AdminBench(POLICY);
});
const show = async (entries: string) =>
  (await bench.ask({ action: 'show', entries: entriesOf(entries) })).buckets;
const release = (entries: string, more: Partial<BucketQuestion>) =>
  bench.ask({ action: 'release', entries: entriesOf(entries), ...more });
const refused = (entries: string, more: object) =>
  bench.refused({ action: 'release', entries: entriesOf(entries), ...more });
const idOf = (holds: readonly ShownHold[] | undefined, index = 0): string => holds?.[index]?.id ?? '';

describe('the ID of a hold', () => {
  const values = {
    id: '0123456789abcdef01234567',
    amount: 4_294_967_295,
    lifetimeMillis: 60_000,
    fullAtMicros: 0,
  };

  test('contains all values, and needs no quoting', () => {
    const full = { ...values, fullAtMicros: 2 ** 52 };
    for (const hold of [values, full, { ...full, refillMicros: 2 ** 51 }, { ...values, refillMicros: 1 }]) {
      const id = encodeHoldId(hold);
      expect(id).toMatch(/^A[\w-]+$/);
      expect(decodeHoldId(id)).toEqual(hold);
    }
  });

  test.each(['', 'k3', 'AQ', encodeHoldId(values).slice(1), `${encodeHoldId(values)}AAAA`])(
    'is not %j',
    (text) => {
      expect(decodeHoldId(text)).toBe(undefined);
    },
  );
});

describe('show', () => {
  test('lists holds with age, remaining lifetime and amount, those that expire first at the beginning', async () => {
    bench.take('llm=a', 3);
    bench.clock.advance(10_000_000);
    bench.take('llm=a', 2);
    const [parallel, tokens, calls] = await show('llm=a');
    const times = (holds: readonly ShownHold[] | undefined) => holds?.map(({ id: _, ...told }) => told);
    expect(times(parallel?.holds?.list)).toEqual([
      { amount: 3, age: 10, ends_in: 20 },
      { amount: 2, age: 0, ends_in: 30 },
    ]);
    expect(times(tokens?.holds?.list)).toEqual([
      { amount: 3, age: 10, ends_in: 590 },
      { amount: 2, age: 0, ends_in: 600 },
    ]);
    expect(parallel?.holds?.more).toBe(0);
    expect(calls).not.toHaveProperty('holds');
  });

  test('lists 100 holds, and counts the others', async () => {
    for (let i = 0; i < 130; i++) bench.take('stream=a', 1);
    const [bucket] = await show('stream=a');
    expect([bucket?.holds?.list.length, bucket?.holds?.more]).toEqual([100, 30]);
  });

  test('has no list for a bucket without holds', async () => {
    bench.take('tenant=a', 1);
    expect((await show('tenant=a'))[0]).not.toHaveProperty('holds');
    expect((await show('stream=a'))[0]?.holds).toEqual({ list: [], more: 0 });
  });
});

describe('release', () => {
  test('ends one hold, and gives back its slots', async () => {
    bench.take('stream=a', 3);
    bench.clock.advance(1);
    bench.take('stream=a', 1);
    const [before] = await show('stream=a');
    const answer = await release('stream=a', { hold: idOf(before?.holds?.list) });
    expect(answer.buckets).toMatchObject([
      { rule: 'stream', before: { in_flight: 4 }, now: { in_flight: 1 }, released: 1 },
    ]);
    expect(answer.notes[0]).toBe('1 hold released.');
    expect((await show('stream=a'))[0]?.holds?.list).toMatchObject([{ amount: 1 }]);
    expect(bench.released).toEqual(['d stream 3']);
    expect(bench.counted).toContain('release ok');
    expect(bench.logged).toMatchObject([
      { fields: { action: 'release', buckets: [{ before: { in_flight: 4 }, after: { in_flight: 1 } }] } },
    ]);
  });

  test('counts only limits with holds whose buckets are unknown', async () => {
    const { buckets, more } = await release('team=a', { all: true });
    expect([buckets.map(({ name }) => name), more]).toEqual([['jobs'], 1]);
    expect((await release('team=a', { all: true, rule: 'jobs' })).more).toBe(0);
    const reset = { action: 'reset' as const, entries: entriesOf('team=a') };
    expect((await bench.ask(reset)).more).toBe(1);
    expect((await bench.ask({ ...reset, rule: 'weekly' })).more).toBe(0);
  });

  test('ends all holds of all limits, or of one rule, and gives back reserved tokens', async () => {
    for (let i = 0; i < 3; i++) bench.take('llm=a', 2);
    const one = await release('llm=a', { all: true, rule: 'tokens' });
    expect(one.buckets).toMatchObject([
      { name: 'tokens', before: { left: 99_994 }, now: { left: 100_000 }, released: 3 },
    ]);
    const both = await release('llm=a', { all: true });
    expect(both.buckets).toMatchObject([
      { name: 'parallel', before: { in_flight: 6 }, now: { in_flight: 0 }, released: 3 },
      { name: 'tokens', now: { left: 100_000 }, released: 0 },
    ]);
    // The limit without holds is not missing.
    expect(both.more).toBe(0);
    const none = await release('llm=a', { all: true });
    expect(none.notes).toEqual(['0 holds released.']);
  });

  test('ends thousands of holds', async () => {
    for (let i = 0; i < 2500; i++) bench.take('stream=a', 1);
    const { buckets } = await release('stream=a', { all: true });
    expect(buckets).toMatchObject([{ before: { in_flight: 2500 }, now: { in_flight: 0 }, released: 2500 }]);
    expect(bench.released).toHaveLength(2500);
  });

  test('ends after four seconds, however many limits have holds', async () => {
    for (let i = 0; i < 600; i++) bench.take('batch=a', 1);
    bench.callMicros = 600_000;
    const { buckets, notes } = await release('batch=a', { all: true });
    expect(buckets).toMatchObject([{ released: 500 }, { released: 250 }]);
    expect(notes.at(-1)).toMatch(/^Some holds remain,/);
  });

  test('only counts the holds in a dry run', async () => {
    bench.take('stream=a', 3);
    bench.take('stream=a', 1);
    const hold = idOf((await show('stream=a'))[0]?.holds?.list);
    const all = await release('stream=a', { all: true, dry_run: true });
    expect(all.buckets).toMatchObject([{ before: { in_flight: 4 }, now: { in_flight: 4 }, released: 2 }]);
    expect(all.notes).toEqual(['2 holds would be released.']);
    expect((await release('stream=a', { hold, dry_run: true })).buckets).toMatchObject([{ released: 1 }]);
    expect((await show('stream=a'))[0]?.now?.in_flight).toBe(4);
    expect(bench.released).toEqual([]);
  });

  test('finds each hold in a dry run, also behind the holds that a store lists', async () => {
    for (let i = 0; i < 399; i++) bench.take('stream=a', 1);
    const [last] = bench.take('stream=a', 1);
    const id = encodeHoldId({ ...(last?.holds as NewHold), amount: 1, fullAtMicros: 0 });
    const dry = await release('stream=a', { hold: id, dry_run: true });
    expect(dry.buckets).toMatchObject([{ before: { in_flight: 400 }, released: 1 }]);
    expect(dry.notes).toEqual(['1 hold would be released.']);
    expect((await release('stream=a', { hold: id })).notes[0]).toBe('1 hold released.');
    expect(await refused('stream=a', { hold: id, dry_run: true })).toMatch(/^404 /);
    expect((await release('stream=a', { all: true, dry_run: true })).notes).toEqual([
      'At most 399 holds would be released.',
    ]);
    bench.broken = new StorageError('timeout', 'no answer');
    expect(await refused('stream=a', { hold: id, dry_run: true })).toMatch(/^503 /);
  });

  test('reports a hold that has ended, or belongs to another bucket', async () => {
    bench.take('stream=a', 1);
    const hold = idOf((await show('stream=a'))[0]?.holds?.list);
    const gone = /^404 these buckets have no hold with this ID,/;
    expect(await refused('stream=b', { hold })).toMatch(gone);
    expect(await refused('stream=b', { hold, dry_run: true })).toMatch(gone);
    await release('stream=a', { hold });
    expect(await refused('stream=a', { hold })).toMatch(gone);
  });

  test('finds holds that started before a reload changed what happens to an unknown use', async () => {
    for (let i = 0; i < 3; i++) bench.take('free=a', 10);
    bench.policies = policiesOf(POLICY.replace('unknown: free', 'unknown: keep'));
    bench.clock.advance(1);
    bench.take('free=a', 20);
    const [before] = await show('free=a');
    expect(before?.holds?.list.map(({ amount }) => amount)).toEqual([10, 10, 10, 20]);
    const hold = idOf(before?.holds?.list);
    expect((await release('free=a', { hold, dry_run: true })).buckets).toMatchObject([{ released: 1 }]);
    expect((await release('free=a', { hold })).buckets).toMatchObject([{ now: { left: 60 }, released: 1 }]);
    expect((await release('free=a', { all: true, dry_run: true })).notes).toEqual([
      '3 holds would be released.',
    ]);
    expect((await release('free=a', { all: true })).buckets).toMatchObject([
      { now: { left: 100 }, released: 3 },
    ]);
  });

  test('refuses limits without holds, and unknown buckets', async () => {
    expect(await refused('tenant=a', { all: true })).toMatch(/^400 these limits have no holds; only/);
    expect(await refused('stream=', { all: true, rule: 'x' })).toMatch(/^400 rule must be a rule that/);
    expect(await refused('nobody=a', { all: true })).toMatch(/^400 no limit applies to these entries/);
    expect(await refused('stream=a', {})).toBe('400 release requires either hold or all, but not both');
    expect(await refused('stream=a', { all: false })).toBe('400 all must be true');
    expect(await refused('stream=a', { hold: 'k3' })).toMatch(/^400 hold must be an ID of a hold, as show/);
  });

  test('reports a store that fails before or during the release', async () => {
    bench.take('stream=a', 1);
    bench.broken = new StorageError('timeout', 'no answer');
    expect(await refused('stream=a', { all: true })).toBe('503 the store could not be read: no answer');
    bench.broken = undefined;
    bench.breaksAfter = 1;
    expect(await refused('stream=a', { all: true })).toMatch(/^503 the store failed .*\[maybe done\]$/);
  });
});

describe('reset', () => {
  const reset = (entries: string, more: Partial<BucketQuestion> = {}) =>
    bench.ask({ action: 'reset', entries: entriesOf(entries), ...more });

  test.each(['llm=a', 'free=a'])(
    'ends all reservations of %s, which change the bucket no more',
    async (entries) => {
      const takes = [bench.take(entries, 3), bench.take(entries, 3)].map(
        (taken) => taken.findLast(({ holds }) => holds !== undefined) as Take,
      );
      const reserved = async () =>
        (await show(entries)).find(({ holds, algorithm }) => holds && algorithm !== 'concurrency');
      const held = (await reserved())?.holds?.list.map(({ id }) => decodeHoldId(id)) ?? [];
      const settlements = takes.map((take, i) =>
        settlementTake(take, held.find((hold) => hold?.id === take.holds?.id) ?? {}, 1 + 4 * i),
      );
      const [bucket] = (await reset(entries)).buckets;
      const [before, now] = [bucket?.before?.left ?? 0, bucket?.now?.left ?? 0];
      expect([bucket?.released, now - before]).toEqual([2, 6]);
      bench.take(entries, 2);
      const found = await reserved();
      const effects = settlements.flatMap((settlement) => bench.memory.take([settlement]));
      expect(effects.map(({ hold }) => hold)).toEqual(['unknown', 'unknown']);
      expect((await reserved())?.now).toEqual(found?.now);
    },
  );

  test('leaves the slots of a concurrency limit', async () => {
    bench.take('llm=a', 2);
    const { buckets, notes } = await reset('llm=a');
    expect(buckets.map(({ name, released }) => [name, released])).toEqual([
      ['tokens', 1],
      ['calls', undefined],
    ]);
    expect(notes).toContain('1 hold released.');
    expect((await show('llm=a'))[0]?.now?.in_flight).toBe(2);
  });

  test('in a dry run only counts the reservations', async () => {
    bench.take('free=a', 10);
    const { buckets, notes } = await reset('free=a', { dry_run: true });
    expect(buckets).toMatchObject([{ before: { left: 90 }, now: { left: 100 }, released: 1 }]);
    expect(notes).toEqual(['1 hold would be released.']);
    expect((await show('free=a'))[0]?.holds?.list).toHaveLength(1);
  });
});

describe('a blocked customer', () => {
  const policy = (row: string) => `
domain: d
plans: { by: tenant, define: { gold: { n: 40, max: 8, blocked: false }, mallory: ${row} } }
descriptors:
  - key: tenant
    rate_limits:
      - { name: slots, concurrency: { max: { plan: max, default: 5 }, expires_after: 1h } }
      - { name: calls, unit: year, requests_per_unit: { plan: n, default: 9 }, max_debt: 0, hold: { amount: 1, expires_after: 1h } }
      - { name: burst, algorithm: token_bucket, unit: day, requests_per_unit: { plan: n, default: 0 } }
      - { name: fixed, unit: year, requests_per_unit: 20 }
`;
  const open = policy('{ n: 40, max: 8 }');
  const blocked = policy('{ n: 40, max: 8, blocked: true }');
  const levels = async (action: 'show' | 'reset' | 'grant' | 'release', more: Partial<BucketQuestion> = {}) =>
    (await bench.ask({ action, entries: entriesOf('tenant=mallory'), ...more })).buckets.map(
      ({ name, now, holds, released }) => [name, now?.in_flight ?? now?.left, holds?.list.length ?? released],
    );

  beforeEach(() => {
    bench.policies = policiesOf(open);
    for (let i = 0; i < 3; i++) bench.take('tenant=mallory', 2);
    bench.policies = policiesOf(blocked);
  });

  test('shows the holds', async () => {
    expect(await levels('show')).toEqual([
      ['slots', 0, 3],
      ['calls', 0, 3],
      ['burst', 0, undefined],
      ['fixed', 0, undefined],
    ]);
    const { buckets } = await bench.ask({ action: 'show', entries: entriesOf('tenant=mallory') });
    expect(new Set(buckets.map(({ about, note }) => `${about}: ${note}`))).toEqual(
      new Set(['blocked: no requests: The customer is blocked, so the limit allows no requests.']),
    );
  });

  test('has free slots after its holds are released', async () => {
    expect(await levels('release', { all: true })).toEqual([
      ['slots', 0, 3],
      ['calls', 40, 3],
    ]);
    bench.policies = policiesOf(open);
    expect((await levels('show')).slice(0, 2)).toEqual([
      ['slots', 0, 0],
      ['calls', 40, 0],
    ]);
  });

  test('has the tokens of its own limits after a reset or grant', async () => {
    expect(await levels('grant', { tokens: 1 })).toEqual([
      ['calls', 35, undefined],
      ['burst', 35, undefined],
      ['fixed', 15, undefined],
    ]);
    expect(await levels('reset')).toEqual([
      ['calls', 40, 3],
      ['burst', 40, undefined],
      ['fixed', 20, undefined],
    ]);
    bench.policies = policiesOf(open);
    expect((await levels('show')).map(([, now]) => now)).toEqual([6, 40, 40, 20]);
  });

  test.each(['{ blocked: true }', '{ blocked: true, max: 0, n: 5 }'])(
    'has the default limits without valid numbers: %s',
    async (row) => {
      bench.policies = policiesOf(policy(row));
      expect(await levels('release', { all: true })).toEqual([
        ['slots', 0, 3],
        ['calls', 9, 3],
      ]);
    },
  );
});

describe.each([
  ['no other limit', ''],
  ['a limit without values of the plan', '- { name: fixed, unit: year, requests_per_unit: 20 }'],
])('a customer that becomes unlimited, with %s', (_, other) => {
  const policy = (row: string) => `
domain: d
plans: { by: tenant, define: { staff: ${row} } }
descriptors:
  - key: tenant
    rate_limits:
      - { name: slots, concurrency: { max: { plan: max, default: 5 }, expires_after: 1h } }
      ${other}
`;

  test('release says how to release its holds', async () => {
    bench.policies = policiesOf(policy('{ max: 8 }'));
    for (let i = 0; i < 3; i++) bench.take('tenant=staff', 2);
    bench.policies = policiesOf(policy('{ unlimited: true }'));
    const release = { action: 'release', entries: entriesOf('tenant=staff'), all: true } as const;
    expect(await bench.refused(release)).toMatch(
      /^400 the customer is unlimited.* remove unlimited from the row of the customer/,
    );
    bench.policies = policiesOf(policy('{ max: 8 }'));
    expect((await bench.ask(release)).buckets).toMatchObject([{ released: 3, now: { in_flight: 0 } }]);
  });
});

test('release counts only limits with holds, and reset only those without slots, among the limits below', async () => {
  bench.policies = policiesOf(`
domain: d
descriptors:
  - key: tenant
    rate_limit: { unit: year, requests_per_unit: 9, max_debt: 0, hold: { amount: 1 } }
    descriptors:
      - { key: a, rate_limit: { unit: hour, requests_per_unit: 1 } }
      - { key: b, rate_limits: [{ unit: hour, requests_per_unit: 1 }, { unit: day, requests_per_unit: 9 }] }
      - { key: c, rate_limit: { concurrency: { max: 5 } } }
`);
  const more = async (action: 'show' | 'release' | 'reset') =>
    (
      await bench.ask({
        action,
        entries: entriesOf('tenant=x'),
        ...(action === 'release' && { all: true as const }),
      })
    ).notes.filter((note) => note.includes('additional entries'));
  expect(await more('show')).toEqual(['4 more limits apply to descriptors with additional entries.']);
  expect(await more('release')).toEqual(['1 more limit applies to descriptors with additional entries.']);
  expect(await more('reset')).toEqual(['3 more limits apply to descriptors with additional entries.']);
});
