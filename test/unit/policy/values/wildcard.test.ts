import { expect, test } from '@jest/globals';
import { Wildcard } from '../../../../src/policy/values/value-matcher.js';

test.each([
  ['*', 'anything\nat all', true],
  ['a.c*', 'abc', false],
  ['(*', '(', true],
  // Texts between stars, the prefix and the suffix overlap in the value.
  ['bab*ab', 'bab', false],
  ['a*bb*b', 'aabb', false],
  ['*a*a*', 'ba', false],
])('%s against "%s": %s', (pattern, value, matches) => {
  expect(new Wildcard(pattern).matches(value)).toBe(matches);
});

test('a long value with many near matches is matched without backtracking', () => {
  expect(new Wildcard(`${'a*'.repeat(30)}b`).matches('a'.repeat(64 * 1024))).toBe(false);
});
