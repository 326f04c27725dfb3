import { expect, test } from '@jest/globals';
import { parseValue } from '../../../../src/server/settings/settings-values.js';

test.each([
  ['denied=1,ok=0.01', { denied: 1, ok: 0.01 }],
  [' ok : .5 ', { denied: 0, ok: 0.5 }],
  ['denied=1.', { denied: 1, ok: 0 }],
  ['', undefined],
])('%j are valid', (text, value) => {
  expect(parseValue('decision_sample', text)).toEqual({ ok: true, value });
});

test.each([['denied'], ['1'], ['denied=-1'], ['denied=1,denied=1'], ['allowed=1'], ['ok=1,'], ['ok=10%']])(
  '%j is no list of shares',
  (text) => {
    expect(parseValue('decision_sample', text)).toEqual({
      ok: false,
      expected: 'a list of fractions from 0 to 1 for denied and other requests, such as denied=1,ok=0.01',
    });
  },
);

test('a share above 1 is reported', () => {
  expect(parseValue('decision_sample', 'ok=2')).toMatchObject({
    expected: expect.stringContaining('fractions from 0 to 1'),
  });
});
