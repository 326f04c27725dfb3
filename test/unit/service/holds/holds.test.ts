import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, jest, test } from '@jest/globals';
import { CODE, type Descriptor, type RateLimitResponse } from '../../../../src/codec/messages.js';
import {
  type BucketStore,
  StorageError,
  type Take,
  type TakeResult,
} from '../../../../src/limiter/bucket-store.js';
import { concurrencyRate } from '../../../../src/limiter/holds/concurrency.js';
import { CALLER_WITHOUT_DEADLINE, type Caller } from '../../../../src/service/caller.js';
import { decodeToken, firstEditionDigest, type TokenHold } from '../../../../src/service/holds/hold-token.js';
import { holdItem } from '../../../support/limiter/hold-items.js';
import { firstEditionToken, inventedToken } from '../../../support/limiter/hold-tokens.js';
import { Decider, descriptor, headers } from '../../../support/policy/decider.js';
import { waitFor } from '../../../support/process/wait-for.js';

const EXPORTS = `
domain: d
response_headers: [x-ratelimit, retry-after, ratelimit, ratelimit-draft-03]
descriptors:
  - key: customer
    rate_limit: { name: exports, concurrency: { max: 2, expires_after: 60s } }
`;

const TOKENS = `
domain: d
descriptors:
  - key: tenant
    rate_limit:
      unit: day
      requests_per_unit: 10000
      hold: { amount: 4000, expires_after: 10m }
  - key: free
    rate_limit:
      token_bucket: { max_tokens: 100, tokens_per_fill: 1, fill_interval: 1h }
      hold: { from: first_call, expires_after: 10m, unknown: free }
`;

const acme = descriptor(['customer=acme']);

function tokenOf({ dynamicMetadata }: RateLimitResponse): string {
  return String(dynamicMetadata?.['hold'] ?? '');
}

/** Returns the descriptors that Envoy sends at the end of a request. */
function end(token: string, used?: number): readonly Descriptor[] {
  const done = descriptor([`hold=${token}`, 'done=1']);
  return used === undefined ? [done] : [descriptor([`hold=${token}`], { hitsAddend: used }), done];
}

/** Returns the remaining hits that a look finds. */
function left(decider: Decider, of: readonly string[]): number | undefined {
  return decider.answer([descriptor(of, { hitsAddend: 0 })]).statuses[0]?.limitRemaining;
}

describe('a limit on concurrent requests', () => {
  test('denies requests while its slots are held, and reports no reset', () => {
    const decider = new Decider(EXPORTS);
    const first = decider.answer([acme]);
    expect(first.statuses[0]).toMatchObject({
      code: CODE.OK,
      limitRemaining: 1,
      durationUntilResetSeconds: undefined,
    });
    expect(headers(first)).toEqual({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
      'ratelimit-limit': '2, 2;comment="concurrent requests"',
      'ratelimit-remaining': '1',
      'ratelimit-policy': '"exports";q=2;qu="concurrent-requests"',
      ratelimit: '"exports";r=1',
    });
    decider.answer([acme]);
    const denied = decider.answer([acme]);
    expect(denied).toMatchObject({ overallCode: CODE.OVER_LIMIT, dynamicMetadata: undefined });
    expect(Object.keys(headers(denied))).not.toContain('retry-after');
    expect(denied.statuses[0]?.durationUntilResetSeconds).toBeUndefined();
    expect(decider.answer([descriptor(['customer=other'])]).overallCode).toBe(CODE.OK);
  });

  test('tells denied callers to retry after a constant time, and reports no reset, with retry_after', () => {
    const policy = EXPORTS.replace('expires_after: 60s', 'expires_after: 60s, retry_after: 2m');
    const decider = new Decider(policy, { answers: { decisionMetadata: true } });
    expect(Object.keys(headers(decider.answer([acme], 2)))).not.toContain('retry-after');
    const denied = decider.answer([acme]);
    expect(headers(denied)).toMatchObject({ 'retry-after': '120', ratelimit: '"exports";r=0' });
    for (const name of ['x-ratelimit-reset', 'ratelimit-reset']) {
      expect(Object.keys(headers(denied))).not.toContain(name);
    }
    expect(denied.statuses[0]?.durationUntilResetSeconds).toBeUndefined();
    expect(denied.dynamicMetadata?.['decision']).toMatchObject({ retry_after: 120 });
  });

  test('frees the slot of a request that ends, once', () => {
    const decider = new Decider(EXPORTS);
    const token = tokenOf(decider.answer([acme]));
    decider.answer([acme]);
    const ended = decider.answer(end(token));
    expect(ended).toMatchObject({
      overallCode: CODE.OK,
      statuses: [{ code: CODE.OK }],
      dynamicMetadata: undefined,
    });
    expect(left(decider, ['customer=acme'])).toBe(1);
    decider.answer(end(token));
    expect(left(decider, ['customer=acme'])).toBe(1);
  });

  test('answers the end of a request without its token, also if the answer echoes the request', () => {
    const decider = new Decider(EXPORTS, { answers: { dynamicMetadata: true } });
    const token = tokenOf(decider.answer([acme]));
    const ended = decider.answer(end(token));
    expect(JSON.stringify(ended.dynamicMetadata)).toContain('hold=[redacted');
    expect(JSON.stringify(ended.dynamicMetadata)).not.toContain(token);
    expect(left(decider, ['customer=acme'])).toBe(2);
  });

  test('frees the slots of requests without an end when they expire', () => {
    const decider = new Decider(EXPORTS);
    decider.answer([acme]);
    decider.answer([acme]);
    decider.clock.advance(59_999_999);
    expect(left(decider, ['customer=acme'])).toBe(0);
    decider.clock.advance(1);
    expect(left(decider, ['customer=acme'])).toBe(2);
  });

  test('takes one slot for each hit', () => {
    const decider = new Decider(EXPORTS);
    const token = tokenOf(decider.answer([acme], 2));
    expect(left(decider, ['customer=acme'])).toBe(0);
    decider.answer(end(token));
    expect(left(decider, ['customer=acme'])).toBe(2);
    expect(decider.answer([acme], 3).overallCode).toBe(CODE.OVER_LIMIT);
  });

  test('takes at most 1,000 slots for all descriptors of a request', () => {
    const decider = new Decider(EXPORTS.replace('max: 2', 'max: 5000'));
    const customers = (count: number, hits: number): readonly Descriptor[] =>
      Array.from({ length: count }, (_, i) => descriptor([`customer=${i}`], { hitsAddend: hits }));
    expect(decider.answer(customers(2, 500)).overallCode).toBe(CODE.OK);
    const denied = decider.answer(customers(3, 400));
    expect(denied).toMatchObject({ overallCode: CODE.OVER_LIMIT, dynamicMetadata: undefined });
    expect(denied.statuses.map(({ code }) => code)).toEqual([CODE.OK, CODE.OK, CODE.OVER_LIMIT]);
    expect(left(decider, ['customer=0'])).toBe(4500);
  });

  test('holds nothing for a request that another limit denies', () => {
    const decider = new Decider(
      `${EXPORTS}  - key: closed\n    rate_limit: { unit: second, requests_per_unit: 0 }\n`,
    );
    const denied = decider.answer([acme, descriptor(['closed=1'])]);
    expect(denied).toMatchObject({ overallCode: CODE.OVER_LIMIT, dynamicMetadata: undefined });
    expect(left(decider, ['customer=acme'])).toBe(2);
  });

  test('counts requests of an observed limit, and denies none', () => {
    const decider = new Decider(`${EXPORTS}    shadow_mode: true\n`);
    const tokens = [1, 2, 3].map(() => tokenOf(decider.answer([acme])));
    expect(new Set(tokens).size).toBe(3);
    expect(left(decider, ['customer=acme'])).toBe(0);
    for (const token of tokens.slice(0, 2)) decider.answer(end(token));
    expect(left(decider, ['customer=acme'])).toBe(1);
  });
});

describe('a reservation', () => {
  test('holds the estimate, and settles the use', () => {
    const decider = new Decider(TOKENS);
    const acmeTokens = descriptor(['tenant=acme']);
    const [first = '', second = ''] = [1, 2].map(() => tokenOf(decider.answer([acmeTokens])));
    expect(left(decider, ['tenant=acme'])).toBe(2000);
    expect(decider.answer([acmeTokens]).overallCode).toBe(CODE.OVER_LIMIT);
    decider.answer(end(first, 3000));
    expect(left(decider, ['tenant=acme'])).toBe(3000);
    decider.answer(end(second, 5000));
    expect(left(decider, ['tenant=acme'])).toBe(2000);
  });

  test('keeps the estimate if the use is unknown, or gives it back if the rule says so', () => {
    const decider = new Decider(TOKENS);
    decider.answer(end(tokenOf(decider.answer([descriptor(['tenant=acme'])]))));
    expect(left(decider, ['tenant=acme'])).toBe(6000);
    const token = tokenOf(decider.answer([descriptor(['free=1'])], 60));
    expect(left(decider, ['free=1'])).toBe(40);
    decider.answer(end(token));
    expect(left(decider, ['free=1'])).toBe(100);
  });

  test('a reload keeps what a hold does if its use is unknown', () => {
    const decider = new Decider(TOKENS);
    const kept = tokenOf(decider.answer([descriptor(['tenant=acme'])]));
    const freed = tokenOf(decider.answer([descriptor(['free=1'])], 60));
    decider.reload(
      TOKENS.replace(', unknown: free', '').replace('amount: 4000', 'amount: 4000, unknown: free'),
    );
    decider.answer([...end(kept), ...end(freed)]);
    expect(left(decider, ['tenant=acme'])).toBe(6000);
    expect(left(decider, ['free=1'])).toBe(100);
  });

  test('settles a use of 0, and the order of the two entries does not matter', () => {
    const decider = new Decider(TOKENS);
    const token = tokenOf(decider.answer([descriptor(['tenant=acme'])]));
    decider.answer([...end(token, 0)].reverse());
    expect(left(decider, ['tenant=acme'])).toBe(10_000);
  });

  test('may owe up to the limit after a use above the estimate', () => {
    const decider = new Decider(TOKENS);
    const token = tokenOf(decider.answer([descriptor(['tenant=acme'])]));
    decider.answer(end(token, 15_000));
    expect(left(decider, ['tenant=acme'])).toBe(0);
    // The next day pays the debt.
    decider.clock.advance(86_400_000_000);
    expect(left(decider, ['tenant=acme'])).toBe(5000);
  });

  test('of a window that has ended gives nothing back and charges nothing', () => {
    const decider = new Decider(TOKENS.replace('expires_after: 10m', 'expires_after: 48h'));
    for (const used of [0, 9000]) {
      const token = tokenOf(decider.answer([descriptor(['tenant=acme'])]));
      decider.clock.advance(86_400_000_000);
      decider.answer(end(token, used));
      expect(left(decider, ['tenant=acme'])).toBe(10_000);
    }
  });
});

describe('a token', () => {
  test('contains all holds of a request', () => {
    const decider = new Decider(EXPORTS + TOKENS.slice(TOKENS.indexOf('  - key: tenant')));
    const token = tokenOf(decider.answer([acme, descriptor(['tenant=acme'])]));
    expect(decodeToken(token)).toHaveLength(2);
    decider.answer(end(token, 1000));
    expect([left(decider, ['customer=acme']), left(decider, ['tenant=acme'])]).toEqual([2, 9000]);
  });

  test.each(['', 'x', 'AQ', 'A'.repeat(10_000)])('of another text settles nothing', (text) => {
    const decider = new Decider(EXPORTS);
    decider.answer([acme]);
    expect(decider.answer(end(text)).overallCode).toBe(CODE.OK);
    expect(left(decider, ['customer=acme'])).toBe(1);
    expect(decider.observer.told.filter((line) => line.includes('unmatched'))).toEqual([]);
  });

  test('with another id, bucket or number of hits settles nothing', () => {
    const decider = new Decider(EXPORTS);
    const token = tokenOf(decider.answer([acme]));
    const unmarked = `h${'x'.repeat(22)}${token.slice(23)}`;
    // The flags tell only where the hold is.
    for (let at = 24; at < token.length; at++) {
      const digit = token[at] === '1' ? '2' : '1';
      decider.answer(end(unmarked.slice(0, at) + digit + unmarked.slice(at + 1)));
      expect([at, left(decider, ['customer=acme'])]).toEqual([at, 1]);
    }
    decider.answer(end(unmarked));
    expect(left(decider, ['customer=acme'])).toBe(2);
  });

  test.each<[string, (own: TokenHold, other: TokenHold) => Partial<TokenHold>]>([
    ['a bucket of another kind of limit', (_, { key }) => ({ key })],
    ['a limit of another kind', (_, { rule }) => ({ rule })],
    ['a part of a bucket', ({ key }) => ({ key: key.slice(0, -1) })],
    ['the holds of a bucket', (_, { key }) => ({ key: `${key}%reserved` })],
    ['a bucket whose value looks like another kind', () => ({ key: '1:d4:free10:acme%holds' })],
    ['more slots than a hold has', () => ({ amount: 1001 })],
    ['a time at which a slot refills', () => ({ fullAtMicros: 1 })],
  ])('that names %s does not reach the store', (_case, forge) => {
    const inner = new Decider(EXPORTS);
    const asked: Take[] = [];
    const store: BucketStore = {
      take(takes, deadlineMicros) {
        asked.push(...takes);
        return inner.options.store.take(takes, deadlineMicros);
      },
      close: async () => {},
    };
    const decider = new Decider(EXPORTS + TOKENS.slice(TOKENS.indexOf('  - key: free')), { store });
    const [own, other] = [acme, descriptor(['free=acme'])].map(
      (one) => decodeToken(tokenOf(decider.answer([one])))[0],
    ) as [TokenHold, TokenHold];
    expect([own, other].map(({ key }) => key)).toEqual(['1:d8:customer4:acme%holds', '1:d4:free4:acme']);
    const known = asked.length;
    const forged = inventedToken([{ ...own, ...forge(own, other) }]);
    expect(decider.answer(end(forged, 5)).overallCode).toBe(CODE.OK);
    expect(asked.slice(known)).toEqual([]);
    expect(decider.observer.told).toContain('d unknown token');
    decider.answer(end(inventedToken([own])));
    expect(asked.length).toBe(known + 1);
  });

  test('without a hold does not refill a bucket, whatever limit it names', () => {
    const decider = new Decider(`${TOKENS}  - key: small
    rate_limit:
      token_bucket: { max_tokens: 1, tokens_per_fill: 1, fill_interval: 1s }
      hold: { from: first_call }
`);
    const token = tokenOf(decider.answer([descriptor(['free=1'])], 100));
    const [small] = decodeToken(tokenOf(decider.answer([descriptor(['small=1'])]))) as [TokenHold];
    const [hold] = decodeToken(token) as [TokenHold];
    const renamed = token.replace(hold.rule, small.rule);
    for (const forged of [inventedToken([{ ...hold, rule: small.rule }]), renamed])
      for (const used of [0, 500]) decider.answer(end(forged, used));
    decider.clock.advance(2_000_000);
    expect(left(decider, ['free=1'])).toBe(0);
  });

  test('settles a hold of the first edition, if its values are those of the hold', () => {
    const decider = new Decider(EXPORTS);
    const key = '1:d8:customer4:acme%holds';
    const hashTagLength = key.indexOf('%');
    const take = { ...holdItem(key, concurrencyRate(2), { hits: 2 }), hashTagLength };
    void decider.options.store.take([take], Infinity);
    expect(left(decider, ['customer=acme'])).toBe(0);
    const { id = '' } = take.holds ?? {};
    const rule = firstEditionDigest({ path: 'customer', bucketSuffix: '%holds' });
    const values = { lifetimeMillis: 60_000, fullAtMicros: 0, isLocal: false, freesUnknown: false };
    const hold: TokenHold = {
      key,
      hashTagLength,
      suffix: '%holds',
      id,
      amount: 2,
      rule,
      ...values,
    };
    const forged = [{ amount: 1 }, { amount: 3 }, { lifetimeMillis: 1 }, { rule: '0zik0zj' }];
    for (const changed of forged) decider.answer(end(firstEditionToken({ ...hold, ...changed })));
    expect(left(decider, ['customer=acme'])).toBe(0);
    decider.answer(end(firstEditionToken(hold)));
    expect(left(decider, ['customer=acme'])).toBe(2);
  });

  test('names the right one of two rules whose digests in the first edition are equal', () => {
    const keys = ['k4uzx', 'kf2ad'];
    const limits = keys.map((key) => `  - { key: ${key}, rate_limit: { concurrency: { max: 2 } } }`);
    const decider = new Decider(`domain: d\ndescriptors:\n${limits.join('\n')}\n`);
    for (const key of keys) {
      decider.answer(end(tokenOf(decider.answer([descriptor([`${key}=1`])]))));
      expect([key, left(decider, [`${key}=1`])]).toEqual([key, 2]);
      expect(decider.observer.told).toContain(`d ${key} settled 1 used 1`);
    }
    const [one, other] = keys.map((path) => firstEditionDigest({ path, bucketSuffix: '%holds' }));
    expect(one).toBe(other);
  });

  test('is an ordinary entry in a domain without holds', () => {
    const decider = new Decider(`
domain: d
descriptors:
  - key: hold
    rate_limit: { unit: day, requests_per_unit: 5 }
`);
    expect(decider.answer([descriptor(['hold=x'])]).statuses[0]?.limitRemaining).toBe(4);
  });
});

describe('a call that is reset', () => {
  test('releases its holds', async () => {
    const decider = new Decider(EXPORTS);
    const caller: Caller = { ...CALLER_WITHOUT_DEADLINE, resetListener: undefined };
    await decider.service.decide({ domain: 'd', descriptors: [acme], hitsAddend: 0 }, caller);
    expect(left(decider, ['customer=acme'])).toBe(1);
    caller.resetListener?.onReset();
    await new Promise((resolve) => setImmediate(resolve));
    expect(left(decider, ['customer=acme'])).toBe(2);
  });

  test('releases its holds after a reload, and keeps no earlier policy in memory until then', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    setFlagsFromString('--no-expose-gc');
    const decider = new Decider(EXPORTS);
    const earlier = new WeakRef(decider.options.policies.current()?.domains.get('d') as object);
    const caller: Caller = { ...CALLER_WITHOUT_DEADLINE, resetListener: undefined };
    await decider.service.decide({ domain: 'd', descriptors: [acme], hitsAddend: 0 }, caller);
    decider.reload(EXPORTS);
    await waitFor('the earlier policy to be freed', () => {
      collect();
      return earlier.deref() === undefined;
    });
    caller.resetListener?.onReset();
    await waitFor('the slot', () => left(decider, ['customer=acme']) === 2);
  });
});

describe('calls that are reset together', () => {
  /** Places 50 holds with each of five calls, and returns the callers. */
  async function fiveCalls(decider: Decider): Promise<readonly Caller[]> {
    const callers = [1, 2, 3, 4, 5].map(
      (): Caller => ({ ...CALLER_WITHOUT_DEADLINE, resetListener: undefined }),
    );
    for (const [n, caller] of callers.entries()) {
      const descriptors = Array.from({ length: 50 }, (_, i) => descriptor([`customer=${n}-${i}`]));
      await decider.service.decide({ domain: 'd', descriptors, hitsAddend: 0 }, caller);
    }
    return callers;
  }

  function released({ observer }: Decider): number {
    return observer.told.filter((text) => text.endsWith('released 1')).length;
  }

  test('release at most 128 holds, and the rest of a call, in one turn of the event loop', async () => {
    const decider = new Decider(EXPORTS);
    for (const { resetListener } of await fiveCalls(decider)) resetListener?.onReset();
    expect(released(decider)).toBe(150);
    await waitFor('the other holds', () => released(decider) === 250);
  });

  test('release their holds before the end of a drain', async () => {
    const decider = new Decider(EXPORTS);
    for (const { resetListener } of await fiveCalls(decider)) resetListener?.onReset();
    expect(await decider.service.drainHolds(60_000)).toBe(0);
    expect(released(decider)).toBe(250);
  });

  test('send nothing for holds that have expired', async () => {
    const decider = new Decider(EXPORTS);
    const callers = await fiveCalls(decider);
    decider.clock.advance(60_000_000);
    const take = jest.spyOn(decider.options.store, 'take');
    for (const { resetListener } of callers) resetListener?.onReset();
    await decider.service.drainHolds(60_000);
    expect(take).not.toHaveBeenCalled();
  });
});

describe('a store that fails', () => {
  /** Fails all calls with an item for which `fails` returns true. */
  class FailingStore implements BucketStore {
    fails = (_item: Take): boolean => false;
    readonly store: BucketStore;

    constructor(store: BucketStore) {
      this.store = store;
    }

    take(takes: readonly Take[], deadlineMicros: number): TakeResult | Promise<TakeResult> {
      if (takes.some((take) => this.fails(take))) return new StorageError('timeout', 'no answer in time');
      return this.store.take(takes, deadlineMicros);
    }

    async close(): Promise<void> {}
  }

  test('gets a settlement again until it answers', async () => {
    const inner = new Decider(EXPORTS);
    const store = new FailingStore(inner.options.store);
    const decider = new Decider(EXPORTS, { store });
    const token = tokenOf(decider.answer([acme]));
    store.fails = ({ settles }) => settles !== undefined;
    expect(decider.answer(end(token)).overallCode).toBe(CODE.OK);
    expect(left(decider, ['customer=acme'])).toBe(1);
    const answered = new Promise<void>((resolve) => {
      store.fails = ({ settles }) => {
        if (settles !== undefined) setImmediate(resolve);
        return false;
      };
    });
    await answered;
    expect(left(decider, ['customer=acme'])).toBe(2);
  });
});
