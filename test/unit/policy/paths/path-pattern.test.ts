import { describe, expect, test } from '@jest/globals';
import { MAX_PATH_PATTERN_LENGTH, PathPattern } from '../../../../src/policy/paths/path-pattern.js';

function matches(pattern: string, path: string): boolean {
  const parsed = PathPattern.parse(pattern);
  if (typeof parsed === 'string') throw new Error(parsed);
  return parsed.matches(path);
}

test.each([
  ['/', '/', true],
  ['/', '/a', false],
  ['/a', '/a', true],
  ['/a', '/A', false],
  ['/a/', '/a', true],
  ['/a//b', '/a/b', true],
  ['/open/**', '/open/a\u2028b/\r', true],
  ['/v{4,5}{,-beta}', '/v5-beta', true],
  ['/v{4,5}{,-beta}', '/v4', true],
  ['/{a,{b,c}/d}', '/c/d', true],
  ['/{a,{b,c}/d}', '/c', false],
  ['/a?c', '/a😀c', true],
  ['/v[4-6]', '/v5', true],
  ['/v[!4-6]', '/v5', false],
  ['/v[^4-6]', '/v7', true],
  ['/v[!a]', '/v😀', true],
  ['/v[]a]', '/v]', true],
  ['/v[a\\]b]', '/v]', true],
  ['/v[-a]', '/v-', true],
  ['/a\\*', '/a*', true],
  ['/a\\*', '/ab', false],
  ['/a\\{b\\}', '/a{b}', true],
  ['/Users(1)', '/Users(1)', true],
  ['/a+(b|c)', '/a+(b|c)', true],
  ['/!x', '/!x', true],
])('%s against %j: %s', (pattern, path, expected) => {
  expect(matches(pattern, path)).toBe(expected);
});

describe('invalid patterns', () => {
  test.each([
    ['open/**', 'a path pattern must begin with "/"'],
    ['/a**', '"**" must be a whole segment'],
    ['/***', '"**" must be a whole segment'],
    ['/{a,b', 'a "{" is not closed'],
    ['/a}', 'a "}" has no "{" before it'],
    ['/{a}', 'braces must contain alternatives'],
    ['/[a', 'a "[" is not closed'],
    ['/[]', 'a "[" is not closed'],
    ['/[z-a]', 'the range "z-a" is empty'],
    ['/[a/b]', 'cannot contain "/"'],
    ['/a\\', 'the pattern ends with "\\"'],
    ['/a/../b', 'the segment ".." never matches'],
    ['/./b', 'the segment "." never matches'],
    [`/${'{a,b}'.repeat(9)}`, 'more than 256 alternatives'],
    [`/${'a'.repeat(MAX_PATH_PATTERN_LENGTH)}`, 'at most 1024 characters'],
  ])('%s', (pattern, sentence) => {
    expect(PathPattern.parse(pattern)).toEqual(expect.stringContaining(sentence));
  });
});

test('long paths with many near matches are matched without backtracking', () => {
  expect(matches('/**/a/**/a/**/b', `/a`.repeat(30_000))).toBe(false);
  expect(matches('/*a*a*a*b', `/${'a'.repeat(60_000)}`)).toBe(false);
});
