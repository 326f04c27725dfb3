import { beforeEach, describe, expect, test } from '@jest/globals';
import type { BucketAction, BucketQuestion } from '../../../../src/admin/buckets/messages.js';
import { StorageError } from '../../../../src/limiter/bucket-store.js';
import { MemoryControlBook } from '../../../../src/storage/controls/memory-control-book.js';
import { AdminBench, entriesOf } from '../../../support/buckets/admin-bench.js';

const POLICY = `
domain: d
derive:
  - { entry: tenant, from: [api_key], sha256: { "${'0'.repeat(64)}": acme } }
descriptors:
  - key: tenant
    rate_limit: { unit: hour, requests_per_unit: 10 }
    descriptors:
      - { key: user, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: authorization, rate_limit: { unit: hour, requests_per_unit: 5 } }
---
domain: e
descriptors:
  - { key: tenant, rate_limit: { unit: hour, requests_per_unit: 10 } }
`;

const MEMORY =
  'Buckets are in memory, so blocks and exemptions apply only to this process, and end when this process stops.';

let bench: AdminBench;
beforeEach(() => {
  bench = new AdminBench(POLICY);
});
const ask = (action: BucketAction, entries: string, more: Partial<BucketQuestion> = {}) =>
  bench.ask({ action, domain: 'd', entries: entriesOf(entries), ...more });
const blocks = async () => (await bench.ask({ action: 'blocks' })).controls;

test('a block can be created, shown, listed and ended', async () => {
  const made = await ask('block', 'tenant=acme', { for: '10m', reason: 'abuse' });
  const control = {
    id: expect.stringMatching(/^[0-9a-f]{16}$/),
    kind: 'block',
    domain: 'd',
    identity: entriesOf('tenant=acme'),
    reason: 'abuse',
    by: 'ops',
    ends_in: 600,
  };
  expect(made).toMatchObject({ action: 'block', domain: 'd', controls: [control] });
  expect(made.notes).toEqual([MEMORY, 'Affects 2 limits.']);
  bench.clock.advance(1_000_000);
  expect(await blocks()).toEqual([{ ...control, ends_in: 599 }]);
  for (const entries of ['tenant=acme', 'tenant=acme,user=bob', 'user=bob,tenant=acme']) {
    expect((await ask('show', entries)).controls).toHaveLength(1);
  }
  expect((await ask('show', 'tenant=other')).controls).toEqual([]);
  expect((await ask('unblock', 'tenant=acme')).controls).toMatchObject([{ reason: 'abuse' }]);
  expect(await blocks()).toEqual([]);
  expect(bench.counted.filter((one) => !/^(show|blocks)/.test(one))).toEqual(['block ok', 'unblock ok']);
});

test('expires', async () => {
  await ask('allow', 'tenant=acme', { for: '10m' });
  bench.clock.advance(600_000_000 - 1);
  expect(await blocks()).toHaveLength(1);
  bench.clock.advance(1);
  expect(await blocks()).toEqual([]);
});

test('replaces an equal one, and a block overrides an exemption', async () => {
  await ask('block', 'tenant=acme', { for: '10m' });
  const again = await ask('block', 'tenant=acme', { for: '1h' });
  expect(again.notes.at(-1)).toMatch(
    /^This change replaces [0-9a-f]{16}, which would have expired in 600 seconds\.$/,
  );
  expect(await blocks()).toMatchObject([{ ends_in: 3600 }]);
  const allowed = await ask('allow', 'tenant=acme,user=bob', { for: '1h' });
  expect(allowed.notes.join()).toContain('takes precedence');
});

test('accepts entries before derive, and neither stores nor shows secrets', async () => {
  await ask('block', 'api_key=hunter2', { for: '1h' });
  await ask('block', 'authorization=swordfish', { for: '1h' });
  const shown = await blocks();
  expect(shown.map(({ identity }) => identity[0]?.key).sort()).toEqual(['authorization', 'tenant']);
  expect((await ask('show', 'authorization=swordfish')).controls).toHaveLength(1);
  expect(JSON.stringify([shown, bench.logged])).not.toMatch(/hunter2|swordfish/);
});

describe('a dry run', () => {
  test('changes nothing', async () => {
    const dry = await ask('block', 'tenant=acme', { for: '10m', dry_run: true });
    expect(dry).toMatchObject({ dry_run: true, controls: [{ id: '', ends_in: 600 }] });
    expect(await blocks()).toEqual([]);
    await ask('block', 'tenant=acme', { for: '10m' });
    expect((await ask('unblock', 'tenant=acme', { dry_run: true })).controls).toHaveLength(1);
    expect(await blocks()).toHaveLength(1);
    expect(bench.counted.filter((one) => one.endsWith('dry_run'))).toEqual([
      'block dry_run',
      'unblock dry_run',
    ]);
  });
});

test('can be ended by its id, with any domain and policy', async () => {
  const [{ id } = { id: '' }] = (await ask('block', 'tenant=acme', { for: '10m' })).controls;
  expect(await bench.refused({ action: 'disallow', id })).toBe(
    `404 no exemption has the id "${id}"; use unblock for this id`,
  );
  expect(await bench.refused({ action: 'unblock', id, domain: 'e' })).toMatch(/^404 no block has the id/);
  bench.policies = new Map();
  expect(await bench.ask({ action: 'unblock', id })).toMatchObject({ domain: 'd', meets: 'none' });
  expect(await bench.refused({ action: 'unblock', id })).toBe(
    `404 no block has the id "${id}"; run weir bucket blocks to list all blocks and exemptions`,
  );
});

test('can be ended only by exactly its entries', async () => {
  await ask('block', 'tenant=acme', { for: '10m' });
  const refused = (action: string, entries: string, domain = 'd') =>
    bench.refused({ action, domain, entries: entriesOf(entries) });
  expect(await refused('unblock', 'tenant=acme,user=bob')).toMatch(/^404 no block has exactly these entries/);
  expect(await refused('unblock', 'tenant=acme', 'e')).toMatch(/^404/);
  expect(await refused('disallow', 'tenant=acme')).toMatch(/^404 no exemption has/);
});

test('reports that no rule is affected, and lists the sources of derive', async () => {
  const { notes } = await ask('allow', 'path=/x', { for: '1m' });
  expect(notes).toEqual([
    MEMORY,
    'No limit in the policy applies to these descriptors, so the exemption affects only overrides in requests.',
    'Before matching, weir derives entries from api_key.',
  ]);
});

test('reports that a control cannot be stored, or that the index is full or does not answer', async () => {
  const question = { action: 'block', domain: 'd', for: '1m' };
  const long = [{ key: 'tenant', value: 'a'.repeat(1025) }];
  expect(await bench.refused({ ...question, entries: long })).toBe(
    '400 the value of tenant is longer than 1024 bytes',
  );
  bench = new AdminBench(POLICY, false, new MemoryControlBook(() => 0, 1));
  await ask('block', 'tenant=a', { for: '1m' });
  expect(await bench.refused({ ...question, entries: entriesOf('tenant=b') })).toMatch(
    /^409 the maximum of 10000 blocks and exemptions is reached/,
  );
  bench = new AdminBench(POLICY);
  for (let n = 0; n < 64; n++) await ask('block', `k${n}=v`, { for: '1m' });
  await ask('block', 'k1=w', { for: '1m' });
  expect(await bench.refused({ ...question, entries: entriesOf('k0=v,k1=v') })).toMatch(
    /^409 the blocks and exemptions in "d" already use the maximum of 64 different sets of keys\. /,
  );
  const book = new MemoryControlBook(() => 0);
  bench = new AdminBench(POLICY, true, {
    isPersistent: true,
    firstRead: { awaited: undefined },
    isCurrent: true,
    put: async () => new StorageError('timeout', 'no answer within 20ms'),
    end: async () => new StorageError('breaker_open', 'Redis failed 5 times'),
    announceGrants: (keys) => book.announceGrants(keys),
    onChange: (listener) => book.onChange(listener),
    close: () => book.close(),
  });
  expect(await bench.refused({ ...question, entries: entriesOf('tenant=b') })).toMatch(
    /^503 the store failed \(.*\), so the result is unknown; check .* blocks \[maybe done\]$/,
  );
  expect(bench.logged).toMatchObject([{ fields: { action: 'block', result: 'failed' } }]);
});

test('a control that another process has just created can be ended immediately', async () => {
  const book = new MemoryControlBook(() => bench.clock.monotonicMicros());
  bench = new AdminBench(POLICY, true, {
    isPersistent: true,
    firstRead: { awaited: undefined },
    isCurrent: true,
    put: (control) => book.put(control),
    end: (ids) => book.end(ids),
    announceGrants: (keys) => book.announceGrants(keys),
    onChange: (listener) => book.onChange(listener),
    close: () => book.close(),
  });
  const ended = ask('unblock', 'tenant=acme');
  setTimeout(() => {
    const identity = [{ key: 'tenant', value: 'acme', secret: false }];
    void book.put({
      id: 'a',
      kind: 'block',
      domain: 'd',
      identity,
      reason: '',
      by: 'x',
      durationMicros: 60_000_000,
    });
  }, 20);
  expect((await ended).controls).toMatchObject([{ id: 'a', by: 'x' }]);
});

test.each([1, 9])(
  'one that other processes replace %d times is ended, or named as what goes on',
  async (times) => {
    const book = new MemoryControlBook(() => bench.clock.monotonicMicros());
    let replaced = 0;
    const renewed = async (): Promise<void> => {
      const identity = [{ key: 'tenant', value: 'acme', secret: false }];
      const about = {
        kind: 'block',
        domain: 'd',
        reason: 'again',
        by: 'others',
        durationMicros: 7e9,
      } as const;
      await book.put({ ...about, id: `n${replaced}`, identity });
    };
    bench = new AdminBench(POLICY, true, {
      isPersistent: true,
      firstRead: { awaited: undefined },
      isCurrent: true,
      put: (control) => book.put(control),
      async end(ids) {
        if (replaced++ < times) {
          await renewed();
          return 'gone';
        }
        return book.end(ids);
      },
      announceGrants: (keys) => book.announceGrants(keys),
      onChange: (listener) => book.onChange(listener),
      close: () => book.close(),
    });
    await ask('block', 'tenant=acme', { for: '10m' });
    if (times > 5) {
      expect(
        await bench.refused({ action: 'unblock', domain: 'd', entries: entriesOf('tenant=acme') }),
      ).toMatch(/^409 other operators keep replacing this block/);
      return;
    }
    expect((await ask('unblock', 'tenant=acme')).controls).toMatchObject([{ id: 'n1', reason: 'again' }]);
    expect(await blocks()).toEqual([]);
  },
);

test('an unreadable list is not reported as empty', async () => {
  const book = new MemoryControlBook(() => 0);
  bench = new AdminBench(POLICY, true, {
    isPersistent: true,
    firstRead: { awaited: undefined },
    isCurrent: false,
    put: (control) => book.put(control),
    end: (ids) => book.end(ids),
    announceGrants: (keys) => book.announceGrants(keys),
    onChange: (listener) => book.onChange(listener),
    close: () => book.close(),
  });
  expect((await bench.ask({ action: 'blocks' })).notes).toEqual([
    'Blocks and exemptions cannot currently be read from Redis, so this is the last known list.',
  ]);
  const question = { action: 'unblock' as const, domain: 'd', entries: entriesOf('tenant=acme') };
  expect(await bench.refused(question)).toMatch(
    /^503 Blocks and exemptions cannot currently be read from Redis, so/,
  );
});

test('lists controls up to the maximum of an answer, and counts the rest', async () => {
  for (let i = 0; i < 1005; i++) {
    await bench.book.put({
      id: `c${i}`,
      kind: i % 2 === 0 ? 'block' : 'allow',
      domain: i < 1003 ? 'd' : 'e',
      identity: [{ key: 'tenant', value: `t${i}`, secret: false }],
      reason: '',
      by: 'x',
      durationMicros: 60_000_000,
    });
  }
  expect(await bench.ask({ action: 'blocks' })).toMatchObject({
    more_controls: 5,
    controls: { length: 1000 },
  });
  expect(await bench.ask({ action: 'blocks', domain: 'e' })).toMatchObject({ controls: { length: 2 } });
});
