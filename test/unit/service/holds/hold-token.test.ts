import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { entriesKey, extendedKey } from '../../../../src/policy/names/bucket-key.js';
import { digestOf } from '../../../../src/service/holds/held-rules.js';
import { newHoldId } from '../../../../src/service/holds/hold-ids.js';
import { decodeToken, encodeToken, type TokenHold } from '../../../../src/service/holds/hold-token.js';
import { expectEqual } from '../../../support/assert/quick-expect.js';
import { runs } from '../../../support/assert/runs.js';

const UINT32 = fc.integer({ min: 0, max: 0xffff_ffff });

const TEXT = fc.string({ unit: 'binary' });

const hold: fc.Arbitrary<TokenHold> = fc
  .record({
    domain: TEXT,
    value: TEXT,
    suffix: fc.constantFrom('', '%holds', '~5:daily%60', '~2', '~c'),
    id: fc.constant('').map(newHoldId),
    amount: UINT32,
    lifetimeMillis: UINT32,
    fullMicros: fc.nat(Number.MAX_SAFE_INTEGER),
    costMicros: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    rule: fc.string({ minLength: 1, maxLength: 20 }).map((path) => digestOf({ path, bucketSuffix: '' })),
    isLocal: fc.boolean(),
    freesUnknown: fc.boolean(),
  })
  .map(({ domain, value, suffix, costMicros, ...fields }) => {
    const base = entriesKey(domain, [{ key: 'tenant', value }]);
    // Only holds of token buckets have a cost.
    return { ...fields, ...(suffix === '' && { costMicros }), ...extendedKey(base, suffix), suffix };
  });

test('a token contains the holds of a request', () => {
  fc.assert(
    fc.property(fc.array(hold, { minLength: 1, maxLength: 5 }), (holds) => {
      const token = String(encodeToken(holds));
      expect(token).toMatch(/^[\w:.~%@/#!&^*,-]+$/);
      expectEqual([...decodeToken(token)], holds);
    }),
    runs(100),
  );
});

const TAG = '1:d1:k1:v';
const PLAIN: TokenHold = {
  key: `${TAG}%holds`,
  tagLength: TAG.length,
  suffix: '%holds',
  id: '0123456789abcdef01234567',
  amount: 1,
  lifetimeMillis: 60_000,
  fullMicros: 0,
  rule: '0zik0zj',
  isLocal: false,
  freesUnknown: false,
};

test('a token shows the values of its holds', () => {
  const token = String(encodeToken([PLAIN]));
  expect(token).toBe('00123456789abcdef012345670zik0zj1.60000.0.1:d1:k1:v%holds');
  const other = { ...PLAIN, isLocal: true, amount: 5, key: '1:d1:k1:é%holds' };
  expect(String(encodeToken([PLAIN, other]))).toBe(
    `${token},50123456789abcdef012345670zik0zj5.60000.0.MTpkMTprMTrDqSVob2xkcw`,
  );
  expect(String(encodeToken([{ ...PLAIN, fullMicros: 7, costMicros: 12 }]))).toBe(
    token.replace('.0.', '.7-12.'),
  );
});

test('a token that is cut off, extended or written differently is no token', () => {
  const token = String(encodeToken([PLAIN]));
  // The name of the bucket may have any end.
  for (let length = 0; length < token.length - '%holds'.length; length++)
    expect([...decodeToken(token.slice(0, length))]).toEqual([undefined]);
  const others = [`${token},`, ` ${token}`, `A${token}`, `,${token}`, '', 'hold', '%', 'ÿ'];
  const { id } = PLAIN;
  others.push(
    `8${token.slice(1)}`,
    token.replace(id, id.toUpperCase()),
    token.replace(id, `0x${id.slice(2)}`),
  );
  const tooLarge = ['4294967296.60000.0.', '1.4294967296.0.', `1.60000.${2 ** 53}.`];
  const badCosts = ['0-0', '0-', '-1', '0-01', '0-1-2', `0-${2 ** 53}`].map((times) => `1.60000.${times}.`);
  for (const values of ['01.60000.0.', '1.60000..', '-1.60000.0.', ...tooLarge, ...badCosts])
    others.push(token.replace('1.60000.0.', values));
  for (const other of others) expect([other, ...decodeToken(other)].at(-1)).toBeUndefined();
});

test('a token that is too long is not decoded', () => {
  expect([...decodeToken('A'.repeat(300_000))]).toEqual([undefined]);
});

test('ids are distinct', () => {
  const ids = Array.from({ length: 1000 }, newHoldId);
  expect(new Set(ids).size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{24}$/);
});
