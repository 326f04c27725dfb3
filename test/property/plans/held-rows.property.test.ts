import { beforeAll, describe, test } from '@jest/globals';
import fc from 'fast-check';
import { CODE, type Descriptor, type RateLimitResponse } from '../../../src/codec/messages.js';
import { Refusal } from '../../../src/service/refusal.js';
import { expectAtMost, expectEqual } from '../../support/assert/quick-expect.js';
import { runs } from '../../support/assert/runs.js';
import { memoryBench, RedisBench } from '../../support/limiter/test-stores.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

/*
 * Rows change while requests are in flight, and two replicas with different versions of the table start and end the
 * requests. A model knows all holds, so that a lost hold, or one too many, is found by the next request.
 */

/** The row of a customer. */
type Row = { readonly n: number; readonly a: number } | 'unlimited' | 'blocked' | 'removed';

/** The limit, and the estimate, of customers without a row. */
const STANDARD = { n: 8, a: 2 };

const row: fc.Arbitrary<Row> = fc.oneof(
  {
    arbitrary: fc.record({ n: fc.integer({ min: 4, max: 12 }), a: fc.integer({ min: 1, max: 4 }) }),
    weight: 4,
  },
  fc.constantFrom('unlimited' as const, 'blocked' as const, 'removed' as const),
);
const rows = fc.array(row, { minLength: 2, maxLength: 5 });
const step = fc.record({
  replica: fc.integer({ min: 0, max: 1 }),
  /** Whether the replica reads the next version first. */
  reloads: fc.oneof({ arbitrary: fc.constant(false), weight: 3 }, fc.constant(true)),
  /** Index of the hold that ends. If it is -1, or nothing is held, a request starts. */
  ends: fc.oneof({ arbitrary: fc.constant(-1), weight: 3 }, fc.integer({ min: 0, max: 11 })),
  used: fc.integer({ min: 0, max: 6 }),
  isTwice: fc.boolean(),
});
const steps = fc.array(step, { minLength: 10, maxLength: 60 });

const CONCURRENCY = 'concurrency: { max: { plan: n, default: 8 }, expires_after: 1h }';
const RESERVATION =
  'algorithm: fixed_window, unit: year, requests_per_unit: { plan: n, default: 8 }, max_debt: 0, ' +
  'hold: { amount: { plan: a, default: 2 } }';

/** Returns a version of the policy. The plans are the rows, and each version has another customer. */
function policyWith(limit: string, customer: string, own: Row): string {
  const values =
    typeof own === 'string' ? `${own}: true` : `n: ${own.n}${limit === RESERVATION ? `, a: ${own.a}` : ''}`;
  const written = own === 'removed' ? '' : `, ${customer}: { ${values} }`;
  return `domain: d
plans: { by: tenant, define: { other: { n: 5 }${written} } }
descriptors: [{ key: tenant, rate_limit: { ${limit} } }]
`;
}

async function ask(decider: Decider, one: Descriptor): Promise<RateLimitResponse> {
  const answer = await decider.service.decide({ domain: 'd', descriptors: [one], hitsAddend: 0 });
  if (answer instanceof Refusal) throw new Error(answer.message);
  return answer;
}

interface Hold {
  readonly token: string;
  readonly amount: number;
}

/** Sends the requests of the steps, and compares each answer with the model. */
async function compare(
  limit: typeof CONCURRENCY | typeof RESERVATION,
  versions: readonly Row[],
  calls: typeof steps extends fc.Arbitrary<infer Steps> ? Steps : never,
  customer: string,
  replicas: readonly Decider[],
): Promise<void> {
  const isSlot = limit === CONCURRENCY;
  const texts = versions.map((own) => policyWith(limit, customer, own));
  const version = [0, 0];
  for (const decider of replicas) decider.reload(texts[0] as string);
  const open: Hold[] = [];
  /** Slots that are occupied, or hits that are counted. */
  let count = 0;
  const limitAt = (at: number): { readonly n: number; readonly a: number } => {
    const own = versions[at] as Row;
    return typeof own === 'string' ? STANDARD : own;
  };
  const end = async (decider: Decider, { token, amount }: Hold, used: number, n: number): Promise<void> => {
    const ended = await ask(decider, descriptor([`hold=${token}`], { hitsAddend: used }));
    expectEqual(ended.overallCode, CODE.OK);
    if (isSlot) count -= 1;
    else count += used <= amount ? used - amount : Math.min(used - amount, Math.max(0, n - count));
  };
  for (const { replica, reloads, ends, used, isTwice } of calls) {
    const decider = replicas[replica] as Decider;
    if (reloads && (version[replica] as number) < versions.length - 1) {
      version[replica] = (version[replica] as number) + 1;
      decider.reload(texts[version[replica] as number] as string);
    }
    const own = versions[version[replica] as number] as Row;
    const { n, a } = limitAt(version[replica] as number);
    if (ends >= 0 && open.length > 0) {
      const [hold] = open.splice(ends % open.length, 1) as [Hold];
      await end(decider, hold, used, n);
      // A second end, on the other replica, has no effect.
      if (isTwice)
        await ask(replicas[1 - replica] as Decider, descriptor([`hold=${hold.token}`], { hitsAddend: 0 }));
      continue;
    }
    const { overallCode, dynamicMetadata } = await ask(decider, descriptor([`tenant=${customer}`]));
    const amount = isSlot ? 1 : a;
    const isAllowed = own === 'unlimited' || (own !== 'blocked' && count + amount <= n);
    expectEqual(overallCode, isAllowed ? CODE.OK : CODE.OVER_LIMIT);
    const token = dynamicMetadata?.['hold'];
    expectEqual(token !== undefined, isAllowed && own !== 'unlimited');
    if (token === undefined) continue;
    open.push({ token: String(token), amount });
    count += amount;
    expectAtMost(count, Math.max(...versions.map((_, at) => limitAt(at).n)));
  }
  // All requests end, whatever the row is by then.
  for (const hold of open.splice(0)) await end(replicas[0] as Decider, hold, 0, 0);
  if (isSlot) expectEqual(count, 0);
  const [decider] = replicas as [Decider];
  decider.reload(policyWith(limit, customer, { n: 12, a: 1 }));
  const look = await ask(decider, descriptor([`tenant=${customer}`], { hitsAddend: 0 }));
  expectEqual(look.statuses[0]?.limitRemaining, 12 - count);
}

/** Number of customers so far. Each run has its own. */
let run = 0;

describe.each([
  ['memory', memoryBench()],
  ['Redis', new RedisBench('redis-server')],
] as const)('changed rows of requests in flight, in %s', (name, bench) => {
  let replicas: readonly Decider[];
  beforeAll(async () => {
    await bench.start();
    const first = await bench.open();
    const second = name === 'memory' ? first : await bench.open();
    const policy = policyWith(CONCURRENCY, 'c', 'removed');
    replicas = [first, second].map((store) => new Decider(policy, { store }));
  });

  test.each([
    ['slots', CONCURRENCY],
    ['reservations', RESERVATION],
  ] as const)('lose no %s, and admit no more than the larger limit', async (_, limit) => {
    await fc.assert(
      fc.asyncProperty(rows, steps, async (versions, calls) => {
        await compare(limit, versions, calls, `c${run++}`, replicas);
      }),
      runs(200),
    );
  });

  test.each([
    ['a window', 'algorithm: fixed_window, unit: year, requests_per_unit: 40, max_debt: 0'],
    ['a token bucket', 'algorithm: token_bucket, unit: year, requests_per_unit: 40'],
  ])('with pair: oldest, end also for a blocked customer, whose %s stays', async (_, limit) => {
    const customer = `c${run++}`;
    const policyOf = (plan: string): string =>
      `domain: d\nplans: { by: tenant, define: { other: { n: 5 }, ${customer}: { ${plan} } } }\ndescriptors:\n` +
      `  - { key: tenant, rate_limit: { ${limit}, hold: { amount: 5, pair: oldest } } }\n` +
      '  - { key: x, descriptors: [{ key: tenant, rate_limit: ' +
      '{ unit: day, requests_per_unit: { plan: n, default: 1 } } }] }\n';
    const [decider] = replicas as [Decider];
    const call = (hitsAddend: number) => ask(decider, descriptor([`tenant=${customer}`], { hitsAddend }));
    const version = (plan: string) => decider.reload(policyOf(plan));
    version('n: 1');
    await call(0);
    await call(0);
    version('blocked: true');
    expectEqual((await call(0)).overallCode, CODE.OVER_LIMIT);
    await call(2);
    expectEqual((await call(0)).overallCode, CODE.OVER_LIMIT);
    version('n: 1');
    // One hold of 5, a use of 2, and this request.
    expectEqual((await call(0)).statuses[0]?.limitRemaining, 40 - 5 - 2 - 5);
  });
});
