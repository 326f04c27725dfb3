import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { entriesKey, extendedKey, MAX_NAME_BYTES } from '../../../../src/policy/names/bucket-key.js';
import { ruleDigest } from '../../../../src/policy/names/stat-name.js';
import { newHold } from '../../../../src/service/holds/hold-ids.js';
import {
  decodeToken,
  encodeToken,
  HOLDS_THAT_FIT,
  MAX_TOKEN_CHARACTERS,
  maxTokenLength,
  type PlacedHold,
  type TokenHold,
  TokenSource,
} from '../../../../src/service/holds/hold-token.js';
import { TokenMac } from '../../../../src/service/holds/token-mac.js';
import { expectEqual } from '../../../support/assert/quick-expect.js';
import { runs } from '../../../support/assert/runs.js';
import { FakeClock } from '../../../support/clock/fake-clock.js';
import { firstEditionToken } from '../../../support/limiter/hold-tokens.js';

const UINT32 = fc.integer({ min: 0, max: 0xffff_ffff });
const TEXT = fc.string({ unit: 'binary' });
const MARKS = new TokenMac(new FakeClock());

const hold: fc.Arbitrary<PlacedHold> = fc
  .record({
    domain: TEXT,
    value: TEXT,
    suffix: fc.constantFrom('', '%holds', '~5:daily%60', '~2', '~c'),
    amount: UINT32,
    lifetimeMillis: UINT32,
    fullAtMicros: fc.nat(Number.MAX_SAFE_INTEGER),
    refillMicros: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    rule: fc.string().map(ruleDigest),
    isLocal: fc.boolean(),
    freesUnknown: fc.boolean(),
  })
  .map(({ domain, value, suffix, refillMicros, ...fields }) => {
    const base = entriesKey(domain, [{ key: 'tenant', value }]);
    const terms = newHold(fields.rule, fields.amount, fields.lifetimeMillis, fields.freesUnknown);
    // Only holds of token buckets have a cost.
    return {
      ...fields,
      ...(suffix === '' && { refillMicros }),
      ...extendedKey(base, suffix),
      suffix,
      ...terms,
    };
  });

function withoutTerms({ terms, ...values }: PlacedHold): TokenHold {
  return values;
}

test('a token contains the holds of a request', () => {
  fc.assert(
    fc.property(fc.array(hold, { minLength: 1, maxLength: 5 }), (holds) => {
      const token = encodeToken(holds, MARKS);
      expect(token).toMatch(/^[\w:.~%@/#!&^*,-]+$/);
      expectEqual(decodeToken(token), holds.map(withoutTerms));
      expect(token.length).toBeLessThanOrEqual(maxTokenLength(holds));
    }),
    runs(100),
  );
});

const TAG = '1:d1:k1:v';
const RULE = ruleDigest('1:k0:');
const PLAIN: PlacedHold = {
  key: `${TAG}%holds`,
  hashTagLength: TAG.length,
  suffix: '%holds',
  amount: 1,
  fullAtMicros: 0,
  rule: RULE,
  isLocal: false,
  ...newHold(RULE, 1, 60_000, false),
  freesUnknown: false,
};

test('a token shows the values of its holds', () => {
  const token = encodeToken([PLAIN], MARKS);
  expect(token.slice(23)).toBe(`0${PLAIN.terms}.0.1:d1:k1:v%holds`);
  expect(PLAIN.terms).toMatch(/^[\w-]{16}[\w-]{22}k1\.60000$/);
  const other = { ...PLAIN, isLocal: true, key: '1:d1:k1:é%holds' };
  expect(encodeToken([PLAIN, other], MARKS).slice(23)).toBe(
    `${token.slice(23)},5${PLAIN.terms}.0.MTpkMTprMTrDqSVob2xkcw`,
  );
  expect(encodeToken([{ ...PLAIN, fullAtMicros: 7, refillMicros: 12 }], MARKS).slice(23)).toBe(
    token.slice(23).replace('.0.', '.7-12.'),
  );
});

test('a token with a changed term names another hold', () => {
  const token = encodeToken([PLAIN], MARKS);
  const changed = [
    ['k1.60000', 'k2.60000'],
    ['k1.60000', 'f1.60000'],
    ['k1.60000', 'k1.60001'],
    [RULE, ruleDigest('1:k1:v')],
  ];
  for (const [from = '', to = ''] of changed) {
    const [forged] = decodeToken(token.replace(from, to));
    expect(forged).toBeDefined();
    expect(forged?.id).not.toBe(PLAIN.id);
  }
});

test('a token of the first edition contains an id, which is not one of this edition', () => {
  const first: TokenHold = { ...withoutTerms(PLAIN), id: '0123456789abcdef01234567', rule: '0zik0zj' };
  expect(firstEditionToken(first)).toBe('00123456789abcdef012345670zik0zj1.60000.0.1:d1:k1:v%holds');
  expect(decodeToken(firstEditionToken(first))).toEqual([first]);
  const freed = { ...first, freesUnknown: true };
  expect(decodeToken(`${firstEditionToken(first)},${firstEditionToken(freed)}`)).toEqual([first, freed]);
  // A client must not change the terms of a hold of this edition by encoding it as one of the first edition.
  expect(decodeToken(firstEditionToken({ ...first, id: PLAIN.id }))).toEqual([undefined]);
});

test('a token that is cut off, extended or written differently is no token', () => {
  const token = encodeToken([PLAIN], MARKS);
  // The name of the bucket may have any end.
  for (let length = 0; length < token.length - '%holds'.length; length++)
    expect(decodeToken(token.slice(0, length))).toEqual([undefined]);
  const others = [`${token},`, ` ${token}`, `A${token}`, `,${token}`, '', 'hold', 'h', '%', 'ÿ'];
  others.push(
    token.replace(`0${PLAIN.terms}`, `8${PLAIN.terms}`),
    token.replace(`0${PLAIN.terms}`, `2${PLAIN.terms}`),
  );
  const tooLarge = ['4294967296.60000.0.', '1.4294967296.0.', `1.60000.${2 ** 53}.`];
  const badCosts = ['0-0', '0-', '-1', '0-01', '0-1-2', `0-${2 ** 53}`].map((times) => `1.60000.${times}.`);
  const fractions = ['1e-7.60000.0.', '1.1e-7.0.', '1e-7.5e-324.0.'];
  for (const values of ['01.60000.0.', '1.60000..', '-1.60000.0.', ...fractions, ...tooLarge, ...badCosts])
    others.push(token.replace('1.60000.0.', values));
  const first = firstEditionToken({ ...PLAIN, id: 'a'.repeat(24), rule: '0zik0zj' });
  others.push(
    first.toUpperCase(),
    first.replace('aa', '0x'),
    first.replace('j1.', 'j1e-7.'),
    `8${first.slice(1)}`,
    `${first},`,
  );
  for (const other of others) expect([other, ...decodeToken(other)].at(-1)).toBeUndefined();
});

test.each(['é', 'x'])('the name of a bucket is decoded up to its maximum length (%s)', (text) => {
  const named = (bytes: number): string => {
    const value = text.repeat(bytes / Buffer.byteLength(text));
    return encodeToken([{ ...PLAIN, key: `1:d1:k${value.length}:${value}` }], MARKS);
  };
  const fixed = Buffer.byteLength('1:d1:k1000:');
  const longest = MAX_NAME_BYTES - fixed - ((MAX_NAME_BYTES - fixed) % 2);
  expect(decodeToken(named(longest - 2))).not.toContain(undefined);
  expect(decodeToken(named(longest + 4))).toEqual([undefined]);
});

test('a token that is too long is not decoded', () => {
  expect(decodeToken('A'.repeat(300_000))).toEqual([undefined]);
  const many = Array.from({ length: 200 }, () => PLAIN);
  const token = encodeToken(many, MARKS);
  expect(token.length).toBeGreaterThan(MAX_TOKEN_CHARACTERS);
  expect(maxTokenLength(many)).toBeGreaterThan(MAX_TOKEN_CHARACTERS);
  expect(decodeToken(token)).toEqual([undefined]);
  const long = {
    ...PLAIN,
    key: `1:d1:k900:${'é'.repeat(500)}`,
    terms: `${PLAIN.terms}4294967295.4294967295`,
  };
  expect(maxTokenLength(Array.from({ length: HOLDS_THAT_FIT }, () => long))).toBeLessThan(
    MAX_TOKEN_CHARACTERS,
  );
});

function isAuthentic(token: string, marks: TokenMac): boolean {
  return new TokenSource(token, decodeToken(token), marks).isAuthentic();
}

test('a process recognizes its own tokens, and those of processes with the same key', () => {
  const clock = new FakeClock();
  const [one, other, third] = [new TokenMac(clock), new TokenMac(clock), new TokenMac(clock)];
  const earlier = encodeToken([PLAIN], other);
  expect(isAuthentic(earlier, other)).toBe(true);
  expect(isAuthentic(earlier, one)).toBe(false);
  other.use(one.key);
  const token = encodeToken([PLAIN], one);
  for (const known of [token, earlier]) expect(isAuthentic(known, other)).toBe(true);
  expect(isAuthentic(token, third)).toBe(false);
  for (const changed of [`${token}x`, token.replace('k1.', 'k2.'), firstEditionToken(PLAIN), '', 'h'])
    expect(isAuthentic(changed, one)).toBe(false);
});

test.each([1000, 60_000, 3_600_000, 0xffff_ffff])(
  'a process recognizes a token with holds of %i ms until they have expired, but not for long',
  (lifetimeMillis) => {
    const clock = new FakeClock();
    const marks = new TokenMac(clock);
    const terms = newHold(RULE, 1, lifetimeMillis, false);
    const token = encodeToken([{ ...PLAIN, ...terms, lifetimeMillis }, PLAIN], marks);
    expect(isAuthentic(token, marks)).toBe(true);
    clock.advance(lifetimeMillis * 1000);
    expect(isAuthentic(token, marks)).toBe(true);
    clock.advance((Math.max(lifetimeMillis, 60_000) + 60_000) * 1000);
    expect(isAuthentic(token, marks)).toBe(false);
    // Nobody can extend the time with another lifetime.
    expect(isAuthentic(token.replace(`.${lifetimeMillis}.`, '.4294967294.'), marks)).toBe(false);
  },
);

test('ids are distinct', () => {
  const ids = Array.from({ length: 1000 }, () => newHold(RULE, 1, 60_000, false).id);
  expect(new Set(ids).size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^00000[0-9a-f]{19}$/);
});
