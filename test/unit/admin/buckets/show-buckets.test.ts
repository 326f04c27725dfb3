import { beforeEach, expect, test } from '@jest/globals';
import { StorageError } from '../../../../src/limiter/bucket-store.js';
import { AdminBench, entriesOf } from '../../../support/buckets/admin-bench.js';

const POLICY = `
domain: d
descriptors:
  - key: tenant
    rate_limit: { token_bucket: { max_tokens: 100, tokens_per_fill: 10, fill_interval: 1s } }
    descriptors:
      - key: group
        value: files*
        rate_limits:
          - { name: minute, unit: minute, requests_per_unit: 10 }
          - { name: daily, unit: day, requests_per_unit: 1000, allow_debt: true }
      - { key: user, rate_limit: { unit: hour, requests_per_unit: 10 }, shadow_mode: true }
  - { key: path, value: /files/*, share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: tenant, value: free, rate_limit: { unlimited: true } }
  - { key: api_key, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: stream, rate_limit: { concurrency: { max: 10, expires_after: 1m } } }
  - { key: debt, rate_limit: { token_bucket: { max_tokens: 10, fill_interval: 1s }, allow_debt: true } }
`;

let bench: AdminBench;
beforeEach(() => {
  bench = new AdminBench(POLICY);
});
const show = (entries: string) => bench.ask({ action: 'show', entries: entriesOf(entries) });

test('shows the remaining tokens, and when the bucket is full', async () => {
  bench.take('tenant=acme', 35);
  bench.clock.advance(500_000);
  const answer = await show('tenant=acme');
  expect(answer).toMatchObject({ meets: 'descriptor', domain: 'd', store: 'memory', more: 0 });
  expect(answer.buckets).toEqual([
    {
      rule: 'tenant',
      name: '',
      algorithm: 'token_bucket',
      limit: 100,
      about: 'token bucket: 100 tokens, 10 every 1s',
      enforcement: 'enforce',
      entries: entriesOf('tenant=acme'),
      redis_key: null,
      redis_slot: null,
      now: { left: 70, debt: 0, next_token_in: 0.1, full_in: 3 },
    },
  ]);
  expect(bench.counted).toEqual(['show ok']);
});

test('shows the bucket of all classes, and what the class of the entries can use', async () => {
  bench = new AdminBench(`
domain: d
descriptors:
  - key: tenant
    descriptors:
      - key: class
        rate_limit:
          unit: hour
          requests_per_unit: 100
          priorities: { by: class, keep: { batch: 40%, interactive: 0 } }
`);
  bench.take('tenant=a,class=interactive', 70);
  const found = async (entries: string) => {
    const [bucket] = (await show(entries)).buckets;
    return [bucket?.limit, bucket?.about, bucket?.now, bucket?.note];
  };
  const now = expect.objectContaining({ left: 30 });
  const about = 'window: 100 per hour';
  const batch = [100, about, now, 'The class batch can use 60 of 100, and leaves 40 to other classes.'];
  expect(await found('tenant=a,class=batch')).toEqual(batch);
  expect(await found('tenant=a')).toEqual(batch);
  expect(await found('tenant=a,class=interactive')).toEqual([
    100,
    about,
    now,
    'The class interactive can use 100 of 100, and leaves 0 to other classes.',
  ]);
  // Hits that other classes have used are not hits that the window has denied.
  await bench.ask({ action: 'grant', entries: entriesOf('tenant=a,class=batch'), tokens: 5 });
  expect(await found('tenant=a')).toMatchObject({ 2: { left: 35 } });
});

test('describes soft limits and chains with values from plans', async () => {
  bench = new AdminBench(`
domain: d
plans:
  by: tenant
  default: free
  define:
    acme: { burst: 3 }
    free: { burst: 1 }
    bad: { blocked: true }
    staff: { unlimited: true }
    trial: { burst: 2, phase: monitoring }
descriptors:
  - key: tenant
    rate_limits:
      - { name: soft, unit: hour, requests_per_unit: { plan: burst }, on_over: { allow: true } }
      - { name: plan, unit: day, requests_per_unit: { plan: burst }, then: credits }
      - { name: credits, unit: year, requests_per_unit: 9 }
    descriptors: [{ key: path, rate_limit: { unit: hour, requests_per_unit: { plan: burst } } }]
`);
  const found = async (entries: string) => {
    const { buckets, notes } = await show(entries);
    return [...buckets.map(({ about, enforcement, note }) => [about, enforcement, note]), notes];
  };
  const from = 'requests_per_unit from the plan value burst';
  const more = '1 more limit applies to descriptors with additional entries.';
  const instead = 'Requests over the limit take from "credits" instead.';
  expect(await found('tenant=acme')).toEqual([
    [`window: 3 per hour; ${from}`, 'observe', 'The limit is soft: requests over it pass.'],
    [`window: 3 per day; ${from}`, 'spill', instead],
    ['window: 9 per year', 'enforce', undefined],
    ['Plan: acme.', more],
  ]);
  const [soft, , last] = await found('tenant=trial');
  expect([soft?.[2], last?.[2]]).toEqual([
    'The limit is soft: requests over it pass, without marks because the limit is in the monitoring phase.',
    'The limit is in the monitoring phase, so it denies no requests.',
  ]);
  const blocked = 'The customer is blocked, so the limit allows no requests.';
  expect((await found('tenant=bad')).map(([, , note]) => note)).toEqual([
    blocked,
    blocked,
    blocked,
    undefined,
  ]);
  // The unlimited rules of this customer are also those of descriptors with more entries.
  expect(await found('tenant=staff')).toEqual([
    ['The rule is unlimited: weir counts no hits and denies no requests.', 'Plan: staff, unlimited.'],
  ]);
  expect(await found('path=/a')).toEqual([
    [`window: 1 per hour; ${from}`, 'enforce', 'To see the bucket, add a value for tenant.'],
    ['Values from plans are those of customers without a row. Add a value for tenant.'],
  ]);
  expect(await found('tenant=acme,other=x')).toEqual([[]]);
  expect((await found('tenant=other')).at(-1)).toEqual(['Plan: free (the customer has no row).', more]);
});

test('a full window is full, and a limit of 0 never has a next token', async () => {
  bench = new AdminBench(`
domain: d
plans: { by: tenant, define: { bad: { blocked: true, rate: 9 }, free: { rate: 9 } }, default: free }
descriptors:
- { key: tenant, rate_limit: { unit: minute, requests_per_unit: { plan: rate } } }
- { key: none, rate_limit: { unit: minute, requests_per_unit: 0 } }
`);
  const shown = async (entries: string) => {
    const { buckets } = await show(entries);
    return buckets.map(({ about, now }) => [about, now]);
  };
  const full = { left: 9, debt: 0, next_token_in: 0, full_in: 0 };
  const nothing = { left: 0, debt: 0, next_token_in: null, full_in: null };
  expect(await shown('tenant=x')).toEqual([[expect.stringContaining('window: 9 per minute'), full]]);
  expect(await shown('tenant=bad')).toEqual([['blocked: no requests', nothing]]);
  expect(await shown('none=x')).toEqual([['window: 0 per minute', nothing]]);
});

test('shows each limit of a list, and the ends of windows', async () => {
  bench.clock.wall = 1_700_000_040_000_000 - 20_000_000;
  bench.take('tenant=acme,group=files1', 4);
  const { buckets } = await show('tenant=acme,group=files1');
  expect(buckets.map(({ rule, now }) => [rule, now])).toEqual([
    ['tenant/group=files*[minute]', { left: 6, debt: 0, next_token_in: 20, full_in: 20 }],
    [
      'tenant/group=files*[daily]',
      { left: 996, debt: 0, next_token_in: expect.any(Number), full_in: expect.any(Number) },
    ],
  ]);
});

test('shows a debt', async () => {
  bench.take('debt=x', 1);
  bench.take('debt=x', 15);
  const { buckets } = await show('debt=x');
  expect(buckets[0]?.now).toEqual({ left: 0, debt: 6, next_token_in: 7, full_in: 16 });
});

test('shows a Redis key and its slot', async () => {
  bench = new AdminBench(POLICY, true);
  const { buckets } = await show('tenant=acme');
  expect(buckets[0]?.redis_key).toMatch(/^weir:1:\{[0-9a-f]{16}\}1:d6:tenant4:acme$/);
  expect(buckets[0]?.redis_slot).toBeGreaterThanOrEqual(0);
});

test('for part of a descriptor lists possible limits and known buckets', async () => {
  const tenant = await show('user=bob');
  expect(tenant.meets).toBe('part');
  expect(tenant.buckets).toMatchObject([
    {
      rule: 'tenant/user',
      entries: entriesOf('tenant=,user=bob'),
      note: 'To see the bucket, add a value for tenant.',
    },
  ]);
  expect(tenant.buckets[0]).not.toHaveProperty('now');
  expect(await show('nobody=knows')).toMatchObject({ meets: 'nothing', buckets: [] });
});

test('shows that a rule is unlimited', async () => {
  const answer = await show('tenant=free');
  expect(answer).toMatchObject({ meets: 'descriptor', buckets: [] });
  expect(answer.notes).toEqual(['The rule is unlimited: weir counts no hits and denies no requests.']);
});

test('shows the pattern of values that share a bucket', async () => {
  bench.take('path=/files/a', 2);
  const { buckets, entries } = await show('path=/files/b');
  expect(entries).toEqual(entriesOf('path=/files/b'));
  expect(buckets).toMatchObject([{ entries: entriesOf('path=/files/*'), now: { left: 3 } }]);
});

test('reports that other limits apply to descriptors with more entries', async () => {
  const { notes } = await show('tenant=acme');
  expect(notes).toEqual(['3 more limits apply to descriptors with additional entries.']);
});

test('does not repeat a long value with each limit', async () => {
  const { buckets, entries } = await show(`tenant=${'a'.repeat(60_000)}`);
  expect(entries[0]?.value).toHaveLength(60_000);
  expect(buckets[0]?.entries[0]?.value.length).toBeLessThan(300);
  expect(buckets[0]?.now).toMatchObject({ left: 100 });
});

test('accepts long names, up to a bound', async () => {
  const domain = 'd'.repeat(4096);
  bench = new AdminBench(POLICY.replace('domain: d', `domain: ${domain}`));
  expect(await show('tenant=acme')).toMatchObject({ domain, meets: 'descriptor' });
  const longer = { domain: 'd'.repeat(8193), action: 'show', entries: entriesOf('tenant=acme') };
  expect(await bench.refused(longer)).toBe('400 domain must have at most 8192 characters');
});

test('lists limits up to the maximum of an answer, and counts the rest', async () => {
  const rules = Array.from(
    { length: 1000 },
    (_, i) => `{ key: t, descriptors: [] , value: v${i}, rate_limit: { unit: hour, requests_per_unit: 1 } }`,
  );
  bench = new AdminBench(`domain: d\ndescriptors: [{ key: top, descriptors: [${rules.join(', ')}] }]`);
  const answer = await show('top=x');
  expect(answer).toMatchObject({ meets: 'part', more: 800, buckets: { length: 200 } });
  expect(answer.buckets.every(({ now }) => now?.left === 1)).toBe(true);
  expect((await bench.ask({ action: 'reset', entries: entriesOf('top=x') })).more).toBe(800);
});

test('shows no secret', async () => {
  const answer = await show('api_key=hunter2');
  expect(answer.buckets[0]?.now).toMatchObject({ left: 5 });
  expect(JSON.stringify(answer)).not.toContain('hunter2');
  expect(answer.entries[0]?.value).toMatch(/^\[redacted sha256:/);
});

test('changes nothing', async () => {
  bench.take('tenant=acme', 35);
  await show('tenant=acme');
  await show('tenant=other');
  expect(bench.memory.size).toBe(1);
});

test('says which part of a limit processes may have leased', async () => {
  bench = new AdminBench(
    `domain: d\ndescriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: 9, lease: { for: 50ms } } }]`,
    true,
  );
  bench.leased = 7;
  const { buckets } = await bench.ask({ action: 'show', entries: entriesOf('tenant=a') });
  expect(buckets[0]?.note).toBe(
    'Each process may take up to 1000 in advance, which this number does not contain, and spends them within 50ms. ' +
      'The process that answered has 7 left.',
  );
  // The primary of workers decides nothing.
  bench.leased = undefined;
  const shown = await bench.ask({ action: 'show', entries: entriesOf('tenant=a') });
  expect(shown.buckets[0]?.note).toMatch(/within 50ms\.$/);
});

test('reports that the store is unavailable', async () => {
  bench.broken = new StorageError('disconnected', 'Redis is not connected');
  const question = { action: 'show', entries: entriesOf('tenant=acme') };
  expect(await bench.refused(question)).toBe('503 the store could not be read: Redis is not connected');
  expect(bench.counted).toEqual(['show failed']);
});

test('refuses an invalid request with the name of the field', async () => {
  const entries = entriesOf('tenant=acme');
  const refused = async (question: unknown) => (await bench.refused(question)).replace(/^400 /, '');
  expect(await refused([])).toMatch(/^the body must be a JSON object/);
  expect(await refused({ action: 'shw', entries })).toMatch(
    /^action must be one of show, .*did you mean "show"\?$/,
  );
  expect(await refused({ action: 'block', entries })).toMatch(
    /^weir bucket block was removed; set "blocked: true"/,
  );
  expect(await refused({ action: 'grant', entries, tokens: 1, over: true })).toMatch(/fills up to the limit/);
  expect(await refused({ action: 'show' })).toBe('show needs entries');
  expect(await refused({ action: 'show', entries: [] })).toBe('entries must have at least one entry');
  expect(await refused({ action: 'show', entries, tokens: 1 })).toBe(
    'tokens is valid only for grant, not for show',
  );
  expect(await refused({ action: 'show', entries, __proto__x: 1 })).toMatch(
    /^"__proto__x" is not a valid field/,
  );
  expect(await refused({ action: 'show', entries: [{ key: '', value: '' }] })).toBe(
    'entries [0].key must not be empty',
  );
  expect(await refused({ action: 'show', entries: [{ key: 'a', value: '\ud800' }] })).toMatch(/UTF-8$/);
  expect(await refused({ action: 'show', entries, limit: '5/fortnight' })).toMatch(
    /^limit must be a limit such as/,
  );
  expect(await refused({ action: 'grant', entries, tokens: 0.5 })).toMatch(/^tokens must be a whole number/);
  expect(await refused({ action: 'show', domain: 'e', entries })).toMatch(
    /^no policy in effect has the domain "e"/,
  );
});
