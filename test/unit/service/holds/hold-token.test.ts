import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { newHoldId } from '../../../../src/service/holds/hold-ids.js';
import { decodeToken, encodeToken, type TokenHold } from '../../../../src/service/holds/hold-token.js';
import { expectEqual } from '../../../support/assert/quick-expect.js';
import { runs } from '../../../support/assert/runs.js';

const UINT32 = fc.integer({ min: 0, max: 0xffff_ffff });

const hold: fc.Arbitrary<TokenHold> = fc
  .record({
    key: fc.string({ unit: 'binary' }),
    id: fc.constant('').map(newHoldId),
    amount: UINT32,
    lifetimeMillis: UINT32,
    fullMicros: fc.nat(Number.MAX_SAFE_INTEGER),
    rule: UINT32,
    isLocal: fc.boolean(),
    freesUnknown: fc.boolean(),
  })
  .map((fields) => ({ ...fields, tagLength: Math.floor(fields.key.length / 2) }));

test('a token contains the holds of a request', () => {
  fc.assert(
    fc.property(fc.array(hold, { minLength: 1, maxLength: 5 }), (holds) => {
      const token = encodeToken(holds);
      expect(token).toMatch(/^[\w-]+$/);
      expectEqual([...decodeToken(token)], holds);
    }),
    runs(100),
  );
});

test('a token that is cut off, extended or written differently is no token', () => {
  const token = encodeToken([
    {
      key: '1:d1:k1:v',
      tagLength: 9,
      id: newHoldId(),
      amount: 1,
      lifetimeMillis: 1,
      fullMicros: 0,
      rule: 1,
      isLocal: false,
      freesUnknown: false,
    },
  ]);
  for (let length = 0; length < token.length; length++)
    expect([...decodeToken(token.slice(0, length))]).toEqual([undefined]);
  for (const other of [
    `${token}A`,
    `${token}AAAA`,
    ` ${token}`,
    `${token}=`,
    `A${token}`,
    '',
    'hold',
    '%',
    'ÿ',
  ]) {
    expect([other, ...decodeToken(other)].at(-1)).toBeUndefined();
  }
});

test('a token that is too long is not decoded', () => {
  expect([...decodeToken('A'.repeat(300_000))]).toEqual([undefined]);
});

test('ids are distinct', () => {
  const ids = Array.from({ length: 1000 }, newHoldId);
  expect(new Set(ids).size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{24}$/);
});
