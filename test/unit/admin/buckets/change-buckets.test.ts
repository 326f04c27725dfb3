import { beforeEach, describe, expect, test } from '@jest/globals';
import type { BucketQuestion } from '../../../../src/admin/buckets/messages.js';
import { StorageError } from '../../../../src/limiter/bucket-store.js';
import { AdminBench, entriesOf } from '../../../support/buckets/admin-bench.js';

const POLICY = `
domain: d
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 100, tokens_per_fill: 10, fill_interval: 1s } }
    descriptors:
      - { key: user, value: root, rate_limit: { unit: hour, requests_per_unit: 7 } }
      - { key: user, rate_limit: { unit: hour, requests_per_unit: 10 } }
      - key: list
        rate_limits:
          - { name: minute, unit: minute, requests_per_unit: 10 }
          - { name: daily, unit: day, requests_per_unit: 1000, allow_debt: true }
  - key: region
    value: eu
    descriptors:
      - { key: zone, value: a, rate_limit: { unit: hour, requests_per_unit: 7 } }
      - { key: zone, rate_limit: { unit: hour, requests_per_unit: 7 } }
  - { key: free, rate_limit: { unlimited: true } }
  - { key: stream, rate_limit: { concurrency: { max: 10 } } }
  - key: llm
    rate_limits:
      - { name: streams, concurrency: { max: 10 } }
      - { name: tokens, unit: hour, requests_per_unit: 100 }
  - { key: debt, rate_limit: { token_bucket: { max_tokens: 10, fill_interval: 1s }, allow_debt: true } }
  - { key: api_key, rate_limit: { unit: hour, requests_per_unit: 5 } }
`;

let bench: AdminBench;
beforeEach(() => {
  bench = new AdminBench(POLICY);
});
const change = (
  action: 'reset' | 'grant',
  entries: string,
  more: Omit<BucketQuestion, 'action' | 'entries'> = {},
) => bench.ask({ action, entries: entriesOf(entries), ...more });
const left = async (entries: string) => {
  const { buckets } = await bench.ask({ action: 'show', entries: entriesOf(entries) });
  return buckets.map(({ now }) => now?.left);
};

describe('reset and grant', () => {
  test('refuse a concurrency limit', async () => {
    bench.take('stream=a', 3);
    const why =
      '400 a concurrency limit has no tokens to give back, because it counts requests in flight; use release';
    const question = { entries: entriesOf('stream=a'), tokens: 5 };
    expect(await bench.refused({ action: 'grant', ...question })).toBe(why);
    expect(await bench.refused({ action: 'reset', entries: question.entries })).toBe(why);
    expect(await left('stream=a')).toEqual([7]);
  });

  test('leave out a concurrency limit beside other limits', async () => {
    bench.take('llm=a', 3);
    const { buckets, notes, more } = await change('reset', 'llm=a');
    expect(buckets).toMatchObject([{ name: 'tokens', before: { left: 97 }, now: { left: 100 } }]);
    expect([more, notes]).toEqual([
      0,
      [
        'Concurrency limits are not changed, because they count requests in flight. To end holds, use release.',
      ],
    ]);
    expect(await left('llm=a')).toEqual([7, 100]);
  });
});

describe('reset', () => {
  test('fills a bucket, returns the values before and after, and notifies all caches', async () => {
    bench.take('tenant=acme', 60);
    const { buckets, dry_run: dryRun } = await change('reset', 'tenant=acme');
    expect(dryRun).toBe(false);
    expect(buckets).toMatchObject([
      {
        before: { left: 40, debt: 0, full_in: 6 },
        now: { left: 100, debt: 0, next_token_in: 0, full_in: 0 },
      },
    ]);
    expect(await left('tenant=acme')).toEqual([100]);
    expect(bench.announced).toBe(1);
    expect(bench.counted).toEqual(['reset ok', 'show ok']);
  });

  test('changes every limit of a list, or only the limit in the request', async () => {
    bench.take('tenant=acme,list=', 4);
    await change('reset', 'tenant=acme,list=', { rule: 'minute' });
    expect(await left('tenant=acme,list=')).toEqual([10, 996]);
    await change('reset', 'tenant=acme,list=', { rule: 'tenant/list[daily]' });
    expect(await left('tenant=acme,list=')).toEqual([10, 1000]);
    bench.take('tenant=acme,list=', 3);
    await change('reset', 'tenant=acme,list=');
    expect(await left('tenant=acme,list=')).toEqual([10, 1000]);
    const question = { action: 'reset', entries: entriesOf('tenant=acme,list='), rule: 'hourly' };
    expect(await bench.refused(question)).toMatch(
      /^400 rule must be a rule that these entries match \("tenant\/list\[minute/,
    );
  });

  test('pays a debt', async () => {
    bench.take('debt=x', 18);
    expect((await change('reset', 'debt=x')).buckets).toMatchObject([
      { before: { left: 0, debt: 8 }, now: { left: 10, debt: 0 } },
    ]);
  });

  test('for part of a descriptor changes the known buckets', async () => {
    bench.take('region=eu,zone=a', 3);
    bench.take('region=eu,zone=b', 3);
    const { buckets, more } = await change('reset', 'region=eu');
    expect(buckets).toMatchObject([
      { entries: entriesOf('region=eu,zone=a'), before: { left: 4 }, now: { left: 7 } },
    ]);
    // The entries of other zones are unknown.
    expect(more).toBe(1);
    expect(await left('region=eu,zone=b')).toEqual([4]);
    expect((await change('reset', 'zone=b')).buckets).toMatchObject([{ now: { left: 7 } }]);
  });
});

test('for a part without a known bucket is refused', async () => {
  expect(await bench.refused({ action: 'reset', entries: entriesOf('user=bob') })).toBe(
    '400 these entries do not identify a bucket; also specify the value of "tenant"',
  );
  expect(await bench.refused({ action: 'reset', entries: entriesOf('who=knows') })).toMatch(
    /^400 no limit applies to/,
  );
  expect(await bench.refused({ action: 'reset', entries: entriesOf('free=1') })).toMatch(
    /^400 the rules for these entries are unlimited/,
  );
});

describe('grant', () => {
  test('adds tokens until the bucket is full, and reports the rest', async () => {
    bench.take('tenant=acme', 60);
    const first = await change('grant', 'tenant=acme', { tokens: 25 });
    expect(first.buckets).toMatchObject([
      { before: { left: 40 }, now: { left: 65, next_token_in: 0.1, full_in: 3.5 } },
    ]);
    expect(first.notes.join()).not.toContain('only up to the capacity');
    const second = await change('grant', 'tenant=acme', { tokens: Number.MAX_SAFE_INTEGER });
    expect(second.buckets[0]?.now).toEqual({ left: 100, debt: 0, next_token_in: 0, full_in: 0 });
    expect(second.notes).toContain('Tokens were granted only up to the capacity.');
  });

  test.each(['tenant=acme', 'tenant=acme,list=', 'tenant=acme,user=bob', 'debt=x'])(
    'says before what it would do: %s',
    async (entries) => {
      for (const hits of [9, 1, 4]) {
        bench.take(entries, hits);
        for (const tokens of [1, 400, 5, 7, 2 ** 52]) {
          const dry = await change('grant', entries, { tokens, dry_run: true });
          expect(dry.dry_run).toBe(true);
          expect(bench.announced).toBe(0);
          const done = await change('grant', entries, { tokens });
          expect(dry.buckets).toEqual(done.buckets);
          bench.announced = 0;
          bench.take(entries, hits);
        }
      }
    },
  );

  test('for a window also gives back counted denied hits', async () => {
    bench.take('tenant=acme,user=bob', 10);
    bench.take('tenant=acme,user=bob', 5);
    const { buckets } = await change('grant', 'tenant=acme,user=bob', { tokens: 3 });
    expect(buckets[0]).toMatchObject({ before: { left: 0 }, now: { left: 3 } });
  });

  test('changes the bucket of an override', async () => {
    const { buckets } = await change('grant', 'tenant=acme', {
      tokens: 1,
      limit: '5/hour',
      rule: 'override',
    });
    expect(buckets).toMatchObject([{ rule: 'override', now: { left: 5 } }]);
  });
});

test('a dry run changes nothing', async () => {
  bench.take('tenant=acme', 60);
  const { buckets } = await change('reset', 'tenant=acme', { dry_run: true });
  expect(buckets).toMatchObject([{ before: { left: 40 }, now: { left: 100 } }]);
  expect(await left('tenant=acme')).toEqual([40]);
  expect(bench.announced).toBe(0);
  expect(bench.counted).toEqual(['reset dry_run', 'show ok']);
});

test('each change has one log line without secrets', async () => {
  bench.take('api_key=hunter2', 4);
  await change('grant', 'api_key=hunter2', { tokens: 2 });
  await bench.refused({ action: 'reset', domain: 'other', entries: entriesOf('api_key=hunter2') });
  expect(bench.logged).toMatchObject([
    {
      message: 'an operator requested a change',
      fields: {
        action: 'grant',
        by: 'ops',
        peer: '10.0.0.7',
        result: 'ok',
        domain: 'd',
        tokens: 2,
        entries: [{ key: 'api_key', value: expect.stringMatching(/^\[redacted/) }],
        buckets: [{ rule: 'api_key', before: { left: 1 }, after: { left: 3 } }],
      },
    },
    {
      fields: {
        action: 'reset',
        result: 'refused',
        error: expect.stringContaining('has the domain "other"'),
      },
    },
  ]);
  expect(JSON.stringify(bench.logged)).not.toContain('hunter2');
});

test('reports that a change may have been made if the store did not answer', async () => {
  const question = { action: 'grant', entries: entriesOf('tenant=acme'), tokens: 5 };
  bench.broken = new StorageError('timeout', 'no answer within 20ms');
  expect(await bench.refused(question)).toBe(
    '503 the store failed (no answer within 20ms), so the result is unknown; check the bucket with weir ' +
      'bucket show [maybe done]',
  );
  expect(bench.announced).toBe(1);
  // A failed dry run certainly had no effect.
  expect(await bench.refused({ ...question, dry_run: true })).toBe(
    '503 the store could not be read: no answer within 20ms',
  );
  bench.broken = new StorageError('breaker_open', 'Redis failed 5 times');
  expect(await bench.refused(question)).toMatch(/so nothing was changed; try again$/);
  expect(bench.announced).toBe(1);
  expect(bench.logged.map(({ fields }) => fields['result'])).toEqual(['failed', 'failed', 'failed']);
});
