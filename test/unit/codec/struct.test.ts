import { describe, expect, test } from '@jest/globals';
import { fromStruct, toStruct } from '../../../src/codec/client-codec.js';

describe('Struct and JSON', () => {
  test('every kind of value', () => {
    expect(toStruct({ a: null, b: 1, c: 'x', d: false, e: [1, [null]], f: { g: {} } })).toEqual({
      fields: {
        a: { nullValue: 0 },
        b: { numberValue: 1 },
        c: { stringValue: 'x' },
        d: { boolValue: false },
        e: { listValue: { values: [{ numberValue: 1 }, { listValue: { values: [{ nullValue: 0 }] } }] } },
        f: { structValue: { fields: { g: { structValue: { fields: {} } } } } },
      },
    });
  });

  test('omits values without JSON form; in a list they become null, as in JSON.stringify', () => {
    expect(toStruct({ a: undefined, b: () => 1, c: [undefined] })).toEqual({
      fields: { c: { listValue: { values: [{ nullValue: 0 }] } } },
    });
  });

  test('a value without a kind is null, and absent members are empty', () => {
    expect(fromStruct({ fields: { a: {}, b: { listValue: {} }, c: { structValue: {} } } })).toEqual({
      a: null,
      b: [],
      c: {},
    });
    expect(fromStruct({})).toEqual({});
  });

  test('a member called __proto__ is a member', () => {
    const fields = Object.fromEntries([['__proto__', { numberValue: 1 }]]);
    const object = fromStruct({ fields });
    expect(Object.keys(object)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
  });
});
