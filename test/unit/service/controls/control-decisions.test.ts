/* Blocks and exemptions in the answers of ShouldRateLimit. */
import { describe, expect, test } from '@jest/globals';
import { CODE, type Descriptor, LIMIT_UNIT } from '../../../../src/codec/messages.js';
import { type BucketStore, StorageError, type TakeItem } from '../../../../src/limiter/bucket-store.js';
import type { LiveControl } from '../../../../src/limiter/control.js';
import { sha256Hex } from '../../../../src/policy/names/sha256.js';
import { CALLER_WITHOUT_DEADLINE } from '../../../../src/service/caller.js';
import { Refusal } from '../../../../src/service/refusal.js';
import { MemoryControlBook } from '../../../../src/storage/controls/memory-control-book.js';
import { control } from '../../../support/policy/controls.js';
import { Decider, type DeciderOptions, descriptor, headers } from '../../../support/policy/decider.js';
import { policyOf } from '../../../support/policy/policies.js';

const { OK, OVER_LIMIT } = CODE;
const POLICY = `
domain: d
response_headers: [x-ratelimit, retry-after]
derive:
  - { entry: tenant, from: [api_key], sha256: { ${sha256Hex('key of acme')}: acme } }
descriptors:
  - key: tenant
    rate_limit: { name: tenants, unit: minute, requests_per_unit: 2 }
    descriptors:
      - key: path
        rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: watched
    phase: monitoring
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: never
    enforce_percent: 0
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: tried
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: free
    rate_limit: { unlimited: true }
  - key: quota
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: quota2
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: replacing
    rate_limit: { replaces: [{ name: tenants }], unit: minute, requests_per_unit: 5 }
  - key: told
    rate_limit:
      { unit: minute, requests_per_unit: 2, response_headers: [x-ratelimit], denied_response: { body: go away } }
`;
const SECOND = 1_000_000;

/** A store that records its calls. */
class Asked implements BucketStore {
  readonly keys: string[] = [];
  take(items: readonly TakeItem[]): StorageError {
    for (const { key } of items) this.keys.push(key);
    return new StorageError('disconnected', 'away');
  }
  async close(): Promise<void> {}
}

function deciding(set: readonly LiveControl[], options: DeciderOptions = {}, policy = POLICY): Decider {
  const decider = new Decider(policy, options);
  decider.controls.apply({ isReset: false, set, ended: [], granted: [] });
  return decider;
}
function lasting(decider: Decider, micros: number, ...args: Parameters<typeof control>): void {
  const expiresAtMicros = decider.clock.monotonicMicros() + micros;
  const [kind, texts, more] = args;
  const set = [control(kind, texts, { expiresAtMicros, ...more })];
  decider.controls.apply({ isReset: false, set, ended: [], granted: [] });
}
const told = (decider: Decider): string[] => decider.observer.told.splice(0);
const block = (...texts: string[]) => control('block', texts);
const allow = (...texts: string[]) => control('allow', texts);

describe('a block', () => {
  test('denies until it ends, to the second, without the store', () => {
    const store = new Asked();
    const decider = new Decider(POLICY, { store });
    lasting(decider, 90_400_000, 'block', ['tenant=acme']);
    const response = decider.answer([descriptor(['tenant=acme', 'path=/a']), descriptor(['watched=x'])]);
    expect(response).toMatchObject({
      overallCode: OVER_LIMIT,
      statuses: [
        { code: OVER_LIMIT, currentLimit: undefined, limitRemaining: 0, durationUntilResetSeconds: 91 },
        { code: OK, currentLimit: undefined, durationUntilResetSeconds: undefined },
      ],
    });
    const reset = Math.ceil(decider.clock.wallMicros() / SECOND) + 91;
    expect(headers(response)).toEqual({
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(reset),
      'x-ratelimit-will-be-throttled': 'true',
      'retry-after': '91',
    });
    expect(store.keys).toEqual([]);
    expect(told(decider)).toEqual(['d block OVER_LIMIT', 'd controlled block']);
    decider.clock.advance(90_400_000);
    expect(store.keys).toEqual([]);
    decider.ask([descriptor(['tenant=acme', 'path=/a'])]);
    expect(store.keys).toHaveLength(1);
  });

  test.each([
    'watched=x',
    'shadow=x',
    'never=x',
    'tried=x',
    'free=x',
    'quota=x',
    'replacing=x',
    'unmatched=x',
    'told=x',
  ])("overrides the policy's %s", (text) => {
    const decider = deciding([block(text)]);
    const response = decider.answer([descriptor([text])]);
    expect([response.overallCode, response.statuses[0]?.code]).toEqual([OVER_LIMIT, OVER_LIMIT]);
    expect(told(decider)).toEqual(['d block OVER_LIMIT', 'd controlled block']);
  });

  test.each<DeciderOptions>([
    { answers: { shadowMode: true } },
    { answers: { quotaMode: true } },
    { maxLimits: 0 },
  ])('overrides %j', (options) => {
    const decider = deciding([block('tenant=acme')], options);
    const asked = [descriptor(['tenant=acme']), descriptor(['quota2=x'])];
    expect(decider.answer(asked).overallCode).toBe(OVER_LIMIT);
    expect(headers(decider.answer(asked))['retry-after']).toBeDefined();
  });

  test('overrides limit overrides, peeks and refunds', () => {
    const decider = deciding([block('tenant=acme')]);
    for (const more of [
      { limit: { requestsPerUnit: 100, unit: 2 } },
      { hitsAddend: 0 },
      { hitsAddend: 5, isNegativeHits: true },
    ]) {
      expect(decider.answer([descriptor(['tenant=acme'], more)]).overallCode).toBe(OVER_LIMIT);
    }
  });

  test('takes no tokens from other limits of its request, including quotas', () => {
    const decider = deciding([block('free=x')]);
    const all = ['tenant=a', 'tried=x', 'quota=x'].map((text) => descriptor([text]));
    for (let n = 0; n < 5; n++) decider.answer([...all, descriptor(['free=x'])]);
    const { overallCode, statuses } = decider.answer(all);
    expect([overallCode, ...statuses.map(({ limitRemaining }) => limitRemaining)]).toEqual([OK, 1, 1, 0]);
  });

  test('of a derived entry applies to requests with the original key, and vice versa', () => {
    const policy = policyOf(POLICY);
    for (const texts of [['tenant=acme'], ['api_key=key of acme']]) {
      const decider = deciding([control('block', texts, { policy })]);
      expect(decider.answer([descriptor(['api_key=key of acme'])]).overallCode).toBe(OVER_LIMIT);
      expect(decider.answer([descriptor(['tenant=acme'])]).overallCode).toBe(OVER_LIMIT);
      expect(decider.answer([descriptor(['api_key=another'])]).overallCode).toBe(OK);
    }
  });

  test('has the headers and body of the matching rule, or else of the file', () => {
    const decider = deciding([block('told=x')]);
    const response = decider.answer([descriptor(['told=x'])]);
    expect(headers(response)).not.toHaveProperty('retry-after');
    expect(Buffer.from(response.rawBody ?? []).toString()).toBe('go away');
  });

  test('reports the end of the block that ends last', () => {
    const decider = new Decider(POLICY);
    lasting(decider, 10 * SECOND, 'block', ['tenant=acme']);
    lasting(decider, 20 * SECOND, 'block', ['watched=x']);
    const response = decider.answer([descriptor(['tenant=acme']), descriptor(['watched=x'])]);
    expect(response.statuses.map((status) => status.durationUntilResetSeconds)).toEqual([10, 20]);
    expect(headers(response)['retry-after']).toBe('20');
  });

  test('is in the decision metadata, with the hits of the request', () => {
    const answers = { decisionMetadata: true, dynamicMetadata: true };
    const decider = deciding([control('block', ['tenant=acme'], { id: 'b1', reason: 'abuse' })], { answers });
    lasting(decider, 3 * SECOND, 'block', ['tenant=acme'], { id: 'b1', reason: 'abuse' });
    expect(decider.answer([descriptor(['tenant=acme'])]).dynamicMetadata).toMatchObject({
      domain: 'd',
      decision: {
        code: 'OVER_LIMIT',
        rule: '',
        retry_after: 3,
        would_be_throttled: true,
        reason: 'blocked',
        control: { kind: 'block', id: 'b1', reason: 'abuse' },
      },
    });
  });

  test('is in the log, with redacted secrets', () => {
    const policy = policyOf(POLICY);
    const decider = deciding([control('block', ['api_key=other'], { policy, id: 'b1', reason: 'abuse' })]);
    decider.observer.debug = true;
    decider.answer([descriptor(['tenant=a']), descriptor(['api_key=other'])]);
    expect(decider.observer.lines).toMatchObject([
      { rule: '', code: 'OK', unmatched: undefined, control: undefined },
      { rule: 'block', code: 'OVER_LIMIT', control: { kind: 'block', id: 'b1', reason: 'abuse' } },
    ]);
    expect(JSON.stringify(decider.observer.lines)).not.toContain('"other"');
  });

  test('counts in the statistics of single buckets', () => {
    const decider = deciding([block('tenant=acme')]);
    const counted: string[] = [];
    decider.observer.buckets = {
      allowed: (_policy, _match, { key }) => counted.push(`through ${key}`),
      denied: (_policy, _match, { key }) => counted.push(`denied ${key}`),
      blocked: (_policy, { entries }) => counted.push(`blocked ${entries[0]?.value}`),
    };
    decider.answer([descriptor(['watched=x']), descriptor(['tenant=acme'])]);
    expect(counted).toEqual(['blocked acme']);
  });

  test('denies a request with many descriptors, and reports each of them once', async () => {
    const decider = deciding([block('tenant=t1500')], { maxDescriptors: 3000 });
    const many = Array.from({ length: 2000 }, (_, n) => descriptor([`tenant=t${n}`]));
    const request = { domain: 'd', descriptors: many, hitsAddend: 0 };
    const decided = await decider.service.decide(request);
    if (decided instanceof Refusal) throw new Error(decided.message);
    expect(decided.overallCode).toBe(OVER_LIMIT);
    expect(decided.statuses.flatMap(({ code }, at) => (code === OVER_LIMIT ? [at] : []))).toEqual([1500]);
    expect(told(decider)).toEqual(['d block OVER_LIMIT', 'd controlled block']);
    expect(decider.answer([descriptor(['tenant=t0'])]).statuses[0]?.limitRemaining).toBe(1);
  });
});

describe('an exemption', () => {
  test('allows without limit and headers, and takes no tokens', () => {
    const store = new Asked();
    const decider = deciding([allow('tenant=acme')], { store });
    for (let n = 0; n < 5; n++) {
      const response = decider.answer([descriptor(['tenant=acme', 'path=/a'])]);
      expect(response).toMatchObject({
        overallCode: OK,
        statuses: [{ code: OK, currentLimit: undefined, durationUntilResetSeconds: undefined }],
        responseHeadersToAdd: [],
      });
      expect(told(decider)).toEqual(['d allow OK', 'd controlled allow']);
    }
    expect(store.keys).toEqual([]);
  });

  test('does not affect the other descriptors of its request', () => {
    const decider = deciding([allow('tenant=acme')]);
    const ask = () => decider.answer([descriptor(['tenant=acme']), descriptor(['tenant=other'])]);
    expect(ask().statuses.map(({ limitRemaining }) => limitRemaining)).toEqual([0, 1]);
    ask();
    const denied = ask();
    expect([denied.overallCode, ...denied.statuses.map(({ code }) => code)]).toEqual([
      OVER_LIMIT,
      OK,
      OVER_LIMIT,
    ]);
    expect(headers(denied)).toHaveProperty('x-ratelimit-limit', '2');
  });

  test('has no effect if a block matches, too', () => {
    const decider = deciding([allow('tenant=acme'), block('tenant=acme', 'path=/a')]);
    expect(decider.answer([descriptor(['tenant=acme'])]).overallCode).toBe(OK);
    expect(decider.answer([descriptor(['tenant=acme', 'path=/a'])]).overallCode).toBe(OVER_LIMIT);
    const both = [descriptor(['tenant=acme']), descriptor(['path=/a', 'tenant=acme'])];
    expect(decider.answer(both).overallCode).toBe(OVER_LIMIT);
  });

  test('of a quota counts as a quota with remaining hits, so no other quota denies', () => {
    const decider = deciding([allow('quota=x')]);
    const ask = () => decider.answer([descriptor(['quota=x']), descriptor(['quota2=x'])]).overallCode;
    expect([ask(), ask(), ask()]).toEqual([OK, OK, OK]);
    const alone = () => decider.answer([descriptor(['quota2=x']), descriptor(['tenant=a'])]).overallCode;
    expect(alone()).toBe(OVER_LIMIT);
  });

  test('of a rule that replaces another rule still replaces it', () => {
    const decider = deciding([allow('replacing=x')]);
    const ask = () => decider.answer([descriptor(['replacing=x']), descriptor(['tenant=a'])]).overallCode;
    expect([ask(), ask(), ask()]).toEqual([OK, OK, OK]);
  });

  test('of a descriptor with a limit override is not a quota, and replaces no rule', () => {
    const limit = { requestsPerUnit: 5, unit: LIMIT_UNIT.minute };
    const decider = deciding([allow('quota=x'), allow('replacing=x')]);
    const beside = (exempted: string, other: string) =>
      decider.answer([descriptor([exempted], { limit }), descriptor([other])]).overallCode;
    expect([1, 2].map(() => beside('quota=x', 'quota2=x'))).toEqual([OK, OVER_LIMIT]);
    expect([1, 2, 3].map(() => beside('replacing=x', 'tenant=a'))).toEqual([OK, OK, OVER_LIMIT]);
  });

  test('is in the decision metadata, alone and next to a limit', () => {
    const decider = deciding([control('allow', ['tenant=acme'], { id: 'a1' })], {
      answers: { decisionMetadata: true },
    });
    const exempted = { control: { kind: 'allow', id: 'a1' } };
    const asked = [descriptor(['tenant=acme'])];
    expect(decider.answer(asked).dynamicMetadata).toEqual({
      decision: { code: 'OK', domain: 'd', ...exempted, decided_at: '2023-11-14T22:13:20.000000Z' },
    });
    expect(decider.answer([...asked, descriptor(['tenant=b'])]).dynamicMetadata).toMatchObject({
      decision: { rule: 'tenant', ...exempted },
    });
    expect(decider.answer([descriptor(['tenant=b'])]).dynamicMetadata).not.toHaveProperty('decision.control');
  });
});

describe('a request that is not matched completely', () => {
  const SHADOWED = { answers: { shadowMode: true } };
  /** A policy in which no rule can deny. */
  const NON_DENYING_POLICY =
    'domain: d\nphase: monitoring\ndescriptors: [{ key: tenant, rate_limit: { unit: day, requests_per_unit: 1 } }]\n';
  const late = { ...CALLER_WITHOUT_DEADLINE, deadlineMicros: 0 };
  const withManyEntries = (): Descriptor =>
    descriptor(Array.from({ length: 400 }, (_, n) => [`a=${n % 200}`, `b=${n}`]).flat());
  const grid = (kind: 'block' | 'allow') =>
    Array.from({ length: 400 }, (_, n) => control(kind, [`a=${n}`, `b=x${n}`]));
  const decide = async (
    decider: Decider,
    descriptors: readonly Descriptor[],
    caller = CALLER_WITHOUT_DEADLINE,
  ) => {
    const request = { domain: 'd', descriptors, hitsAddend: 0 };
    const decided = await decider.service.decide(request, caller);
    if (decided instanceof Refusal) throw new Error(decided.message);
    return decided.overallCode;
  };
  const many = Array.from({ length: 200 }, () => descriptor(['tenant=x']));

  test.each<DeciderOptions>([{}, SHADOWED])(
    'is denied while a block of its domain is active (%j)',
    async (options) => {
      const decider = deciding([block('tenant=acme')], options, NON_DENYING_POLICY);
      expect(await decide(decider, many, late)).toBe(OVER_LIMIT);
      const free = deciding(
        [allow('tenant=acme'), { ...block('tenant=acme'), domain: 'other' }],
        options,
        NON_DENYING_POLICY,
      );
      expect(await decide(free, many, late)).toBe(OK);
    },
  );

  test('is denied if the check for blocks exceeds the budget', async () => {
    expect(await decide(deciding(grid('block'), SHADOWED, NON_DENYING_POLICY), [withManyEntries()])).toBe(
      OVER_LIMIT,
    );
    expect(await decide(deciding(grid('allow'), SHADOWED, NON_DENYING_POLICY), [withManyEntries()])).toBe(OK);
  });
});

test('follows a control book, and does not read the clock while the book is empty', async () => {
  const decider = new Decider(POLICY);
  const book = new MemoryControlBook(() => decider.clock.monotonicMicros());
  book.onChange((change) => decider.controls.apply(change));
  const made = control('block', ['tenant=acme'], { durationMicros: SECOND });
  expect(decider.answer([descriptor(['tenant=acme'])]).overallCode).toBe(OK);
  await book.put(made);
  expect(decider.answer([descriptor(['tenant=acme'])]).overallCode).toBe(OVER_LIMIT);
  await book.end([made.id]);
  expect(decider.answer([descriptor(['tenant=acme'])]).overallCode).toBe(OK);
  expect(decider.controls.of('d')).toBeUndefined();
  await book.close();
});
