import { describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor, type RateLimitResponse } from '../../../../src/codec/messages.js';
import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeResult,
} from '../../../../src/limiter/bucket-store.js';
import { turn } from '../../../../src/runtime/turns.js';
import { CALLER_WITHOUT_DEADLINE, type Caller } from '../../../../src/service/caller.js';
import type { MemoryStore } from '../../../../src/storage/memory/memory-store.js';
import { Decider, descriptor } from '../../../support/policy/decider.js';
import { waitFor } from '../../../support/process/wait-for.js';

const POLICY = `
domain: d
descriptors:
  - key: tenant
    rate_limit:
      name: tokens
      algorithm: fixed_window
      unit: day
      requests_per_unit: 10000
      hold: { amount: 4000, expires_after: 10m, pair: oldest }
      max_debt: 1000
  - key: listed
    rate_limits:
      - { name: calls, algorithm: fixed_window, unit: day, requests_per_unit: 100 }
      - { name: tokens, unit: day, requests_per_unit: 10000, hold: { amount: 4000, pair: oldest } }
  - key: twice
    rate_limits:
      - { unit: day, requests_per_unit: 10000, hold: { amount: 1, pair: oldest } }
      - { unit: hour, requests_per_unit: 10000, hold: { amount: 1, pair: oldest } }
  - key: model
    rate_limit: { concurrency: { max: 5 } }
`;

const tenant = (hits: number, value = 'acme'): Descriptor =>
  descriptor([`tenant=${value}`], { hitsAddend: hits });

function held(decider: Decider): number {
  return (decider.options.store as MemoryStore).holdCount;
}

/** Returns what is left in the bucket. A refund of 0 hits does not change it. */
function left(decider: Decider, value = 'acme'): number | undefined {
  const peek = descriptor([`tenant=${value}`], { hitsAddend: 0, isNegativeHits: true });
  return decider.answer([peek]).statuses[0]?.limitRemaining;
}

describe('a rule with pair: oldest', () => {
  test('settles 128 holds of a call at once, and the others soon after', async () => {
    const decider = new Decider(POLICY);
    const call = (hits: number) =>
      decider.service.decide({
        domain: 'd',
        descriptors: Array.from({ length: 100 }, () => descriptor(['twice=a'], { hitsAddend: hits })),
        hitsAddend: 0,
      });
    await call(0);
    expect(held(decider)).toBe(200);
    expect(await call(1)).toMatchObject({ overallCode: CODE.OK });
    expect(held(decider)).toBe(72);
    await waitFor('the other settlements', () => held(decider) === 0);
  });

  test('only looks for a refund of 0 hits, which is denied if the estimates have used up the bucket', () => {
    const decider = new Decider(POLICY);
    const look = () => decider.answer([descriptor(['tenant=acme'], { hitsAddend: 0, isNegativeHits: true })]);
    decider.answer([tenant(0)]);
    for (let i = 0; i < 3; i++) {
      expect(look()).toMatchObject({ overallCode: CODE.OK, statuses: [{ limitRemaining: 6000 }] });
    }
    expect(held(decider)).toBe(1);
    decider.answer([tenant(0)]);
    decider.answer([tenant(10_000_000)]);
    expect(look()).toMatchObject({ overallCode: CODE.OVER_LIMIT, statuses: [{ limitRemaining: 0 }] });
    expect(held(decider)).toBe(1);
  });

  test('holds the estimate for a call with 0 hits, and settles the oldest hold for any other', () => {
    const decider = new Decider(POLICY);
    const start = decider.answer([tenant(0)]);
    expect(start).toMatchObject({
      overallCode: CODE.OK,
      dynamicMetadata: undefined,
      statuses: [{ code: CODE.OK, limitRemaining: 6000, currentLimit: { name: 'tokens' } }],
    });
    decider.answer([tenant(0)]);
    expect([left(decider), held(decider)]).toEqual([2000, 2]);
    expect(decider.answer([tenant(0)]).overallCode).toBe(CODE.OVER_LIMIT);
    const end = decider.answer([tenant(1500)]);
    expect(end).toEqual({
      overallCode: CODE.OK,
      statuses: [
        { code: CODE.OK, currentLimit: undefined, limitRemaining: 0, durationUntilResetSeconds: undefined },
      ],
      responseHeadersToAdd: [],
      requestHeadersToAdd: [],
      rawBody: undefined,
      dynamicMetadata: undefined,
    } satisfies RateLimitResponse);
    expect([left(decider), held(decider)]).toEqual([4500, 1]);
    decider.answer([tenant(5000)]);
    expect([left(decider), held(decider)]).toEqual([3500, 0]);
  });

  test('counts the use of a class in the whole limit, also above the part of the class', () => {
    const decider = new Decider(`
domain: d
descriptors:
  - key: tenant
    descriptors:
      - key: class
        rate_limit:
          unit: day
          requests_per_unit: 10000
          hold: { amount: 4000, pair: oldest }
          max_debt: 0
          priorities: { by: class, keep: { batch: 50%, interactive: 0 } }
`);
    const ask = (name: string, hits: number, isNegativeHits = false) =>
      decider.answer([descriptor(['tenant=a', `class=${name}`], { hitsAddend: hits, isNegativeHits })]);
    const leftFor = (name: string) => ask(name, 0, true).statuses[0]?.limitRemaining;
    expect(ask('batch', 0).overallCode).toBe(CODE.OK);
    expect([leftFor('batch'), leftFor('interactive')]).toEqual([1000, 6000]);
    expect(ask('batch', 0).overallCode).toBe(CODE.OVER_LIMIT);
    expect(ask('batch', 7000).overallCode).toBe(CODE.OK);
    expect([leftFor('batch'), leftFor('interactive')]).toEqual([0, 3000]);
  });

  test('never denies an end, and forgives what max_debt does not cover', () => {
    const decider = new Decider(POLICY);
    decider.answer([tenant(0)]);
    decider.answer([tenant(0)]);
    for (const used of [9000, 9000]) {
      expect(decider.answer([tenant(used)]).overallCode).toBe(CODE.OK);
    }
    const forgiven = decider.observer.told.filter((line) => line.includes('forgiven'));
    expect(forgiven.map((line) => line.split(' ').at(-1))).toEqual(['2000', '5000']);
    expect(left(decider)).toBe(0);
    // The next day pays the debt.
    decider.clock.advance(86_400_000_000);
    expect(left(decider)).toBe(9000);
  });

  test('changes nothing for an end without a hold, also after the hold has expired', () => {
    const decider = new Decider(POLICY);
    expect(decider.answer([tenant(3000)]).overallCode).toBe(CODE.OK);
    expect(left(decider)).toBe(10_000);
    decider.answer([tenant(0)]);
    decider.clock.advance(600_000_000);
    decider.answer([tenant(1)]);
    expect([left(decider), held(decider)]).toEqual([6000, 0]);
    expect(decider.observer.told.filter((line) => line.includes('unmatched d '))).toEqual([]);
  });

  test('settles only holds of the same bucket', () => {
    const decider = new Decider(POLICY);
    decider.answer([tenant(0)]);
    decider.answer([tenant(1, 'other')]);
    expect([left(decider), left(decider, 'other')]).toEqual([6000, 10_000]);
  });

  test('leaves the other limits of a list and of a request as they are', () => {
    const decider = new Decider(POLICY);
    const listed = (hits: number): Descriptor => descriptor(['listed=x'], { hitsAddend: hits });
    decider.answer([listed(0)]);
    // The end counts in the other limit of the list.
    expect(decider.answer([listed(7)]).statuses[0]).toMatchObject({
      currentLimit: { name: 'calls' },
      limitRemaining: 93,
    });
    expect(held(decider)).toBe(0);
    const mixed = decider.answer([tenant(0), descriptor(['model=m'])]);
    expect(Object.keys(mixed.dynamicMetadata ?? {})).toEqual(['hold']);
    expect(held(decider)).toBe(2);
  });

  test('gives the estimate of a call back that is reset', async () => {
    const decider = new Decider(POLICY);
    const caller: Caller = { ...CALLER_WITHOUT_DEADLINE, resetListener: undefined };
    await decider.service.decide({ domain: 'd', descriptors: [tenant(0)], hitsAddend: 0 }, caller);
    expect(left(decider)).toBe(6000);
    caller.resetListener?.onReset();
    await turn();
    expect([left(decider), held(decider)]).toEqual([10_000, 0]);
  });

  test.each([
    ['that has not received it gets an end again', true, 2, 9000],
    ['whose reply was lost does not, because it would settle another hold', false, 1, 6000],
  ])('a store %s', async (_case, unsent, calls, remaining) => {
    const inner = new Decider(POLICY);
    let ends = 0;
    const store: BucketStore = {
      take(takes: readonly Take[], deadlineMicros: number): TakeResult | Promise<TakeResult> {
        if (takes[0]?.settles === undefined) return inner.options.store.take(takes, deadlineMicros);
        if (++ends === 1) return new StorageError('disconnected', 'no connection', { unsent });
        return inner.options.store.take(takes, deadlineMicros);
      },
      close: async () => {},
    };
    const decider = new Decider(POLICY, { store });
    decider.answer([tenant(0)]);
    decider.answer([tenant(1000)]);
    await waitFor('the end', () => ends === calls);
    expect(left(decider)).toBe(remaining);
  });
});
