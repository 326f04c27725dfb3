import { afterEach, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import type { BucketStore } from '../../../src/limiter/bucket-store.js';
import { addTo } from '../../../src/limiter/running-bucket.js';
import {
  BrokenInvariant,
  checkInvariant,
  invariant,
  reportBrokenInvariants,
} from '../../../src/runtime/invariant.js';
import { Decider, descriptor } from '../../support/policy/decider.js';

let end = (): void => {};
afterEach(() => end());

test('a condition that holds has no effect', () => {
  invariant(true, 'this holds');
  checkInvariant(true, 'this holds');
});

test('without a listener, every broken invariant throws', () => {
  expect(() => invariant(false, 'this holds')).toThrow(new BrokenInvariant('this holds'));
  expect(() => checkInvariant(false, 'that holds')).toThrow(new BrokenInvariant('that holds'));
  expect(() => addTo({ wholeMicros: 0, remainder: 5 }, 0, 9, 5)).toThrow(
    'the fractional part of a span is at least 0 and less than q',
  );
});

test('with a listener, checkInvariant reports a broken invariant without throwing', () => {
  const reported: string[] = [];
  end = reportBrokenInvariants(({ message }) => reported.push(message));
  expect(() => invariant(false, 'this holds')).toThrow(BrokenInvariant);
  checkInvariant(false, 'that holds');
  expect(reported).toEqual(['this holds', 'that holds']);
});

test.each([
  ['allow', CODE.OK],
  ['deny', CODE.OVER_LIMIT],
])('on_store_failure: %s applies to a broken invariant in the store', (policy, code) => {
  end = reportBrokenInvariants(() => {});
  const store: BucketStore = {
    take: () => {
      invariant(false, 'this holds');
      return [];
    },
    close: async () => {},
  };
  const decider = new Decider(
    `domain: d
on_store_failure: ${policy}
descriptors: [{ key: a, rate_limit: { unit: hour, requests_per_unit: 1 } }]
`,
    { store },
  );
  const request = { domain: 'd', hitsAddend: 0, descriptors: [descriptor(['a=x'])] };
  expect(decider.service.decide(request)).toMatchObject({ overallCode: code });
  expect(decider.observer.told).toContain('store broken');
});
