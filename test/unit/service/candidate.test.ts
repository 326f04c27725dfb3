import { describe, expect, test } from '@jest/globals';
import { CODE } from '../../../src/codec/messages.js';
import type { BucketStore, TakeItem } from '../../../src/limiter/bucket-store.js';
import { MemoryStore } from '../../../src/storage/memory/memory-store.js';
import { FakeClock } from '../../support/clock/fake-clock.js';
import { MEMORY } from '../../support/limiter/store-options.js';
import { UnavailableStore } from '../../support/limiter/unavailable-store.js';
import { Decider, type DeciderOptions, descriptor } from '../../support/policy/decider.js';

const { OK, OVER_LIMIT } = CODE;

const bucket = (tokens: number) => `token_bucket: { max_tokens: ${tokens}, fill_interval: 1h }`;
const NODES = `
  - { key: both, metadata: { team: x }, rate_limit: { name: live, ${bucket(3)} }, @{ name: next, ${bucket(1)} } }
  - { key: looser, rate_limit: { ${bucket(1)} }, @{ ${bucket(3)} } }
  - { key: alone, @{ ${bucket(1)} } }
  - { key: free, rate_limit: { unlimited: true }, @{ ${bucket(1)} } }
  - { key: list, rate_limits: [{ name: a, ${bucket(2)} }, { name: b, ${bucket(1)} }], @{ ${bucket(2)} } }
  - { key: windows, rate_limit: { unit: day, requests_per_unit: 1 }, @{ unit: day, requests_per_unit: 3 } }
  - { key: "shared", value: "*", share_threshold: true, rate_limit: { ${bucket(9)} }, @{ ${bucket(1)} } }
  - { key: quota, quota_mode: true, rate_limit: { ${bucket(1)} }, @{ ${bucket(3)} } }
  - { key: shadow, shadow_mode: true, rate_limit: { ${bucket(1)} }, @{ ${bucket(3)} } }
  - { key: replacing, rate_limit: { replaces: [{ name: live }, { name: a }], ${bucket(9)} } }
  - { key: full, rate_limit: { ${bucket(1)} } }
`;
const HEAD = 'domain: d\nresponse_headers: [x-ratelimit, retry-after]\non_store_failure: local\ndescriptors:';
const POLICY = HEAD + NODES.replaceAll('@', 'candidate: ');
/** The same policy without a candidate. */
const WITHOUT = HEAD + NODES.replaceAll(/, @\{(?:[^{}]|\{[^{}]*\})*\}/g, '');

const open = (options: DeciderOptions = {}, policy = POLICY) => new Decider(policy, options);
const one = (key: string, value = 'x') => descriptor([`${key}=${value}`]);
/** Reports of candidates since the last call. */
const seen = (decider: Decider) => {
  const told = decider.observer.told
    .filter((text) => text.includes('candidate'))
    .map((text) => text.slice(2));
  decider.observer.told.length = 0;
  return told;
};

describe('a candidate', () => {
  test('does not affect answers, headers, statuses, metadata or other counts', () => {
    const keys = [
      'both',
      'looser',
      'alone',
      'free',
      'list',
      'windows',
      'shared',
      'quota',
      'shadow',
      'replacing',
    ];
    for (const answers of [{}, { shadowMode: true }, { quotaMode: true }, { dynamicMetadata: true }]) {
      const decider = open({ answers });
      const without = open({ answers }, WITHOUT);
      for (let round = 0; round < 5; round++) {
        for (const [i, key] of keys.entries()) {
          const second = keys[(i * 3 + round) % keys.length] as string;
          const asked = [one(key), one(second)];
          expect(decider.answer(asked)).toEqual(without.answer(asked));
        }
      }
      // Only the log shows whether limits are missing intentionally.
      const others = decider.observer.told
        .filter((text) => !text.includes('candidate'))
        .map((text) => text.replace(' as meant', ''));
      expect(others).toEqual(without.observer.told);
      expect(decider.observer.descriptors).toEqual(without.observer.descriptors);
    }
  });

  test('has its own bucket, and reports the answer that it would give', () => {
    const decider = open();
    for (let i = 0; i < 4; i++) decider.answer([one('both')]);
    expect(seen(decider)).toEqual([
      'both live OK candidate OK',
      'both live OK candidate OVER_LIMIT',
      'both live OK candidate OVER_LIMIT',
      'both live OVER_LIMIT candidate OVER_LIMIT',
    ]);
  });

  test('counts each of several descriptors with one bucket, in order', () => {
    const decider = open();
    decider.answer([one('looser'), one('looser'), one('looser', 'y'), one('looser')]);
    expect(seen(decider)).toEqual([
      'looser live OK candidate OK',
      'looser live OVER_LIMIT candidate OK',
      'looser live OK candidate OK',
      'looser live OVER_LIMIT candidate OK',
    ]);
    decider.answer([one('looser')]);
    expect(seen(decider)).toEqual(['looser live OK candidate OVER_LIMIT']);
  });

  test('can exist without an enforced limit, which still counts as no match', () => {
    const decider = open();
    for (let i = 0; i < 2; i++) {
      expect(decider.answer([one('alone')])).toMatchObject({
        overallCode: OK,
        statuses: [{ code: OK, currentLimit: undefined }],
        responseHeadersToAdd: [],
      });
    }
    expect(decider.observer.told).toEqual([
      'd alone live OK candidate OK',
      'unmatched d alone as meant',
      'd alone live OK candidate OVER_LIMIT',
      'unmatched d alone as meant',
    ]);
    for (let i = 0; i < 2; i++) decider.answer([one('free')]);
    expect(seen(decider).at(-1)).toBe('free live OK candidate OVER_LIMIT');
  });

  test('has one bucket for all values if the node has', () => {
    const decider = open();
    decider.answer([one('shared', 'a')]);
    decider.answer([one('shared', 'b')]);
    expect(seen(decider)).toEqual(['shared=* live OK candidate OK', 'shared=* live OK candidate OVER_LIMIT']);
  });

  test('is peeked at by a peek, and gets refunds, even of a denied request', () => {
    const decider = open();
    const peek = descriptor(['both=x'], { hitsAddend: 0 });
    decider.answer([one('both')]);
    decider.answer([peek]);
    const refund = descriptor(['both=x'], { hitsAddend: 1, isNegativeHits: true });
    decider.answer([one('full')]);
    decider.answer([refund, one('full')]);
    decider.answer([peek]);
    decider.answer([peek]);
    expect(seen(decider)).toEqual([
      'both live OK candidate OK',
      'both live OK candidate OVER_LIMIT',
      'both live OK candidate OK',
      'both live OK candidate OK',
      'both live OK candidate OK',
    ]);
  });

  test('is not evaluated with a limit override', () => {
    const decider = open();
    decider.answer([descriptor(['both=x'], { limit: { requestsPerUnit: 5, unit: 2 } })]);
    expect(decider.observer.told).toEqual(['d override OK']);
  });

  test('is removed when the last limit of its node is replaced', () => {
    const decider = open();
    decider.answer([one('both'), one('replacing')]);
    expect(seen(decider)).toEqual([]);
    decider.answer([one('list'), one('replacing')]);
    expect(seen(decider)).toEqual(['list live OK candidate OK']);
  });

  test('next to shadow mode and quotas reports the actual answer', () => {
    const decider = open();
    for (let i = 0; i < 2; i++) decider.answer([one('shadow')]);
    for (let i = 0; i < 2; i++) decider.answer([one('quota')]);
    expect(seen(decider)).toEqual([
      'shadow live OK candidate OK',
      'shadow live OK candidate OK',
      'quota live OK candidate OK',
      'quota live OVER_LIMIT candidate OK',
    ]);
  });

  test('is in the log line of its descriptor', () => {
    const decider = open();
    decider.observer.debug = true;
    for (let i = 0; i < 2; i++) decider.answer([one('both')]);
    decider.answer([one('full')]);
    expect(decider.observer.lines).toMatchObject([
      { rule: 'both', code: 'OK', remaining: 2, candidate: 'OK' },
      { rule: 'both', code: 'OK', remaining: 1, candidate: 'OVER_LIMIT' },
      { rule: 'full', candidate: undefined },
    ]);
  });
});

describe('a candidate while the store is unavailable', () => {
  test('reports no outcome, and leaves the answer to the other limits', () => {
    const decider = open({ store: new UnavailableStore() });
    const codes = [1, 2].map(() => decider.answer([one('looser')]).overallCode);
    expect(codes).toEqual([OK, OVER_LIMIT]);
    expect(seen(decider)).toEqual([]);
  });

  test("never fails a request without other limits, whatever the file's failure policy", () => {
    const decider = open({ store: new UnavailableStore() }, POLICY.replace('local', 'error'));
    expect(decider.answer([one('alone')])).toMatchObject({ overallCode: OK });
    expect(decider.observer.told).toEqual(['store disconnected', 'unmatched d alone as meant']);
  });
});

describe('items for the store', () => {
  test('are the limits in order, then the candidate', () => {
    const asked: TakeItem[][] = [];
    const memory = new MemoryStore({ ...MEMORY, clock: new FakeClock() });
    const store: BucketStore = {
      take: (items) => {
        asked.push([...items]);
        return memory.take(items);
      },
      close: async () => {},
    };
    open({ store }).answer([one('list'), one('alone')]);
    expect(asked[0]?.map(({ key, enforcement }) => [key, enforcement])).toEqual([
      ['1:d4:list1:x~1:a', 'enforce'],
      ['1:d4:list1:x~1:b', 'enforce'],
      ['1:d4:list1:x~c', 'candidate'],
      ['1:d5:alone1:x~c', 'candidate'],
    ]);
  });
});
