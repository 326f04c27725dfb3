import { describe, expect, test } from '@jest/globals';
import { Columns } from '../../../src/replay/log/columns.js';
import { Replay, type ReplayOptions } from '../../../src/replay/replay.js';
import { GroupTally } from '../../../src/replay/tally/group-tally.js';
import { setOf } from '../../support/policy/policies.js';

const START_MICROS = Date.parse('2026-11-20T09:00:00Z') * 1000;

interface Logged {
  readonly seconds: number;
  readonly tenant: string;
  readonly hits?: number;
  readonly code?: number;
  readonly duration?: number;
}

const bucket = (max: number, more = '') => `domain: shop
descriptors:
  - key: tenant
    ${more}rate_limit: { token_bucket: { max_tokens: ${max}, fill_interval: 10s } }
`;

/** Replays requests whose times have milliseconds. */
async function replayed(
  options: { readonly after: string; readonly before?: string; readonly warmMicros?: number },
  requests: readonly Logged[],
  more: Partial<ReplayOptions> = {},
): Promise<Replay> {
  const columns = new Columns();
  const [tenant, code, duration] = ['REQ(x-tenant)', 'RESPONSE_CODE', 'DURATION'].map((operator) =>
    columns.indexOf(operator),
  ) as [number, number, number];
  const hitsAt = columns.indexOf('HITS');
  const replay = new Replay({
    after: setOf(options.after),
    before: options.before === undefined ? undefined : setOf(options.before),
    callsOf: (values) => [
      {
        domain: 'shop',
        start: [
          {
            entries: [{ key: 'tenant', value: values[tenant] ?? '' }],
            limit: undefined,
            hitsAddend: Number(values[hitsAt]),
            isNegativeHits: false,
          },
        ],
        end: [],
      },
    ],
    columns,
    groups: [new GroupTally('tenant', undefined)],
    holdNames: { metadataKey: 'hold', entry: 'hold' },
    warmMicros: options.warmMicros ?? 0,
    ...more,
  });
  const rows = requests.map((request) => {
    const values = columns.operators.map((): string | undefined => undefined);
    values[tenant] = request.tenant;
    values[code] = String(request.code ?? 200);
    values[duration] = String(request.duration ?? 1);
    values[hitsAt] = String(request.hits ?? 1);
    return { startMicros: START_MICROS + request.seconds * 1e6, precisionMicros: 1000, values };
  });
  await replay.add(rows);
  replay.finish();
  return replay;
}

const DERIVED = `domain: shop
derive:
  - entry: company
    from: [tenant]
    rules: [{ tenant: acme-eu, value: acme }, { tenant: acme-us, value: acme }]
descriptors:
  - key: company
    rate_limit: { token_bucket: { max_tokens: 2, fill_interval: 1000s } }
`;

const exactly = (count: number) => ({ least: count, most: count });

describe('Replay', () => {
  test('counts groups by an entry that the new policy derives, or that Envoy sends', async () => {
    const requests = ['acme-eu', 'acme-us', 'acme-eu', 'globex'].map((tenant, seconds) => ({
      seconds,
      tenant,
    }));
    const groups = ['company', 'tenant'].map((key) => new GroupTally(key, undefined));
    await replayed({ after: DERIVED }, requests, { groups });
    const counts = groups.map((group) =>
      group.report(9).shown.map(({ value, requests: all, deniedAfter }) => [value, all, deniedAfter.most]),
    );
    expect(counts).toEqual([
      [['acme', 3, 1]],
      [
        ['acme-eu', 2, 1],
        ['acme-us', 1, 0],
      ],
    ]);
  });

  test.each([1, 200, 255, 300, 700])(
    'leaves all verdicts open of a hot key whose requests have the same time, for %i of 800 that fit',
    async (fit) => {
      const hot = Array.from({ length: 800 }, () => ({ seconds: 0, tenant: 'acme' }));
      const { tally } = await replayed({ after: bucket(fit) }, hot);
      expect(tally.total()).toMatchObject({ uncertain: 800, deniedAfter: exactly(800 - fit) });
    },
  );

  test('knows the verdicts of a hot key whose requests all fit', async () => {
    const hot = Array.from({ length: 800 }, () => ({ seconds: 0, tenant: 'acme' }));
    const { tally } = await replayed({ after: bucket(800) }, hot);
    expect(tally.total()).toMatchObject({ uncertain: 0, deniedAfter: exactly(0) });
  });

  test('compares the new policy with what the log says', async () => {
    const { tally } = await replayed({ after: bucket(2) }, [
      { seconds: 0, tenant: 'acme' },
      { seconds: 1, tenant: 'acme' },
      { seconds: 2, tenant: 'acme' },
      { seconds: 3, tenant: 'acme', code: 429 },
      { seconds: 4, tenant: 'zoo', code: 429 },
    ]);
    expect(tally.total()).toMatchObject({
      requests: 5,
      deniedBefore: 2,
      deniedAfter: exactly(2),
      newlyDenied: exactly(1),
      newlyAllowed: exactly(1),
      firstDenied: '2026-11-20T09:00:02.000Z',
      longestDeniedSeconds: 1,
    });
    expect(tally.groups[0]?.report(1)).toMatchObject({
      by: 'tenant',
      count: 2,
      affected: exactly(1),
      shown: [{ value: 'acme', requests: 4, newlyDenied: exactly(1), deniedSteps: [0] }],
    });
  });

  test('orders callers by their losses, and then by the largest part of a limit that they needed', async () => {
    const { tally, after } = await replayed({ after: bucket(4) }, [
      ...Array.from({ length: 9 }, (_, at) => ({ seconds: 100 * at, tenant: 'calm' })),
      ...[1000, 1000.5, 1001].map((seconds) => ({ seconds, tenant: 'next' })),
      ...[2000, 2001, 2002, 2003, 2004, 2005].map((seconds) => ({ seconds, tenant: 'acme' })),
    ]);
    const shown = tally.groups[0]?.report(3).shown ?? [];
    expect(shown.map(({ value, peakUse }) => [value, Math.round(peakUse * 10) / 10])).toEqual([
      ['acme', 1.4],
      ['next', 0.7],
      ['calm', 0.3],
    ]);
    expect(shown[0]).toMatchObject({
      firstDenied: '2026-11-20T09:33:24.000Z',
      lastDenied: '2026-11-20T09:33:25.000Z',
    });
    const [rule] = tally.rules(after.buckets.all(), true);
    expect(rule?.peakUse).toBeCloseTo(1.4, 1);
  });

  test('compares two policies', async () => {
    const requests = [0, 1, 2, 3].map((seconds) => ({ seconds, tenant: 'acme' }));
    const { tally } = await replayed({ after: bucket(3), before: bucket(1) }, requests);
    expect(tally.total()).toMatchObject({
      deniedBefore: 3,
      deniedAfter: exactly(1),
      newlyAllowed: exactly(2),
    });
    const tightened = await replayed({ after: bucket(1), before: bucket(3) }, requests);
    expect(tightened.tally.total()).toMatchObject({ newlyDenied: exactly(2), newlyAllowed: exactly(0) });
  });

  test('leaves open which of several requests in one millisecond were denied, but not how many', async () => {
    const replay = await replayed({ after: bucket(2) }, [
      { seconds: 0, tenant: 'acme' },
      { seconds: 1, tenant: 'acme' },
      { seconds: 1, tenant: 'acme' },
    ]);
    expect(replay.tally.uncertain).toBe(2);
    expect(replay.tally.total().newlyDenied).toEqual(exactly(1));
  });

  test('knows within one request how many were denied of a tenant that always asks too much', async () => {
    // The eleventh token is there in the millisecond of a request.
    const requests = Array.from({ length: 1000 }, (_, i) => ({ seconds: i, tenant: 'acme' }));
    const replay = await replayed({ after: bucket(10) }, requests);
    const { newlyDenied } = replay.tally.total();
    expect(replay.tally.uncertain).toBeGreaterThan(100);
    expect(newlyDenied.most - newlyDenied.least).toBeLessThanOrEqual(2);
  });

  test('reports no change for callers whose limits did not change, even if their verdicts are open', async () => {
    const requests = Array.from({ length: 1000 }, (_, i) => ({
      seconds: i,
      tenant: i % 20 === 0 ? 'zoo' : 'acme',
    }));
    const other = `${bucket(10)}  - { key: tenant, value: zoo, rate_limit: { unit: day, requests_per_unit: 1 } }\n`;
    const replay = await replayed({ before: bucket(10), after: other }, requests);
    const report = replay.tally.groups[0]?.report(2);
    const none = { newlyDenied: exactly(0), newlyAllowed: exactly(0) };
    expect(replay.tally.uncertain).toBeGreaterThan(100);
    expect(report?.affected).toEqual(exactly(1));
    expect(report?.shown).toMatchObject([{ value: 'zoo' }, { value: 'acme', ...none, deniedSteps: [] }]);
    const same = await replayed({ before: other, after: other }, requests);
    expect(same.tally.total()).toMatchObject(none);
  });

  test('is certain that requests in one millisecond pass a full bucket', async () => {
    const { tally } = await replayed({ after: bucket(2) }, [
      { seconds: 0, tenant: 'acme' },
      { seconds: 0, tenant: 'acme' },
      { seconds: 40, tenant: 'acme' },
      { seconds: 40, tenant: 'acme' },
    ]);
    expect([tally.uncertain, tally.total().newlyDenied]).toEqual([0, exactly(0)]);
  });

  test('counts all requests of a log whose clock is set back', async () => {
    const hour = Array.from({ length: 360 }, (_, i) => ({ seconds: 10 * i, tenant: `tenant-${i % 2}` }));
    const later = hour.map((request) => ({ ...request, seconds: request.seconds + 3600 }));
    const replay = await replayed({ after: bucket(1) }, [...later, ...hour]);
    expect(replay.tally.total().requests).toBe(720);
    // The first ones could be single late requests, which are decided at the time of their predecessor.
    expect(replay.tally.total().newlyDenied.most).toBeLessThanOrEqual(12);
    expect(replay.clockSteps).toBe(1);
    expect(replay.firstMicros).toBe(START_MICROS);
  });

  test('tells the capacity that would have denied nobody, and how callers use the limit', async () => {
    const requests = [0, 1, 2, 3, 4, 5].map((seconds) => ({ seconds, tenant: 'acme' }));
    const replay = await replayed({ after: bucket(2) }, [...requests, { seconds: 6, tenant: 'zoo' }]);
    const [rule] = replay.tally.rules(replay.after.buckets.all(), true);
    expect(rule).toMatchObject({
      domain: 'shop',
      rule: 'tenant',
      callers: 2,
      deniedCallers: 1,
      // 6 requests in 5 seconds, in which half a token refills.
      capacity: { none: 6 },
    });
    expect(rule?.use.filter(({ callers }) => callers > 0)).toEqual([
      { upTo: 0.5, callers: 1 },
      { upTo: 5, callers: 1 },
    ]);
    const [unknown] = replay.tally.rules([], false);
    expect(unknown).not.toHaveProperty('capacity');
  });

  test('a charge needs no capacity, but the requests after it do', async () => {
    const policy = bucket(2).replace('10s } }', '10s }, allow_debt: true, max_debt: 50 }');
    const capacityOf = async (hits: readonly number[]) => {
      const requests = hits.map((each, seconds) => ({ seconds: seconds / 1000, tenant: 'acme', hits: each }));
      const replay = await replayed({ after: policy }, requests);
      return replay.tally.rules(replay.after.buckets.all(), true)[0]?.capacity?.none;
    };
    expect(await capacityOf([1, 40])).toBe(1);
    expect(await capacityOf([1, 40, 1])).toBe(42);
  });

  test('does not count the time in which buckets warm up', async () => {
    const requests = [0, 1, 2, 3].map((seconds) => ({ seconds, tenant: 'acme' }));
    const { tally } = await replayed({ after: bucket(2), warmMicros: 1_500_000 }, requests);
    expect(tally.total()).toMatchObject({ requests: 2, newlyDenied: exactly(2) });
  });

  test('denies a share of the requests with enforce_percent, and none in monitoring', async () => {
    const requests = Array.from({ length: 201 }, (_, i) => ({ seconds: i / 1000, tenant: 'acme' }));
    const shared = await replayed({ after: bucket(1, 'enforce_percent: 25\n    ') }, requests);
    expect(shared.tally.total().deniedAfter.most).toBeGreaterThanOrEqual(49);
    expect(shared.tally.total().deniedAfter.most).toBeLessThanOrEqual(51);
    const watched = await replayed({ after: bucket(1, 'phase: monitoring\n    ') }, requests);
    expect(watched.tally.total().deniedAfter).toEqual(exactly(0));
    const [rule] = watched.tally.rules([], true);
    expect(rule).toMatchObject({ wouldBeThrottled: 200 });
  });

  test('decides phases at the time of the log', async () => {
    const phased = bucket(1, 'phase: { active: 2026-11-20T09:00:02Z }\n    ');
    const requests = [0, 1, 2, 3].map((seconds) => ({ seconds, tenant: 'acme' }));
    expect((await replayed({ after: phased }, requests)).tally.total().deniedAfter).toEqual(exactly(2));
  });

  test('counts requests that no limit applies to apart', async () => {
    const { tally } = await replayed({ after: bucket(1).replace('tenant', 'other') }, [
      { seconds: 0, tenant: 'acme' },
    ]);
    expect([tally.unlimited, tally.total().requests]).toEqual([1, 0]);
  });
});

test('candidates are counted next to the limits in force, which decide', async () => {
  const after = bucket(3, 'candidate: { token_bucket: { max_tokens: 1, fill_interval: 10s } }\n    ');
  const requests = [0, 1, 2, 3].map((seconds) => ({ seconds, tenant: 'acme' }));
  const { tally } = await replayed({ after }, requests);
  expect(tally.total().deniedAfter).toEqual({ least: 1, most: 1 });
  expect(tally.candidates.report()).toEqual([
    { domain: 'shop', rule: 'tenant', requests: 4, denied: 3, newlyDenied: 2, newlyAllowed: 0 },
  ]);
  const warm = await replayed({ after, warmMicros: 1_500_000 }, requests);
  expect(warm.tally.candidates.report()).toMatchObject([{ requests: 2, denied: 2, newlyDenied: 1 }]);
  expect((await replayed({ after: bucket(3) }, requests)).tally.candidates.report()).toEqual([]);
});
