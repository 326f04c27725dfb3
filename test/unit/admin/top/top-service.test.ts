import { describe, expect, test } from '@jest/globals';
import type { TopAnswer } from '../../../../src/admin/buckets/messages.js';
import { reportTop, topService } from '../../../../src/admin/top/top-answer.js';
import type { HttpCall } from '../../../../src/http/http.js';
import type { PolicySet } from '../../../../src/policy/compiled-policy.js';
import { TopBuckets, type TopMeasure } from '../../../../src/telemetry/top/top-buckets.js';
import { seededRandom } from '../../../support/limiter/seeded-random.js';
import { parsePolicy } from '../../../support/policy/parse-policy.js';

const CALLER = { by: 'loopback', peer: '127.0.0.1', right: 'write' } as const;
const CALL = {} as HttpCall;

/** A process that decides and counts. */
class Counting {
  micros = 0;
  readonly top: TopBuckets;

  constructor(capacity = 100) {
    this.top = new TopBuckets({ capacity, nowMicros: () => this.micros, random: seededRandom(1) });
  }

  count(measure: TopMeasure, tenant: string, hits: number, usedRatio = 0.5): void {
    const about = this.top.find(tenant) ?? {
      key: tenant,
      domain: 'd',
      rule: 'tenant',
      entries: [{ key: 'tenant', value: tenant }],
      usedRatio,
    };
    this.top.count(measure, about, this.top.samplers[measure].take(hits));
  }
}

const { policy: shop } = parsePolicy(
  'shop.yaml',
  Buffer.from(
    'domain: shop\ndescriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: 5 } }]\n',
  ),
  () => undefined as never,
);
const inForce: PolicySet = { domains: new Map(shop && [[shop.domain, shop]]), version: 'test' };

/** Returns the service of `/top` for these processes. `secrets` are the secret keys of the current policy. */
function service(
  processes: readonly Counting[],
  capacity = 100,
  secrets: readonly string[] = [],
  policies: PolicySet | null = inForce,
) {
  return topService({
    capacity,
    secretKeys: () => new Set(secrets),
    policies: () => policies ?? undefined,
    ask: (ask) => Promise.resolve(processes.map(({ top }) => reportTop(top, ask))),
  });
}

/** Formats an answer with status 200 as lines of `tenant denied±error used±error`. */
function lines({ top }: TopAnswer): readonly string[] {
  return top.map(
    ({ entries, denied, denied_error, used, used_error }) =>
      `${entries[0]?.value} ${denied}±${denied_error} ${used}±${used_error}`,
  );
}

async function answered(processes: readonly Counting[], question: object): Promise<TopAnswer> {
  const { status, body } = await service(processes).answer(question, CALLER, CALL);
  expect(status).toBe(200);
  return body as TopAnswer;
}

test('a single process returns all its buckets', async () => {
  const counting = new Counting();
  counting.micros = 5_000_000;
  counting.count('denied', 'acme', 3);
  counting.count('used', 'acme', 10, 0.9);
  counting.count('used', 'umbrella', 20);
  expect(await answered([counting], {})).toEqual({
    server: expect.any(String),
    of: 'minute',
    by: 'denied',
    covers: 5,
    error: { denied: 0, used: 0 },
    sampled: 1,
    top: [
      {
        domain: 'd',
        rule: 'tenant',
        entries: [{ key: 'tenant', value: 'acme' }],
        denied: 3,
        denied_error: 0,
        used: 10,
        used_error: 0,
        used_ratio: 0.5,
      },
      {
        domain: 'd',
        rule: 'tenant',
        entries: [{ key: 'tenant', value: 'umbrella' }],
        denied: 0,
        denied_error: 0,
        used: 20,
        used_error: 0,
        used_ratio: 0.5,
      },
    ],
  });
  expect(lines(await answered([counting], { by: 'used', of: 'hour', limit: 1 }))).toEqual([
    'umbrella 0±0 20±0',
  ]);
  expect(lines(await answered([counting], { by: 'used', rule: 'override' }))).toEqual([]);
});

test('adds up several processes, including buckets that are at the top in none of them', async () => {
  const processes = [new Counting(), new Counting(), new Counting()];
  for (const [at, counting] of processes.entries()) {
    for (let tenant = 0; tenant < 95; tenant++) counting.count('used', `own ${at} ${tenant}`, 100 + tenant);
    counting.count('used', 'everywhere', 90, 0.1 * (at + 1));
    counting.count('denied', 'everywhere', at);
  }
  const answer = await answered(processes, { by: 'used', limit: 2 });
  expect(lines(answer)).toEqual(['everywhere 3±0 270±0', 'own 0 94 0±0 194±0']);
  expect(answer.top[0]?.used_ratio).toBeCloseTo(0.3);
});

test('adds up the errors of several processes', async () => {
  const processes = [new Counting(10), new Counting(10)];
  const random = seededRandom(2);
  const exact = new Map<string, number>();
  for (let at = 0; at < 800; at++) {
    const tenant = `t${Math.floor(random() ** 4 * 60)}`;
    (processes[at % 2] as Counting).count('denied', tenant, 1);
    exact.set(tenant, (exact.get(tenant) ?? 0) + 1);
  }
  const { top, error } = await answered(processes, { limit: 1000 });
  expect(error.denied).toBeGreaterThan(0);
  expect(error.denied).toBeLessThanOrEqual(800 / 11);
  expect(top.length).toBeGreaterThanOrEqual(10);
  for (const { entries, denied, denied_error } of top) {
    const truth = exact.get(entries[0]?.value ?? '') ?? 0;
    expect(denied).toBeGreaterThanOrEqual(truth);
    expect(denied - denied_error).toBeLessThanOrEqual(truth);
    expect(denied_error).toBeLessThanOrEqual(error.denied);
  }
});

test('does not show values that became secrets later', async () => {
  const counting = new Counting();
  counting.count('denied', 'sk-very-secret', 1);
  const { body } = await service([counting], 100, ['tenant']).answer({}, CALLER, CALL);
  expect(JSON.stringify(body)).not.toContain('very');
  expect(JSON.stringify(body)).toContain('[redacted sha256:');
});

describe('reports an error:', () => {
  test.each([
    [[], 'must be a JSON object'],
    [null, 'must be a JSON object'],
    ['x', 'must be a JSON object'],
    [{ of: 'day' }, 'of must be'],
    [{ domain: 1 }, 'domain must be'],
    [{ rule: [] }, 'rule must be'],
    [{ limit: 0 }, 'from 1 to 1000'],
    [{ limit: 1001 }, 'from 1 to 1000'],
    [{ limit: 1.5 }, 'from 1 to 1000'],
    [{ limit: '5' }, 'from 1 to 1000'],
    [{ bye: 'denied' }, '"bye"'],
    [{ ['x'.repeat(1000)]: 1 }, `"${'x'.repeat(100)}"`],
  ])('%j', async (question, part) => {
    const { status, body } = await service([new Counting()]).answer(question, CALLER, CALL);
    expect(status).toBe(400);
    expect((body as { error: string }).error).toContain(part);
  });

  test.each([
    [{ domain: 'shp' }, 'has the domain "shp" (did you mean "shop"?); the loaded domains are "shop"'],
    [
      { domain: 'nope', rule: 'tenant' },
      'no policy in effect has the domain "nope"; the loaded domains are "shop"',
    ],
    [{ domain: 'shop', rule: 'tenent' }, 'has the rule "tenent" in the domain "shop"; weir explain shows'],
    [{ rule: 'tenent' }, 'no policy in effect has the rule "tenent"; weir explain shows'],
  ])('%j, which has no counts', async (question, part) => {
    const { status, body } = await service([new Counting()]).answer(question, CALLER, CALL);
    expect([status, (body as { error: string }).error]).toEqual([400, expect.stringContaining(part)]);
  });

  test.each([
    [{ domain: 'nope' }, 400],
    [{ rule: 'tenant' }, 400],
    [{}, 200],
  ])('%j for a server without a policy', async (question, expected) => {
    const nothing = { domains: new Map(), version: '' };
    for (const policies of [nothing, null]) {
      const { status } = await service([new Counting()], 100, [], policies).answer(question, CALLER, CALL);
      expect(status).toBe(expected);
    }
  });

  test.each([
    { domain: 'shop' },
    { domain: 'shop', rule: 'tenant' },
    { rule: 'tenant' },
    { rule: 'override' },
    // This domain was in the policies an hour ago.
    { domain: 'd' },
  ])('accepts %j', async (question) => {
    const counting = new Counting();
    counting.count('denied', 'acme', 1);
    expect(await service([counting]).answer(question, CALLER, CALL)).toMatchObject({ status: 200 });
  });

  test('TOP_BUCKETS=0, and no process that answers', async () => {
    expect(await service([], 0).answer({}, CALLER, CALL)).toEqual({
      status: 503,
      body: { error: expect.stringContaining('TOP_BUCKETS is 0') },
    });
    expect(await service([]).answer({}, CALLER, CALL)).toEqual({
      status: 503,
      body: { error: expect.stringContaining('no worker process answers') },
    });
  });
});

test('answers one request at a time', async () => {
  const { top } = new Counting();
  let asking = 0;
  let most = 0;
  let fails = 1;
  const one = topService({
    capacity: 1,
    secretKeys: () => new Set(),
    policies: () => undefined,
    async ask(ask) {
      most = Math.max(most, ++asking);
      await new Promise((resolve) => setImmediate(resolve));
      asking--;
      if (fails-- > 0) throw new Error('broken');
      return [reportTop(top, ask)];
    },
  });
  const all = Array.from({ length: 20 }, () => Promise.resolve(one.answer({}, CALLER, CALL)));
  const settled = await Promise.allSettled(all);
  expect(most).toBe(1);
  const statuses = settled.map((each) => (each.status === 'fulfilled' ? each.value.status : 0));
  // The first question failed without an effect on the others.
  expect(statuses).toEqual([0, ...Array(19).fill(200)]);
});
