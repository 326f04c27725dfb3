/* Ends of requests in calls that are refused, or whose limits are not decided. */
import { describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor, type RateLimitResponse } from '../../../../src/codec/messages.js';
import { type BucketStore, StorageError, type Take } from '../../../../src/limiter/bucket-store.js';
import { BrokenInvariant } from '../../../../src/runtime/invariant.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../../src/service/caller.js';
import {
  decodeToken,
  MAX_TOKEN_CHARACTERS,
  type TokenHold,
} from '../../../../src/service/holds/hold-token.js';
import { Refusal } from '../../../../src/service/refusal.js';
import { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { inventedToken } from '../../../support/limiter/hold-tokens.js';
import { MEMORY } from '../../../support/limiter/store-options.js';
import { Decider, type DeciderOptions, descriptor } from '../../../support/policy/decider.js';
import { waitFor } from '../../../support/process/wait-for.js';

const POLICY = `
domain: d
descriptors:
  - key: customer
    rate_limit: { name: exports, concurrency: { max: 1000000 } }
  - key: tenant
    rate_limit: { unit: day, requests_per_unit: 10000, hold: { amount: 4000 } }
  - key: bucket
    rate_limit: { token_bucket: { max_tokens: 100, fill_interval: 1h }, hold: { amount: 40 } }
  - key: free
    rate_limit: { unit: day, requests_per_unit: 10000, hold: { amount: 4000, unknown: free } }
`;
const acme = descriptor(['customer=acme']);

function tokenOf({ dynamicMetadata }: RateLimitResponse): string {
  return String(dynamicMetadata?.['hold']);
}

function left(decider: Decider, entry = 'customer=acme'): number | undefined {
  return decider.answer([descriptor([entry], { hitsAddend: 0 })]).statuses[0]?.limitRemaining;
}

function start(options?: DeciderOptions): { readonly decider: Decider; readonly end: Descriptor } {
  const decider = new Decider(POLICY, options);
  const token = tokenOf(decider.answer([acme]));
  expect(left(decider)).toBe(999_999);
  return { decider, end: descriptor([`hold=${token}`]) };
}

test.each<[string, readonly Descriptor[], DeciderOptions]>([
  ['an empty key', [descriptor(['=x'])], {}],
  ['an override with an unknown unit', [{ ...acme, limit: { requestsPerUnit: 1, unit: 99 } }], {}],
])('a call with %s is refused, and its token is settled', (_name, others, options) => {
  const { decider, end } = start(options);
  expect(decider.ask([...others, end])).toBeInstanceOf(Refusal);
  expect(left(decider)).toBe(1_000_000);
});

test.each<[string, (end: Descriptor) => readonly Descriptor[], DeciderOptions]>([
  ['late', (end) => [...Array.from({ length: 40 }, () => acme), end], {}],
  ['limits', (end) => [acme, acme, end], { maxLimits: 1 }],
  ['descriptors', (end) => [end, ...Array.from({ length: 128 }, () => acme)], {}],
  ['entries', (end) => [acme, end, descriptor(Array.from({ length: 1000 }, () => 'k=v'))], {}],
  ['request_bytes', (end) => [acme, end, descriptor([`customer=${'x'.repeat(70_000)}`])], {}],
  [
    'request_bytes',
    (end) => [{ ...end, entries: [...end.entries, { key: 'path', value: 'x'.repeat(70_000) }] }],
    {},
  ],
])('a call that is given up, because of %s, settles its token', async (why, descriptorsOf, options) => {
  const { decider, end } = start(options);
  const request = { domain: 'd', descriptors: descriptorsOf(end), hitsAddend: 0 };
  const caller = { ...CALLER_WITHOUT_DEADLINE, deadlineMicros: 1 };
  const answer = await decider.service.handle(decider.codec.encodeRequest(request), caller);
  if (answer instanceof Refusal) throw new Error(answer.message);
  expect(answer).toMatchObject({ overallCode: CODE.OVER_LIMIT });
  expect(decider.observer.told).toContain(`d ${why} denied`);
  expect(left(decider)).toBe(1_000_000);
});

test.each<[string, (token: string) => readonly Descriptor[]]>([
  ['request_bytes', (token) => [descriptor([token, `path=${'x'.repeat(70_000)}`], { hitsAddend: 9000 })]],
  [
    'entries',
    (token) => [descriptor([token, ...Array.from({ length: 1000 }, () => 'k=v')], { hitsAddend: 9000 })],
  ],
  [
    'descriptors',
    (token) => [
      descriptor([token, 'done=1']),
      ...Array.from({ length: 127 }, () => acme),
      descriptor([token], { hitsAddend: 9000 }),
    ],
  ],
])('a use beyond the bound %s does not free the estimate', async (_why, descriptorsOf) => {
  const decider = new Decider(POLICY);
  const token = tokenOf(decider.answer([descriptor(['free=acme'])]));
  const descriptors = descriptorsOf(`hold=${token}`);
  await decider.service.handle(decider.codec.encodeRequest({ domain: 'd', descriptors, hitsAddend: 0 }));
  expect(left(decider, 'free=acme')).toBe(6000);
  decider.answer([descriptor([`hold=${token}`], { hitsAddend: 0 })]);
  expect(left(decider, 'free=acme')).toBe(6000);
});

test('a call settles about 128 slots at once, and the others soon after', async () => {
  const decider = new Decider(POLICY);
  const ends = [1, 2, 3].map(() => descriptor([`hold=${tokenOf(decider.answer([acme], 1000))}`]));
  expect(decider.answer(ends).overallCode).toBe(CODE.OK);
  expect(left(decider)).toBe(998_000);
  await waitFor('the other settlements', () => left(decider) === 1_000_000);
  expect(decider.observer.told.filter((line) => line.includes('settled'))).toHaveLength(3);
});

test('the tokens of a call have a maximum length in total', async () => {
  const { decider, end } = start();
  await decider.answerLarge([descriptor([`hold=${'A'.repeat(262_100)}`]), end]);
  expect(left(decider)).toBe(999_999);
  decider.answer([end]);
  expect(left(decider)).toBe(1_000_000);
});

test('a call with many holds does not wait for all of them', async () => {
  const decider = new Decider(POLICY);
  const token = tokenOf(decider.answer([acme]));
  const [hold] = decodeToken(token) as [TokenHold];
  const forged = [1, 2, 3, 4].map(() =>
    descriptor([`hold=${inventedToken(Array.from({ length: 70 }, () => hold))}`]),
  );
  const settling = (): number => decider.observer.told.filter((line) => line === 'd unknown token').length;
  void decider.answerLarge([...forged, descriptor([`hold=${token}`])]);
  expect(settling()).toBe(128);
  await waitFor('the other settlements', () => left(decider) === 1_000_000);
  expect(settling()).toBe(280);
});

test.each(['OVER_LIMIT', 'OK'] as const)(
  'a call whose holds do not fit into a token gets %s',
  async (code) => {
    const policy = code === 'OK' ? `${POLICY}phase: monitoring\n` : POLICY;
    const decider = new Decider(policy);
    const customers = (count: number): readonly Descriptor[] =>
      Array.from({ length: count }, (_, i) => descriptor([`customer=${i}${'x'.repeat(100)}`]));
    const most = decider.answer(customers(30));
    expect(most.overallCode).toBe(CODE.OK);
    expect(tokenOf(most).length).toBeLessThanOrEqual(MAX_TOKEN_CHARACTERS);
    decider.answer([descriptor([`hold=${tokenOf(most)}`])]);
    expect(left(decider, customers(1)[0]?.entries.map(({ key, value }) => `${key}=${value}`)[0])).toBe(
      1_000_000,
    );
    const answer = await decider.answerLarge(customers(60));
    expect(answer).toMatchObject({ overallCode: CODE[code], dynamicMetadata: undefined });
    expect(decider.observer.told).toContain(code === 'OK' ? 'd hold_token' : 'd hold_token denied');
    expect((decider.options.store as MemoryStore).holdCount).toBe(0);
  },
);

describe('a call with an end of a rule with pair: oldest', () => {
  const OLDEST = `${POLICY}  - key: oldest
    rate_limit: { unit: day, requests_per_unit: 100, hold: { amount: 40, pair: oldest } }
`;
  const oldest = (hits: number): Descriptor => descriptor(['oldest=acme'], { hitsAddend: hits });
  const holds = (decider: Decider): number => (decider.options.store as MemoryStore).holdCount;
  const started = (options?: DeciderOptions): Decider => {
    const decider = new Decider(OLDEST, options);
    decider.answer([oldest(0)]);
    expect(holds(decider)).toBe(1);
    return decider;
  };

  test('settles the hold if it has too many limits', () => {
    const decider = started({ maxLimits: 1 });
    expect(decider.answer([oldest(10), acme]).overallCode).toBe(CODE.OVER_LIMIT);
    expect(holds(decider)).toBe(0);
  });

  test('settles the hold if another descriptor exceeds a bound of matching', async () => {
    const decider = started();
    decider.reload(`${OLDEST}  - key: path
    value_regex: '.*a.{400}b'
    rate_limit: { unit: hour, requests_per_unit: 100 }
`);
    const costly = descriptor([`path=${'ac'.repeat(20_000)}`]);
    expect((await decider.answerLarge([oldest(10), costly])).overallCode).toBe(CODE.OVER_LIMIT);
    expect(holds(decider)).toBe(0);
  });
});

/** A store that fails as told, before or after it has taken. */
class FaultyStore implements BucketStore {
  fault: 'broken' | 'unanswered' | 'unsent' | 'divided' | 'denied' | undefined;
  readonly #memory = new MemoryStore({ ...MEMORY, clock: new FakeClock() });

  take(takes: readonly Take[]) {
    if (this.fault === 'broken') throw new BrokenInvariant('a test');
    if (this.fault === 'unsent') return new StorageError('full', 'busy', { unsent: true });
    const outcomes = this.#memory.take(takes);
    if (this.fault === undefined || takes.some(({ settles }) => settles !== undefined)) return outcomes;
    if (this.fault === 'unanswered') return new StorageError('full', 'no answer');
    const abandoned = outcomes.map((outcome) => ({
      ...outcome,
      overLimit: true,
      hold: 'abandoned' as const,
    }));
    return this.fault === 'denied'
      ? abandoned
      : new StorageError('full', 'busy', { unsent: true, abandoned });
  }

  async close(): Promise<void> {}
}

test('a settlement that finds the store broken is repeated', async () => {
  const store = new FaultyStore();
  const { decider, end } = start({ store });
  store.fault = 'broken';
  expect(decider.answer([end]).overallCode).toBe(CODE.OK);
  store.fault = undefined;
  await waitFor('the settlement', () => left(decider) === 1_000_000);
});

test.each([
  ['customer=acme', 1_000_000],
  ['tenant=acme', 10_000],
  ['bucket=acme', 60],
])('the hold of %s ends if its start got no answer, except in a token bucket', async (entry, after) => {
  const store = new FaultyStore();
  const decider = new Decider(POLICY, { store });
  store.fault = 'unanswered';
  expect(decider.answer([descriptor([entry])]).overallCode).toBe(CODE.OVER_LIMIT);
  store.fault = undefined;
  await waitFor('the end of the hold', () => left(decider, entry) === after);
  store.fault = 'unsent';
  expect(decider.answer([descriptor([entry])]).overallCode).toBe(CODE.OVER_LIMIT);
});

test.each([
  ['divided', 'customer=acme', 1_000_000],
  ['divided', 'tenant=acme', 10_000],
  ['divided', 'bucket=acme', 100],
  ['denied', 'customer=acme', 1_000_000],
  ['denied', 'tenant=acme', 10_000],
  ['denied', 'bucket=acme', 100],
] as const)('an abandoned hold of a %s request for %s ends', async (fault, entry, after) => {
  const store = new FaultyStore();
  const decider = new Decider(POLICY, { store });
  store.fault = fault;
  const { overallCode, dynamicMetadata } = decider.answer([descriptor([entry])]);
  expect([overallCode, dynamicMetadata]).toEqual([CODE.OVER_LIMIT, undefined]);
  store.fault = undefined;
  await waitFor('the end of the hold', () => left(decider, entry) === after);
});
