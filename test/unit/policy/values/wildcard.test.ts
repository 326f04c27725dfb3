import { expect, test } from '@jest/globals';
import { Wildcard } from '../../../../src/policy/values/wildcard.js';

test.each([
  ['*', '', true],
  ['*', 'anything\nat all', true],
  ['**', '', true],
  ['foo*', 'foo', true],
  ['foo*', 'foobar', true],
  ['foo*', 'fo', false],
  ['*bar', 'foobar', true],
  ['*bar', 'bars', false],
  ['bar*b', 'barb', true],
  ['bar*b', 'bar', false],
  ['bab*ab', 'bab', false],
  ['bab*ab', 'babab', true],
  ['foo*bar*baz', 'foobarbaz', true],
  ['foo*bar*baz', 'foo-bar-bar-baz', true],
  ['foo*bar*baz', 'foobaz', false],
  ['foo*bar*baz', 'foobazbar', false],
  ['a*b*c', 'abcbc', true],
  ['a*bc*c', 'abc', false],
  ['a.c*', 'abc', false],
  ['(*', '(', true],
])('%s against "%s": %s', (pattern, value, matches) => {
  expect(new Wildcard(pattern).matches(value)).toBe(matches);
});

test('a long value with many near matches is matched without backtracking', () => {
  expect(new Wildcard(`${'a*'.repeat(30)}b`).matches('a'.repeat(64 * 1024))).toBe(false);
});
